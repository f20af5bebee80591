"""Installations that reach nobody: after a first start without network, or later. Reads only."""

from collections.abc import Mapping
from dataclasses import dataclass

from rss_pipeline.collector.models.failure import UNREACHED_KINDS
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import any_answered
from rss_pipeline.storage.feeds.predicates import LAST_VISIT_FAILED, POLLED

_WITHOUT_ANSWER = f"""{LAST_VISIT_FAILED}
  AND last_error_kind IN ({", ".join(f"'{kind}'" for kind in sorted(UNREACHED_KINDS))})"""


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


def without_answer(database: Database) -> Mapping[str, int]:
    """The number of polled feeds by the kind of failure, where no server answered the last visit of any of
    them; empty where one did, or where a feed was not visited so far."""
    answered = database.query(
        f"SELECT 1 FROM feeds WHERE {POLLED} AND NOT ({_WITHOUT_ANSWER}) LIMIT 1",
        name="find a feed with an answer",
    ).rows
    if answered:
        return {}
    rows = database.query(
        f"""SELECT last_error_kind AS kind, count(*) AS feeds FROM feeds WHERE {_WITHOUT_ANSWER}
        GROUP BY last_error_kind ORDER BY feeds DESC, kind""",
        name="count feeds without an answer",
    ).rows
    return {str(row["kind"]): int(row["feeds"]) for row in rows}
