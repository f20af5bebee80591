"""Outages of our own network among a round's visits, distinguished from failures of the publishers. Pure.

The next visit after an outage is in next_visit.py; the same question for images is in image_retries.py.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNREQUESTED_KINDS, Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.network import network_of, registered_domain
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotModified

OUTAGE_HOSTS = 3
MISSPELT_AFTER = timedelta(hours=1)
"""After this time a name that does not resolve is the feed's failure, although no feed has ever answered."""


_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_BROKEN_OFF = NETWORK_KINDS | {"truncated"}
"""Kinds of failure of a visit that was under way when the network went down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """Our network was down. `feed_ids` failed because of that."""

    feed_ids: frozenset[str]
    in_the_middle: bool
    """Other hosts had answered before it began, or some of our own network have."""
    before_any_answer: bool = False
    """No feed has ever been answered."""


def outage(outcomes: Sequence[tuple[Feed, FetchOutcome]], *, blamed: Collection[str] = ()) -> Outage | None:
    """Return the outage of our own network that a round shows; None if it shows none.

    The network was down if every visit failed in the network, at hosts in three networks or more that had
    answered the time before: hosts that were dead then prove nothing, nor do blocked addresses, and the hosts
    of one provider are as one. A connection that is accepted, refused or reset is an answer, but for that of
    a host of our own network, while others fail. It went down in the middle of the round if three hosts
    answered at first, and later none of three or more such hosts that were requested after the last answer.
    `blamed` are feeds with a failure of their own in any case.
    """
    every, failures = _answers_and_failures(outcomes)
    is_beyond = any(not feed.allow_private for feed, _ in failures)
    answers = [(at, feed) for at, feed in every if not (is_beyond and feed.allow_private)]
    last = max((at for at, _ in answers), default=None)
    if last is not None and len({feed.address.host for _, feed in answers}) < OUTAGE_HOSTS:
        return None
    proof = [
        (feed, failure)
        for feed, failure in failures
        if feed.http.host_answered
        and feed.id not in blamed
        and failure.kind in NETWORK_KINDS
        and not failure.reached
        and (last is None or _began(failure, last) > last)
    ]
    if not _in_several_networks(proof):
        return None
    ours = {
        feed.id
        for feed, failure in failures
        if feed.id not in blamed
        and not failure.reached
        and (last is None or (failure.fetched_at or last) > last)
    }
    return Outage(feed_ids=frozenset(ours), in_the_middle=bool(every))


def _in_several_networks(failures: Sequence[tuple[Feed, Failure]]) -> bool:
    """True if these hosts are in three networks or more, as far as known; names that do not resolve also have
    to be of three domains."""
    networks = {
        network_of(feed.address.host) or feed.http.network or registered_domain(feed.address.host)
        for feed, _ in failures
    }
    names = {
        registered_domain(feed.address.host) if failure.kind == "dns" else feed.address.host
        for feed, failure in failures
    }
    return min(len(networks), len(names)) >= OUTAGE_HOSTS


def never_reached(outcomes: Sequence[tuple[Feed, FetchOutcome]], *, now: datetime) -> Outage | None:
    """Return the outage of our own network that a round shows where no feed has ever answered; None if none.

    The network was down if no host answered and public hosts in three networks or more failed in the network.
    Of one or two, a name that resolved shows that the network is there. Where none of them resolved, the
    names may be wrong as well, so that the network is to blame for an hour after a feed was registered. Feeds
    of our own network (`allow_private`, a private address) prove nothing, and those on this machine need no
    network.
    """
    answers, failures = _answers_and_failures(outcomes)
    failures = [(feed, failure) for feed, failure in failures if not _is_here(feed.address.host)]
    public = [
        (feed, failure)
        for feed, failure in failures
        if is_public(feed.address.host, allow_private=feed.allow_private)
    ]
    if answers or not public:
        return None
    ours = {feed.id for feed, _ in failures}
    if _in_several_networks(public):
        return Outage(feed_ids=frozenset(ours), in_the_middle=False, before_any_answer=True)
    if any(failure.kind != "dns" for _, failure in public):
        return None
    young = frozenset(feed.id for feed, _ in failures if _is_young(feed, now))
    return Outage(feed_ids=young, in_the_middle=False, before_any_answer=True) if young else None


def nothing_reached(hosts: int) -> str:
    """The first words wherever a first start without network shows, for so many hosts that failed."""
    doubt = "" if hosts >= OUTAGE_HOSTS else " Or is the address misspelt?"
    return f"No feed could be reached. Is this machine online?{doubt}"


def _is_young(feed: Feed, now: datetime) -> bool:
    # A clock that was put back makes an age negative; such a feed would stay young for too long.
    return feed.created_at is not None and timedelta(0) <= now - feed.created_at < MISSPELT_AFTER


def is_public(host: str, *, allow_private: bool) -> bool:
    """True for the host of a feed that needs a network beyond our own, as far as feeds.yaml shows."""
    if allow_private or _is_here(host):
        return False
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_global
    return True


def _is_here(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host.strip("[]")).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _answers_and_failures(
    outcomes: Sequence[tuple[Feed, FetchOutcome]],
) -> tuple[list[tuple[datetime, Feed]], list[tuple[Feed, Failure]]]:
    """The times and feeds of answers, and the failures that our own network could have caused."""
    answers: list[tuple[datetime, Feed]] = []
    failures: list[tuple[Feed, Failure]] = []
    for feed, outcome in outcomes:
        match outcome:
            case NotModified(response=response) | Document(response=response):
                answers.append((response.fetched_at, feed))
            case Failure() as failure:
                if failure.kind in _BROKEN_OFF:
                    failures.append((feed, failure))
                if failure.kind not in NETWORK_KINDS or failure.proves_network:
                    answers += _answer(feed, failure)
    return answers, failures


def _answer(feed: Feed, failure: Failure) -> list[tuple[datetime, Feed]]:
    if failure.kind in UNREQUESTED_KINDS and not failure.answered:
        return []
    # If the rest of an answer did not come, its head did, at some time since the request.
    at = failure.fetched_at or _LONG_AGO
    return [(_began(failure, at) if failure.kind in _BROKEN_OFF else at, feed)]


def _began(failure: Failure, otherwise: datetime) -> datetime:
    """The time of the request; nothing is known about the time before."""
    if failure.fetched_at is None:
        return otherwise
    return failure.fetched_at - timedelta(milliseconds=failure.fetch_ms or 0)
