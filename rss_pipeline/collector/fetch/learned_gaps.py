"""Gaps between two requests to a host that limits their rate: learned from its 429, and eased slowly.

Pure but for what it remembers: which gap worked is kept between runs by `storage.feeds.holds`, the waiting is
`pacing.py`'s, and how long a host is left alone after a 429 is `holds.py`'s.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus

from rss_pipeline.collector.models.clock import whole_second
from rss_pipeline.collector.models.hold import HostGap
from rss_pipeline.collector.models.network import network_of, registered_domain

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
_SAME_TIME = timedelta(seconds=10)
"""Requests under way when a gap is learned say no more than the first of them."""


@dataclass(slots=True)
class _Answers:
    """The latest normal answers of a host, or of the hosts of a domain."""

    times: deque[tuple[datetime, str]]

    def since(self, at: datetime, *, but: str = "") -> int:
        return sum(when >= at and host != but for when, host in self.times)


class LearnedGaps:
    """The gaps that one run knows. `changes` may be called in another thread than the rest."""

    def __init__(self) -> None:
        self._gaps: dict[str, HostGap] = {}
        self._answers: dict[str, _Answers] = {}
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

    def answered(self, host: str, status: int, retry_after: int | None, *, now: datetime) -> None:
        """Note an answer of this host. `retry_after` is the wait that it requests, in seconds."""
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            self._refused(host, retry_after, now)
            return
        for key in {host, _domain(host)}:
            self._answers.setdefault(key, _Answers(deque(maxlen=200))).times.append((now, host))
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

    def _refused(self, host: str, retry_after: int | None, now: datetime) -> None:
        known = self.of(host)
        if known is not None and now - known.since < _SAME_TIME:
            return
        wait = None if not retry_after else min(timedelta(seconds=retry_after), LONGEST_GAP)
        key = host if known is None else known.host
        if known is None or known.host == host:
            # Asked alone this host would not have refused: the names of its domain share a limit.
            since = now - max(wait or FIRST_GAP, known.gap if known is not None else FIRST_GAP)
            if not self._count(host, since) and self._count(_domain(host), since, but=host):
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
