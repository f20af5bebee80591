"""Sentences of `status`: on a feed with visits that go well (it moved, it has gaps), and on reaching none."""

from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.schedule.our_outage import nothing_reached
from rss_pipeline.collector.schedule.permanent_redirects import SEEN_FOR, hindrance
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.reports.overview import unreached, without_answer

GAPS_SHOWN_FOR = timedelta(days=30)


def feed_notes(row: Row, *, now: datetime) -> list[str]:
    """The notes on one feed, those that require a change of feeds.yaml first: sentences without a full stop.

    `row` is one of storage.reports.overview.feed_health.
    """
    notes = []
    if row["fetch_url"]:
        # The address of a feed that users brought is no line of feeds.yaml.
        write = f": write that into feeds.yaml with `id: {row['id']}`" if row["listed"] else ""
        notes.append(f"moved for good, requested at {row['fetch_url']}{write}")
    if row["move_url"]:
        notes.append(_leads_to(row))
    if row["same_as"]:
        notes.append(f"the same feed as {row['same_as']}: both lead to one address")
    last_gap = from_instant(row["last_gap_at"])
    if last_gap is not None and now - last_gap <= GAPS_SHOWN_FOR:
        many = "once" if row["gaps"] == 1 else f"{int(row['gaps'])} times"
        notes.append(
            f"items were probably missed {many}, the last time before {row['last_gap_at']}: a document had"
            " none in common with the one before"
        )
    return notes


def _leads_to(row: Row) -> str:
    why_not = hindrance(
        url=row["url"],
        fetch_url=row["fetch_url"],
        needs_access=bool(row["needs_access"]),
        target=row["move_url"],
    )
    leads = f"redirects for good to {row['move_url']}, since {row['move_since']}"
    if why_not is None:
        return f"{leads}; requested there directly after {SEEN_FOR.days} days of that"
    write = ": if it is right, write it into feeds.yaml" if row["listed"] else ""
    return f"{leads}; not requested there directly, for {why_not}{write}"


def none_reached(database: Database) -> str | None:
    """The sentence, where a first start was without network, or the last visit of no feed had an answer."""
    found = unreached(database)
    if found is not None:
        return (
            f"{nothing_reached(found.hosts)} The next attempt is at {found.next_fetch_at};"
            " `rss-pipeline poll --all` tries at once."
        )
    kinds = without_answer(database)
    if not kinds:
        return None
    counts = ", ".join(f"{kind} ({count:,})" for kind, count in kinds.items())
    return (
        f"No feed could be reached at its last visit: {counts}. Is this machine online, and are the addresses"
        " right? `rss-pipeline doctor` looks at the network."
    )
