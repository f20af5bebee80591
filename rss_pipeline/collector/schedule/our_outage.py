"""Whose trouble it is when visits fail in the network: our own outage told apart from theirs. Pure.

When feeds are asked again after one is schedule.py's; the same question of images is image_schedule.py's.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNASKED_KINDS, Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotModified

OUTAGE_HOSTS = 3


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_BROKEN_OFF = NETWORK_KINDS | {"truncated"}
"""How a visit may end that was under way when the network went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Our network was down. `feed_ids` are those whose failure is not their own."""

    feed_ids: frozenset[str]
    in_the_middle: bool
    """Others had answered before it began."""


def outage(outcomes: Sequence[tuple[Feed, FetchOutcome]], *, blamed: Collection[str] = ()) -> Outage | None:
    """What a round says of our own network; None where it says nothing, or that it is up.

    It is down where every visit failed in the network and three hosts among them had answered the time
    before: hosts that were dead then prove nothing, nor do addresses that may not be asked. It went down in
    the middle where three hosts answered at first, and then nobody any more of three such hosts or more
    that were asked after the last answer. `blamed` are feeds whose failure is their own in any case.
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
    if failure.kind in UNASKED_KINDS and not failure.answered:
        return []
    # Where the rest of an answer did not come, its head did, at some time since it was asked for.
    at = failure.fetched_at or _LONG_AGO
    return [(_began(failure, at) if failure.kind in _BROKEN_OFF else at, feed.address.host)]


def _began(failure: Failure, otherwise: datetime) -> datetime:
    """When it was asked: before that nothing is known of it."""
    if failure.fetched_at is None:
        return otherwise
    return failure.fetched_at - timedelta(milliseconds=failure.fetch_ms or 0)
