"""Which hosts asked for a pause and until when: looked up before every request, added to by its answer.

How long a pause is stands here; that it outlives the run is storage.holds' business, and who is not claimed
because of it the claims' (storage.leases, storage.image_claims).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeVar

from rss_pipeline.collector.http.status_errors import status_name
from rss_pipeline.collector.models.clock import LONGEST, Clock, duration, utc_now, whole_second
from rss_pipeline.collector.models.hold import FeedHold, HostHold

H = TypeVar("H")

LONGEST_FIRST = timedelta(hours=1)
"""A host's first pause, whatever it asks; the next one is as long as it asks, up to a day."""
BARE_PAUSE = timedelta(minutes=15)
"""Where a 429 does not say how long; doubled each time that it comes again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldChanges:
    """What answers changed since it was last asked for."""

    hosts: Sequence[HostHold]
    feeds: Sequence[FeedHold]
    recovered: Sequence[str]
    """Hosts whose pause is over and that answer as usual."""

    @property
    def is_empty(self) -> bool:
        return not (self.hosts or self.feeds or self.recovered)


class Holds:
    """The pauses that one run knows of. Used by the round's thread and the run's own at once."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self._clock = clock
        self._hosts: dict[str, HostHold] = {}
        self._feeds: dict[str, FeedHold] = {}
        self._foreign: dict[str, HostHold] = {}
        self._new_hosts: deque[HostHold] = deque()
        self._new_feeds: deque[FeedHold] = deque()
        self._recovered: deque[str] = deque()

    def load(
        self,
        hosts: Iterable[HostHold],
        feeds: Iterable[FeedHold] = (),
        *,
        foreign: Iterable[HostHold] = (),
    ) -> None:
        """Take over what the database has. `hosts` may be over: whether a pause comes again depends on them.

        `foreign` ones are obeyed only: what feeds were told, where images are asked for.
        """
        for hold in hosts:
            if (known := self._hosts.get(hold.host)) is None or known.until < hold.until:
                self._hosts[hold.host] = hold
        self._feeds.update((hold.feed_id, hold) for hold in feeds)
        self._foreign.update((hold.host, hold) for hold in foreign)

    def active(self, host: str) -> HostHold | None:
        """The pause of this host, where it is not over."""
        now = self._clock()
        holds = (holds.get(host) for holds in (self._hosts, self._foreign))
        return max(
            (hold for hold in holds if hold is not None and hold.until > now),
            key=lambda hold: hold.until,
            default=None,
        )

    def feed_answered(self, feed_id: str, host: str, status: int, retry_after: int | None) -> None:
        """`host` answered so when this feed was asked for. `retry_after` in seconds.

        A 429 holds the host, and the feed as long as it says. A 503 that says how long holds the feed, and
        the host where another feed of it was told to stay away as well.
        """
        if status not in _PAUSES:
            self._answered(host, status)
            return
        now = self._clock()
        others = any(
            hold.host == host and hold.until > now for id, hold in self._feeds.items() if id != feed_id
        )
        if status == HTTPStatus.TOO_MANY_REQUESTS or (retry_after and others):
            self._hold(host, status, retry_after, now)
        if retry_after:
            pause = min(timedelta(seconds=retry_after), LONGEST)
            said = f"{status_name(status)} with Retry-After {duration(pause)}"
            hold = FeedHold(feed_id=feed_id, host=host, until=whole_second(now + pause), reason=said)
            self._feeds[feed_id] = hold
            self._new_feeds.append(hold)

    def image_answered(self, host: str, status: int, retry_after: int | None, *, asked_first: str) -> None:
        """`host` answered so when an image was asked for, which may have begun at another one.

        A pause is then of both: where its images lead to a host that is left alone, each would be asked for
        again in every round, for nothing.
        """
        if status == HTTPStatus.TOO_MANY_REQUESTS or (status in _PAUSES and retry_after is not None):
            now = self._clock()
            for each in dict.fromkeys((host, asked_first)):
                self._hold(each, status, retry_after, now)
        else:
            self._answered(host, status)

    def changes(self) -> HoldChanges:
        """What is to be kept in the database, handed out once."""
        return HoldChanges(
            hosts=_drained(self._new_hosts),
            feeds=_drained(self._new_feeds),
            recovered=_drained(self._recovered),
        )

    def _hold(self, host: str, status: int, retry_after: int | None, now: datetime) -> None:
        before = self._hosts.get(host)
        hold = pause(host, status, retry_after, before=before, now=now)
        if before is None or hold.until > before.until:
            self._hosts[host] = hold
            self._new_hosts.append(hold)

    def _answered(self, host: str, status: int) -> None:
        hold = self._hosts.get(host)
        if hold is not None and hold.until <= self._clock() and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            del self._hosts[host]
            self._recovered.append(host)


def pause(
    host: str, status: int, retry_after: int | None, *, before: HostHold | None, now: datetime
) -> HostHold:
    """A host's pause: as long as it says, at most 1 h, or a day where it comes again; 15 min, 30 min, 1 h ...
    where it does not say.

    `before` is the host's last pause, where nothing but this answer has come since.
    """
    times = 1 if before is None else before.times + (before.until <= now)
    longest = LONGEST_FIRST if times == 1 else LONGEST
    if retry_after:
        asked = timedelta(seconds=retry_after)
        length, said = min(asked, longest), f"with Retry-After {duration(asked)}"
    else:
        # Seven doublings pass 24 h.
        length, said = min(BARE_PAUSE * 2 ** min(times - 1, 7), longest), "without Retry-After"
    again = "" if times == 1 else f", {times} times in a row"
    reason = f"{status_name(status)} {said}{again}: held for {duration(length)}"
    return HostHold(host=host, until=whole_second(now + length), reason=reason, times=times)


_PAUSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


def _drained(waiting: deque[H]) -> list[H]:
    """The other thread may append meanwhile."""
    return [waiting.popleft() for _ in range(len(waiting))]
