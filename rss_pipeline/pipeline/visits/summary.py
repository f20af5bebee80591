"""The outcome of a run's visits: counts, a row for each failure, and the failures that Dagster shows.

How the UI shows them is orchestration.reporting's, how the command prints them cli.output's.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES, FailureHistory
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun, NotModified
from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.pipeline.visits.visit import Refused, Stored, Visit

_NAMED = 5
"""Failed feeds that a line names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """A failed visit of a feed, or a failed download of one of its images."""

    feed_id: str
    url: str
    """The requested URL; empty for an unknown feed."""
    kind: str
    message: str
    title: str | None = None
    """The feed's."""
    in_a_row: int | None = None
    """Failures in a row with this one, where they are counted."""


def summary(visits: Iterable[Visit]) -> dict[str, Any]:
    """Counts of a run's visits by how they ended, of its new items, and of the documents that had no item in
    common with the one before."""
    ends: Counter[str] = Counter()
    items_new = gaps = 0
    for visit in visits:
        match visit.outcome:
            case Failure():
                ends["failed"] += 1
            case NotModified():
                ends["unchanged"] += 1
            case Stored() as stored:
                ends["stored"] += 1
                items_new += stored.items_new
                gaps += stored.is_gap
            case NotBegun():
                ends["given_back"] += 1
            case OnHold():
                ends["on_hold"] += 1
            case _:
                ends["not_visited"] += 1
    return {
        **{name: ends[name] for name in ("stored", "unchanged", "failed", "given_back", "on_hold")},
        "items_new": items_new,
        "gaps": gaps,
    }


def poll_sentence(visits: Sequence[Visit]) -> str:
    """A poll in one line: its feeds, new items, and the feeds that failed, each with its reason in a word."""
    counts = summary(visits)
    parts = [f"{len(visits)} feeds", f"{counts['items_new']} new items"]
    failed = [
        f"{feed_name(visit.feed.id, visit.feed.title)} ({_in_a_word(visit.outcome)})"
        for visit in visits
        if isinstance(visit.outcome, Failure)
    ]
    if failed:
        more = f" and {len(failed) - _NAMED} more" if len(failed) > _NAMED else ""
        parts.append(f"{len(failed)} failed: {', '.join(failed[:_NAMED])}{more}")
    return one_line(", ".join(parts))


def _in_a_word(failure: Failure) -> str:
    return failure.kind if failure.status is None else f"{failure.kind} {failure.status}"


def failures(visits: Iterable[Visit]) -> list[FailureRow]:
    """The visits that ended as failures, and those of feeds that were named and could not be visited."""
    found: list[FailureRow] = []
    for visit in visits:
        match visit.outcome:
            case Failure() as failure:
                found.append(failed_visit(visit, failure.kind, failure.message))
            case Refused(message=message):
                found.append(failed_visit(visit, "refused", message))
            case OnHold() as held if not visit.token:
                found.append(failed_visit(visit, "host_on_hold", str(held)))
    return found


def failed_visit(visit: Visit, kind: str, message: str) -> FailureRow:
    """The row of a visit that failed for this reason."""
    feed = visit.feed
    in_a_row = feed.failures.in_a_row + 1 if isinstance(visit.outcome, Failure) else None
    return FailureRow(
        feed_id=feed.id, url=feed.url, kind=kind, message=message, title=feed.title, in_a_row=in_a_row
    )


# The failed visits that are worth an event in Dagster. What was reported is marked by
# storage.feeds.feed_changes.

AGAIN_AFTER = timedelta(days=7)
"""The time after which a feed that still fails is reported again."""
_FLAPPING = timedelta(days=1)
"""The time after a report in which a feed that changes between failures, or fails now and then, has no other
one: it would be one for each poll."""


def to_report(
    visits: Sequence[Visit], *, now: datetime, by_hand: bool = False
) -> list[tuple[Visit, Failure]]:
    """The failed and closed visits of feeds that begin to fail, that fail in another way, or whose failure
    was last reported a week ago; by hand, all of them."""
    return [
        (visit, visit.outcome)
        for visit in visits
        if isinstance(visit.outcome, Failure)
        and visit.next is not None
        and not visit.lost
        and (by_hand or _is_owed(visit.feed.failures, visit.outcome, now))
    ]


def _is_owed(before: FailureHistory, failure: Failure, now: datetime) -> bool:
    reported_at = before.reported_at
    # A report later than now is that of a clock that was wrong.
    if reported_at is None or not timedelta() <= now - reported_at < AGAIN_AFTER:
        return True
    is_flapping = now - reported_at < _FLAPPING
    if before.in_a_row == 0 or before.since is None or reported_at < before.since:
        # The UI shows the success since then, and no longer the failures before it.
        return not is_flapping or before.in_a_row + 1 >= NOT_ANSWERING_FAILURES
    is_first_change = reported_at == before.since
    return before.reported_kind != failure.kind and (is_first_change or not is_flapping)
