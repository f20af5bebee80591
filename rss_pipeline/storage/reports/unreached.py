"""The feeds that a first start without network left: none has ever been answered. Reads only."""

from dataclasses import dataclass

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import any_answered
from rss_pipeline.storage.feeds.predicates import POLLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreached:
    """Feeds that were postponed because no feed could be reached."""

    feeds: int
    hosts: int
    next_fetch_at: str


def unreached(database: Database) -> Unreached | None:
    """These feeds; None as soon as any feed was answered."""
    if any_answered(database):
        return None
    row = database.query(
        f"""SELECT count(*) AS feeds, count(DISTINCT host) AS hosts, min(next_fetch_at) AS next_fetch_at
        FROM feeds WHERE {POLLED} AND schedule_kind IS 'our_outage'""",
        name="count unreached feeds",
    ).rows[0]
    if not row["feeds"]:
        return None
    return Unreached(
        feeds=int(row["feeds"]), hosts=int(row["hosts"]), next_fetch_at=str(row["next_fetch_at"])
    )
