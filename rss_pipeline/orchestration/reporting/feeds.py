"""Dagster events for visits: materializations, the summary of a run, the failure table of a backfill.

Each event reports a change that a closing batch stored. No change goes unreported: when a run is killed
before its report, the change stays counted in the database, and the next report yields it.
"""

import re
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.feed_names import feed_name, short_title
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import CutOff, NotBegun, NotModified
from rss_pipeline.orchestration.instance.record_events import AssetEvent
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS, ITEM_IMAGES, place
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.pipeline.images.round import Downloads
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.summary import FailureRow, failed_visit, to_report
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Stored, Visit
from rss_pipeline.storage.feeds import feed_changes, leases
from rss_pipeline.storage.feeds.feed_changes import Change
from rss_pipeline.storage.feeds.feed_row import feed_titles
from rss_pipeline.storage.feeds.visit_facts import (
    VisitFacts,
    facts_after,
    facts_of_document,
    known_facts,
)
from rss_pipeline.storage.images.image_closings import ImageTotals, image_totals, pending_images
from rss_pipeline.storage.sql import new_token

FAILED_OURS = "failed_ours"
"""Metadata of a run's failure: the number of feeds that failed because of us, not of their publishers."""
_OURS = frozenset({"our_network", "lost"})
_MARK_EVERY = 100
_TURN, _TURN_SECONDS, _TURN_LOOK_SECONDS = "<events>", 20, 0.2
"""The lease of the run that reports. Its batch takes a second; that of a killed run lapses."""
_FIRST = ("items_new", "items_seen", "body_bytes", "fetch_ms", "http_status")
"""The entries that come first in an event, because most readers look for them."""

Events = Iterator[list[dg.AssetMaterialization]]
"""Batches of events: each is recorded before the next one is taken, which marks its changes as reported."""


def mark_recorded(run: RunContext, instance: dg.DagsterInstance) -> None:
    """Mark the changes that have an event already: a run was killed between the event and the mark.

    Called before any feed is visited: closing a visit adds to a change that seems unreported, and its items
    would be reported twice.
    """
    recorded = [each for each in feed_changes.unreported(run.database) if _is_recorded(instance, each)]
    feed_changes.mark_reported(run.database, recorded, now=run.clock())


def report_changes(run: RunContext, instance: dg.DagsterInstance, visits: Sequence[Visit]) -> Events:
    """Yield an event for every feed with a change not reported yet, from this run or an earlier one.

    None for an ephemeral instance, of which no one sees the events: the changes are left to the next run.
    """
    if instance.is_ephemeral:
        return
    visited = {visit.feed.id for visit in visits}
    # Not those that come meanwhile: other runs may bring some for an hour, and report them.
    for _ in range(0, feed_changes.count_unreported(run.database), _MARK_EVERY):
        with _turn(run):
            some = feed_changes.unreported(run.database, most=_MARK_EVERY)
            yield [
                materialization(run, change)
                for change in some
                # A run that was killed between event and mark left this change; the event log has its event.
                if change.feed_id in visited or not _is_recorded(instance, change)
            ]
            feed_changes.mark_reported(run.database, some, now=run.clock())


@contextmanager
def _turn(run: RunContext) -> Iterator[None]:
    """One run at a time reads changes, records them and marks them: two would report the same ones."""
    token = new_token()
    while not leases.begin_turn(run.database, token, _TURN, run_id=run.run_id, lease_seconds=_TURN_SECONDS):
        time.sleep(_TURN_LOOK_SECONDS)
    try:
        yield
    finally:
        leases.end(run.database, token, forgive=True)


def heartbeats(run: RunContext, ids: Sequence[str]) -> Events:
    """Yield an event with the state of each of these feeds: its unreported change, or one without news."""
    with _turn(run):
        changes = feed_changes.last_changes(run.database, ids).values()
        yield [
            materialization(run, each, now=replace(each.facts, items_new=0) if each.is_reported else None)
            for each in changes
        ]
        feed_changes.mark_reported(run.database, changes, now=run.clock())


def report_named(
    run: RunContext, visits: Sequence[Visit]
) -> Generator[list[AssetEvent], None, list[FailureRow]]:
    """Yield events for every feed that was visited successfully, changed or not; return the others.

    A feed among the others that was not visited because of its host's hold has an observation with the end of
    the hold: the page of its partition shows it, where a failed run alone would not explain it.
    """
    failed: list[FailureRow] = []
    for start in range(0, len(visits), _MARK_EVERY):
        some = visits[start : start + _MARK_EVERY]
        with _turn(run):
            changes = feed_changes.last_changes(run.database, [visit.feed.id for visit in some])
            events: list[AssetEvent] = []
            reported: list[Change] = []
            for visit in some:
                change = changes.get(visit.feed.id)
                failure = _failure(visit, change)
                if failure is not None:
                    failed.append(failed_visit(visit, *failure))
                    if isinstance(visit.outcome, OnHold):
                        events.append(_observation(visit.feed, visit.outcome))
                    continue
                assert change is not None
                events.append(materialization(run, change, now=_facts_of(visit, change)))
                if not change.is_reported:
                    reported.append(change)
            yield events
            feed_changes.mark_reported(run.database, reported, now=run.clock())
    return failed


def report_failures(
    run: RunContext, visits: Sequence[Visit], *, by_hand: bool = False
) -> Iterator[list[dg.AssetObservation]]:
    """Yield an observation for feeds that failed: at the first failure, at another kind, and once a week; for
    each that a person visited.

    Each batch is recorded before the next one is taken. After a crash between an event and its mark the next
    failure has an event as well.
    """
    failed = to_report(visits, now=run.clock(), by_hand=by_hand)
    for start in range(0, len(failed), _MARK_EVERY):
        some = failed[start : start + _MARK_EVERY]
        yield [_failure_observation(visit, failure) for visit, failure in some]
        marks = [(visit.feed.id, failure.kind) for visit, failure in some]
        feed_changes.mark_failures_reported(run.database, marks)


def _failure_observation(visit: Visit, failure: Failure) -> dg.AssetObservation:
    feed, next_visit = visit.feed, visit.next
    assert next_visit is not None
    return dg.AssetObservation(
        asset_key=FEED_ITEMS,
        partition=feed.id,
        description=f"Failed ({failure.kind}): {failure.message}",
        metadata={
            **_title(feed.title),
            "kind": failure.kind,
            "reason": failure.message,
            "failures_in_a_row": feed.failures.in_a_row + 1,
            "next_visit": dg.MetadataValue.timestamp(next_visit.at.astimezone(UTC)),
            "next_visit_reason": next_visit.reason,
            "last_success": _time_or_never(feed.schedule.last_success_at),
            "feed": dg.MetadataValue.url(feed.url),
        },
    )


def _time_or_never(at: datetime | None) -> dg.MetadataValue[Any]:
    return dg.MetadataValue.text("never") if at is None else dg.MetadataValue.timestamp(at.astimezone(UTC))


def _title(title: str | None) -> dict[str, str]:
    words = short_title(title)
    return {"title": words} if words else {}


def _observation(feed: Feed, held: OnHold) -> dg.AssetObservation:
    return dg.AssetObservation(
        asset_key=FEED_ITEMS,
        partition=feed.id,
        description=f"Not visited: {held}.",
        metadata={
            **_title(feed.title),
            "host_on_hold": held.hold.of,
            "held_until": dg.MetadataValue.timestamp(held.hold.until),
            "held_because": held.hold.reason,
        },
    )


def raise_for(failed: Sequence[FailureRow], *, visits: int) -> None:
    """End a backfill in which feeds failed.

    Raises:
        dagster.Failure: some feeds were not collected; a table names them.
    """
    if failed:
        # Our own outage first: it explains more than the failure of one feed.
        failed = sorted(failed, key=lambda each: (each.kind != "our_network", each.feed_id))
        raise dg.Failure(
            description=_first_of(failed, visits=visits),
            metadata={
                "failed": failure_table(failed),
                FAILED_OURS: sum(each.kind in _OURS for each in failed),
            },
            allow_retries=False,
        )


def _first_of(failed: Sequence[FailureRow], *, visits: int) -> str:
    """The first failure, and after it how many there are."""
    first = f"{_named(failed[0])}: {failed[0].message}"
    if visits == 1:
        return first
    names = ", ".join(map(_named, failed[:3]))
    return (
        f"{first}{'' if first.endswith('.') else '.'} {len(failed)} of {visits} feeds were not collected:"
        f" {names}{' ...' if len(failed) > 3 else ''}."
    )


def _named(failed: FailureRow) -> str:
    return feed_name(failed.feed_id, failed.title)


def _failure(visit: Visit, change: Change | None) -> tuple[str, str] | None:
    """Failure kind and sentence, or None for a successful visit."""
    match visit.outcome:
        case Failure() as failure:
            return failure.kind, failure.message
        case Refused(message=message):
            return "refused", message
        case OnHold() as held:
            return "host_on_hold", str(held)
        case CutOff(message=message, pause=pause):
            later = f"the feed is due again in {pause // timedelta(minutes=1)} minutes"
            return "our_network", f"our own network went down; {later}. {message}"
        case HeldElsewhere() if change is not None and change.last_error_kind is None:
            return None
        case HeldElsewhere() if change is not None:
            return str(change.last_error_kind), str(change.last_error)
        case NotModified() | Stored() if change is not None:
            if visit.lost:
                return (
                    "lost",
                    "its lease expired and another run claimed the feed; the result of that run counts",
                )
            return None
        case NotBegun(reason=reason):
            return "given_back", f"it was not requested: {reason or 'the run ended first'}"
        case _:
            return "not_visited", "it was not visited; materialize it again"


def _facts_of(visit: Visit, change: Change) -> VisitFacts | None:
    """The facts of a visit if they are not those of the change; None if they are.

    What the visit stored is said also where another run has just recorded the change: a run says what it, or
    the run that it waited for, did.
    """
    match visit.outcome:
        case NotModified() as confirmed if change.is_reported:
            return facts_after(change.facts, confirmed)
        case Stored(parsed=parsed, items_new=items_new) if change.is_reported:
            facts = facts_of_document(parsed)
            return replace(facts, items_new=items_new, duplicate_guids=None, format=None, repairs=None)
        case HeldElsewhere() if change.is_reported and not change.is_of_last_visit:
            return replace(change.facts, items_new=0)
        case _:
            return None


def materialization(
    run: RunContext, change: Change, *, now: VisitFacts | None = None
) -> dg.AssetMaterialization:
    """The event of a change, or, with `now`, of a visit with these facts.

    Its data version changes with new items only, so downstream automation can ignore heartbeats.
    """
    facts = known_facts(change.facts if now is None else now)
    backup_key = facts.pop("backup_key", None)
    metadata: dict[str, Any] = {
        **{name: facts.pop(name, None) for name in _FIRST},
        **_title(change.title),
        **facts,
        "feed": dg.MetadataValue.url(change.url),
        "site": change.link and dg.MetadataValue.url(change.link),
        "next_visit": dg.MetadataValue.timestamp(_utc(change.next_fetch_at)),
        "next_visit_reason": change.schedule_reason,
        "asked_at": change.fetch_url and dg.MetadataValue.url(change.fetch_url),
        "redirects_for_good_to": change.move_url and dg.MetadataValue.url(change.move_url),
        "gaps": change.gaps or None,
        "warning": change.warning,
        "change": change.count,
    }
    if backup_key:
        metadata["backup_key"] = backup_key
        if url := run.objects.url(backup_key):
            metadata["backup"] = place(url)
    return dg.AssetMaterialization(
        asset_key=FEED_ITEMS,
        partition=change.feed_id,
        metadata={name: value for name, value in metadata.items() if value is not None},
        tags={"dagster/data_version": _version(change.items_version)},
    )


def _version(items_version: str | None) -> str:
    """The version as a tag value: only letters, digits and `-_.` are allowed."""
    return re.sub(r"[^A-Za-z0-9_.-]", ".", items_version or "0")


def _utc(instant: str) -> datetime:
    return datetime.fromisoformat(instant).astimezone(UTC)


def _is_recorded(instance: dg.DagsterInstance, change: Change) -> bool:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[change.feed_id]), limit=1
    ).records
    event = records[0].asset_materialization if records else None
    return event is not None and event.metadata.get("change") == dg.MetadataValue.int(change.count)


# The metadata of a download run: its own figures, and the totals of the image archive.
#
# To count every task, every row is read, which D1 charges for. So tasks are counted once a day; in between,
# the totals of the last materialization plus the figures of the run are used.

COUNTED_EVERY = timedelta(days=1)


def image_metadata(run: RunContext, instance: dg.DagsterInstance, done: Downloads) -> dict[str, Any]:
    """Numbers that plot: for the run `archived` (of these `adopted`), `archived_bytes`, `failed_attempts` and
    `given_up`; in total `pending`, `success`, `failed` and `bytes`."""
    totals, counted_at = _totals(run, instance, done)
    metadata: dict[str, Any] = {
        "archived": done.archived,
        "adopted": done.adopted,
        "archived_bytes": done.bytes,
        "failed_attempts": done.failed_attempts,
        "given_up": done.failed,
        **asdict(totals),
        "counted_at": dg.MetadataValue.timestamp(counted_at),
    }
    if done.failures:
        titles = feed_titles(run.database, [feed_id for feed_id, *_ in done.failures])
        metadata["failures"] = failure_table(
            [
                FailureRow(feed_id=feed_id, url=url, kind=kind, message=message, title=titles.get(feed_id))
                for feed_id, url, kind, message in done.failures
            ]
        )
    return metadata


def _totals(run: RunContext, instance: dg.DagsterInstance, done: Downloads) -> tuple[ImageTotals, datetime]:
    now = run.clock().astimezone(UTC)
    event = instance.get_latest_materialization_event(ITEM_IMAGES)
    known = (
        {} if event is None or event.asset_materialization is None else event.asset_materialization.metadata
    )
    before: dict[str, Any] = {name: value.value for name, value in known.items()}
    counted = before.get("counted_at")
    if isinstance(counted, float) and now - datetime.fromtimestamp(counted, UTC) < COUNTED_EVERY:
        totals = ImageTotals(
            pending=pending_images(run.database),
            success=int(before["success"]) + done.archived,
            failed=int(before["failed"]) + done.failed,
            bytes=int(before["bytes"]) + done.bytes,
        )
        return totals, datetime.fromtimestamp(counted, UTC)
    return image_totals(run.database), now
