"""Outages of our own network among a round's visits, distinguished from failures of the publishers. Pure.

The next visit after an outage is in next_visit.py; the same question for images is in image_retries.py.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNREQUESTED_KINDS, Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotModified

OUTAGE_HOSTS = 3


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_BROKEN_OFF = NETWORK_KINDS | {"truncated"}
"""Kinds of failure of a visit that was under way when the network went down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Our network was down. `feed_ids` failed because of that."""

    feed_ids: frozenset[str]
    in_the_middle: bool
    """Other hosts had answered before it began."""


def outage(outcomes: Sequence[tuple[Feed, FetchOutcome]], *, blamed: Collection[str] = ()) -> Outage | None:
    """Return the outage of our own network that a round shows; None if it shows none.

    The network was down if every visit failed in the network, at three hosts or more that had answered the
    time before: hosts that were dead then prove nothing, nor do blocked addresses. It went down in the middle
    of the round if three hosts answered at first, and later none of three or more such hosts that were
    requested after the last answer. `blamed` are feeds with a failure of their own in any case.
    """
    answers: list[tuple[datetime, str]] = []
    failures: list[tuple[Feed, Failure]] = []
    for feed, outcome in outcomes:
        match outcome:
            case NotModified(response=response) | Document(response=response):
                answers.append((response.fetched_at, feed.address.host))
            case Failure() as failure:
                if failure.kind in _BROKEN_OFF:
                    failures.append((feed, failure))
                if failure.kind not in NETWORK_KINDS or failure.answered:
                    answers += _answer(feed, failure)
    last = max((at for at, _ in answers), default=None)
    if last is not None and len({host for _, host in answers}) < OUTAGE_HOSTS:
        return None
    proof = {
        feed.address.host
        for feed, failure in failures
        if feed.http.host_answered
        and feed.id not in blamed
        and failure.kind in NETWORK_KINDS
        and (last is None or _began(failure, last) > last)
    }
    if len(proof) < OUTAGE_HOSTS:
        return None
    ours = {
        feed.id
        for feed, failure in failures
        if feed.id not in blamed and (last is None or (failure.fetched_at or last) > last)
    }
    return Outage(feed_ids=frozenset(ours), in_the_middle=last is not None)


def _answer(feed: Feed, failure: Failure) -> list[tuple[datetime, str]]:
    if failure.kind in UNREQUESTED_KINDS and not failure.answered:
        return []
    # If the rest of an answer did not come, its head did, at some time since the request.
    at = failure.fetched_at or _LONG_AGO
    return [(_began(failure, at) if failure.kind in _BROKEN_OFF else at, feed.address.host)]


def _began(failure: Failure, otherwise: datetime) -> datetime:
    """The time of the request; nothing is known about the time before."""
    if failure.fetched_at is None:
        return otherwise
    return failure.fetched_at - timedelta(milliseconds=failure.fetch_ms or 0)
