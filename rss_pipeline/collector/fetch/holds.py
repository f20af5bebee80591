"""Holds: the back-offs that hosts requested, checked before each request and added to by its response.

The length of a hold is decided here. `storage.feeds.stored_holds` keeps holds between runs; claims leave out
feeds and images on hold (`storage.feeds.leases`, `storage.images.image_claims`).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TypeVar

from rss_pipeline.collector.http.status_errors import status_name
from rss_pipeline.collector.models.clock import LONGEST, Clock, duration, utc_now, whole_second
from rss_pipeline.collector.models.hold import FeedHold, HostGap, HostHold, url_hash
from rss_pipeline.collector.models.network import network_of, registered_domain

H = TypeVar("H")

LONGEST_FIRST = timedelta(hours=1)
"""The most that a host's first hold lasts; the next one lasts as long as the host requests, up to a day."""
DEFAULT_HOLD = timedelta(minutes=15)
"""For a 429 that requests no wait; doubled each time in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldChanges:
    """The changes that responses made since the last call of `Holds.changes`."""

    hosts: Sequence[HostHold]
    feeds: Sequence[FeedHold]
    recovered: Sequence[str]
    """Hosts with several holds in a row that answer normally again: their next one is the second."""
    gaps: Sequence[HostGap] = ()

    @property
    def is_empty(self) -> bool:
        return not (self.hosts or self.feeds or self.recovered or self.gaps)


class Holds:
    """The holds that one run knows. Used by the round's thread and the run's own at the same time."""

    def __init__(self, clock: Clock = utc_now) -> None:
        self._clock = clock
        self.gaps = LearnedGaps()
        self._hosts: dict[str, HostHold] = {}
        self._feeds: dict[str, FeedHold] = {}
        self._urls: dict[str, FeedHold] = {}
        """By the hash of the address that demanded it."""
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
        gaps: Iterable[HostGap] = (),
    ) -> None:
        """Add the holds of the database. `hosts` include past ones: a second hold in a row depends on them.

        `foreign` holds are obeyed and never changed: those of feeds, in a round of images.
        """
        for hold in hosts:
            if (known := self._hosts.get(hold.host)) is None or known.until < hold.until:
                self._hosts[hold.host] = hold
        for feed in feeds:
            self._add(feed)
        self.gaps.load(gaps)
        self._foreign.update((hold.host, hold) for hold in foreign)

    def active_at(self, host: str, url: str) -> HostHold | FeedHold | None:
        """The hold of this host, or of this address there, whichever is longer."""
        hold = self._urls.get(url_hash(url)) if self._urls else None
        of_host = self.active(host)
        if hold is None or hold.until <= self._clock():
            return of_host
        return hold if of_host is None or hold.until > of_host.until else of_host

    def active(self, host: str) -> HostHold | None:
        """The hold of this host; None if there is none or it is over."""
        now = self._clock()
        holds = (holds.get(host) for holds in (self._hosts, self._foreign))
        return max(
            (hold for hold in holds if hold is not None and hold.until > now),
            key=lambda hold: hold.until,
            default=None,
        )

    def feed_answered(
        self,
        feed_id: str,
        host: str,
        status: int,
        retry_after: int | None,
        *,
        url: str | None = None,
        is_led: bool = False,
    ) -> None:
        """Note the response of `host` to a request for this feed, at `url`. `retry_after` is in seconds.

        `retry_after` is the wait that it requests. With one, a 429 or a 503 holds the feed and the address,
        whichever feeds lead there. A 429 holds the host as well, and so does a 503 with a wait if another of
        its feeds is on hold.

        `is_led`: another host has redirected there. Then the feed and the address alone are held, by a 429
        without a wait as well: otherwise any redirect could keep all feeds of a host from being visited.
        """
        now = self._clock()
        self._learn_gap(host, status, retry_after, now, is_led=is_led)
        if status not in _HOLDING:
            self._answered(host, status)
            return
        others = any(
            hold.host == host and hold.until > now for id, hold in self._feeds.items() if id != feed_id
        )
        if not is_led and (status == HTTPStatus.TOO_MANY_REQUESTS or (retry_after and others)):
            self._hold(host, status, retry_after, now)
        if retry_after or (is_led and status == HTTPStatus.TOO_MANY_REQUESTS):
            length = min(timedelta(seconds=retry_after), LONGEST) if retry_after else DEFAULT_HOLD
            header = "with a wait of" if retry_after else "without a time to wait: on hold for"
            hold = FeedHold(
                feed_id=feed_id,
                host=host,
                until=whole_second(now + length),
                reason=f"{status_name(status)} {header} {duration(length)}",
                url_hash=None if url is None else url_hash(url),
            )
            self._add(hold)
            self._new_feeds.append(hold)

    def image_answered(self, host: str, status: int, retry_after: int | None, *, first_host: str) -> None:
        """Note the response of `host` to a request for an image with a URL at `first_host`.

        A hold is for both hosts: otherwise each image that redirects to the host on hold would be requested
        again in every round, in vain.
        """
        now = self._clock()
        self._learn_gap(host, status, retry_after, now)
        if status == HTTPStatus.TOO_MANY_REQUESTS or (status in _HOLDING and retry_after is not None):
            for each in dict.fromkeys((host, first_host)):
                self._hold(each, status, retry_after, now)
        else:
            self._answered(host, status)

    def changes(self) -> HoldChanges:
        """The changes to store in the database; each is returned once."""
        return HoldChanges(
            hosts=_drained(self._new_hosts),
            feeds=_drained(self._new_feeds),
            recovered=_drained(self._recovered),
            gaps=self.gaps.changes(),
        )

    def _learn_gap(
        self, host: str, status: int, retry_after: int | None, now: datetime, *, is_led: bool = False
    ) -> None:
        held = self._hosts.get(host)
        held_until = None if held is None else held.until
        self.gaps.answered(
            host,
            status,
            retry_after,
            now=now,
            is_led=is_led,
            held_until=held_until,
            is_neighbour_refused=status in _HOLDING and self._is_neighbour_refused(host, now),
        )

    def _is_neighbour_refused(self, host: str, now: datetime) -> bool:
        """Return True if another name of the domain was refused about now, as far as holds show it."""
        domain = _domain(host)
        return any(
            hold.host != host and _domain(hold.host) == domain and abs(hold.until - now) <= WINDOW
            for hold in self._hosts.values()
        )

    def _add(self, hold: FeedHold) -> None:
        self._feeds[hold.feed_id] = hold
        if hold.url_hash is not None:
            known = self._urls.get(hold.url_hash)
            if known is None or known.until < hold.until:
                self._urls[hold.url_hash] = hold

    def _hold(self, host: str, status: int, retry_after: int | None, now: datetime) -> None:
        before = self._hosts.get(host)
        hold = next_hold(host, status, retry_after, before=before, now=now)
        if before is None or hold.until > before.until:
            self._hosts[host] = hold
            self._new_hosts.append(hold)

    def _answered(self, host: str, status: int) -> None:
        hold = self._hosts.get(host)
        is_over = hold is not None and hold.times > 1 and hold.until <= self._clock()
        if hold is not None and is_over and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            self._hosts[host] = replace(hold, times=1)
            self._recovered.append(host)


def next_hold(
    host: str, status: int, retry_after: int | None, *, before: HostHold | None, now: datetime
) -> HostHold:
    """The hold after a 429 or 503: as long as it requests, at most 1 h, or a day if it is not the first in a
    row; if it requests no wait, 15 min, 30 min, 1 h and so on.

    `before` is the host's last hold, if any is remembered: after a normal response the next one is the second
    in a row again, not the first.
    """
    times = 1 if before is None else before.times + (before.until <= now)
    longest = LONGEST_FIRST if times == 1 else LONGEST
    if retry_after:
        requested = timedelta(seconds=retry_after)
        length, header = min(requested, longest), f"with a wait of {duration(requested)}"
    else:
        # Seven doublings pass 24 h.
        length, header = min(DEFAULT_HOLD * 2 ** min(times - 1, 7), longest), "without a time to wait"
    again = "" if times == 1 else f", {times} times in a row"
    reason = f"{status_name(status)} {header}{again}: on hold for {duration(length)}"
    return HostHold(host=host, until=whole_second(now + length), reason=reason, times=times)


_HOLDING = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


def _drained(waiting: deque[H]) -> list[H]:
    """All entries so far; the other thread may append more."""
    return [waiting.popleft() for _ in range(len(waiting))]


# Gaps between two requests to a host that limits their rate: learned from its 429, and eased slowly.
#
# Pure but for what it remembers: which gap worked is kept between runs by `storage.feeds.stored_holds`, the
# waiting is `pacing.py`'s, and how long a host is left alone after a 429 is `holds.py`'s.

FIRST_GAP = timedelta(seconds=20)
"""After a 429 that does not say how long to wait; three times as much after each further one."""
LONGEST_GAP = timedelta(hours=1)
SHORTEST_GAP = timedelta(seconds=3)
"""A gap that has been eased below this is forgotten: every host is left alone for a second."""
WORKED_FOR = timedelta(days=1)
"""A 429 after so long says that a gap is a little too short, not that it is far from enough."""
EASED_AFTER = 2 * WORKED_FOR
"""A gap that has worked for so long is eased by a tenth, and by another one each day."""
TRIED_FOR = timedelta(hours=2)
"""One request shows for no longer that a gap works. A host that gets few of them, as of images on some days,
would otherwise answer one in eight with a 429, for each step of the easing that goes too far."""
WINDOW = timedelta(hours=1)
"""A 429 without any other request to its host in so long is not about their rate."""
SHORT_WAIT = timedelta(minutes=10)
"""A 503 with a longer wait is about what is out of order, not about the rate of requests."""
_SAME_TIME = timedelta(seconds=10)
"""Requests under way when a gap is learned say no more than the first of them."""


@dataclass(slots=True)
class _Answers:
    """The latest normal answers of a host, or of the hosts of a domain."""

    times: deque[tuple[datetime, str, bool]]
    """With the host, and True where another one has redirected there."""

    def since(self, at: datetime, *, but: str = "") -> int:
        return sum(when >= at and host != but for when, host, _ in self.times)

    def has_direct(self, host: str, at: datetime) -> bool:
        return any(when >= at and each == host and not is_led for when, each, is_led in self.times)


class LearnedGaps:
    """The gaps that one run knows. `changes` may be called in another thread than the rest."""

    def __init__(self) -> None:
        self._gaps: dict[str, HostGap] = {}
        self._answers: dict[str, _Answers] = {}
        self._unavailable: dict[str, datetime] = {}
        """The last 503 with a short wait, by host."""
        self._changed: deque[HostGap] = deque()

    def load(self, gaps: Iterable[HostGap]) -> None:
        """Add the gaps of the database."""
        for gap in gaps:
            known = self._gaps.get(gap.host)
            if known is None or whole_second(known.asked_at) < gap.asked_at:
                self._gaps[gap.host] = gap

    def of(self, host: str) -> HostGap | None:
        """The gap to keep at this host, which it may share with the others of its domain."""
        return self._gaps.get(_domain(host)) or self._gaps.get(host) if self._gaps else None

    def asked(self, host: str, *, now: datetime) -> None:
        """Note a request that has ended."""
        if (gap := self.of(host)) is not None:
            self._change(replace(gap, asked_at=now))

    def answered(
        self,
        host: str,
        status: int,
        retry_after: int | None,
        *,
        now: datetime,
        is_led: bool = False,
        held_until: datetime | None = None,
        is_neighbour_refused: bool = False,
    ) -> None:
        """Note an answer of this host. `retry_after` is the wait that it requests, in seconds; `held_until`
        is the end of its last hold. `is_neighbour_refused`: so was another name of its domain. One name alone
        shows no limit of the domain, or one site could slow down all others of a host of blogs.

        `is_led`: another host has redirected there. Its refusal says nothing where the host answers its own
        feeds: otherwise any redirect could slow these down.
        """
        if status == HTTPStatus.TOO_MANY_REQUESTS or (
            status == HTTPStatus.SERVICE_UNAVAILABLE and retry_after
        ):
            own = self._answers.get(host)
            if is_led and own is not None and own.has_direct(host, now - WINDOW):
                return
            if status == HTTPStatus.TOO_MANY_REQUESTS:
                self._refused(host, retry_after, now, is_neighbour_refused=is_neighbour_refused)
            elif retry_after and timedelta(seconds=retry_after) <= SHORT_WAIT:
                self._was_unavailable(
                    host, retry_after, now, held_until, is_neighbour_refused=is_neighbour_refused
                )
            return
        for key in {host, _domain(host)}:
            self._answers.setdefault(key, _Answers(deque(maxlen=200))).times.append((now, host, is_led))
        gap = self.of(host)
        if gap is None:
            return
        if (idle := now - gap.asked_at - TRIED_FOR) > timedelta(0):
            gap = replace(gap, since=gap.since + idle, asked_at=now)
            self._change(gap)
        if now - gap.since >= EASED_AFTER:
            self._change(replace(gap, gap=gap.gap * 0.9, since=now - WORKED_FOR))

    def changes(self) -> list[HostGap]:
        """The changes to store in the database; each is returned once. One below SHORTEST_GAP is over."""
        changed = [self._changed.popleft() for _ in range(len(self._changed))]
        return list({gap.host: gap for gap in changed}.values())

    def _was_unavailable(
        self,
        host: str,
        retry_after: int,
        now: datetime,
        held_until: datetime | None,
        *,
        is_neighbour_refused: bool,
    ) -> None:
        """Some limit the rate by 503: such a host answers others between two of them."""
        times = [at for at in (self._unavailable.get(host), held_until) if at is not None and at <= now]
        self._unavailable[host] = now
        if times and now - max(times) <= WINDOW and self._count(host, max(times)):
            self._refused(host, retry_after, now, is_neighbour_refused=is_neighbour_refused)

    def _refused(
        self, host: str, retry_after: int | None, now: datetime, *, is_neighbour_refused: bool
    ) -> None:
        known = self.of(host)
        if known is not None and now - known.since < _SAME_TIME:
            return
        if known is not None and known.host != host and not is_neighbour_refused:
            return
        wait = None if not retry_after else min(timedelta(seconds=retry_after), LONGEST_GAP)
        key = host if known is None else known.host
        if known is None or known.host == host:
            # Asked alone this host would not have refused: the names of its domain share a limit.
            since = now - max(wait or FIRST_GAP, known.gap if known is not None else FIRST_GAP)
            if not self._count(host, since) and self._count(_domain(host), since, but=host):
                if not is_neighbour_refused:
                    return
                key = _domain(host)
        answers = self._count(key, now - (wait or WINDOW))
        if known is None and not answers:
            return
        if known is not None and now - known.since >= WORKED_FOR:
            # It has worked: it was eased too far, or the limit has become a little stricter.
            gap = known.gap * 1.25
        elif wait is not None:
            gap = max(wait / max(answers, 1) * 1.1, known.gap * 1.5 if known is not None else SHORTEST_GAP)
        else:
            gap = known.gap * 3 if known is not None else FIRST_GAP
        self._change(HostGap(host=key, gap=min(gap, LONGEST_GAP), since=now, asked_at=now))

    def _count(self, key: str, since: datetime, *, but: str = "") -> int:
        answers = self._answers.get(key)
        return 0 if answers is None else answers.since(since, but=but)

    def _change(self, gap: HostGap) -> None:
        if gap.gap < SHORTEST_GAP:
            self._gaps.pop(gap.host, None)
        else:
            self._gaps[gap.host] = gap
        self._changed.append(gap)


def _domain(host: str) -> str:
    """The key of a gap that all names of a host's domain share; an address has none but its own."""
    return host if network_of(host) is not None else f".{registered_domain(host)}"
