"""Publishers of many kinds on one loopback server, each on hosts of its own, with a scorer that hears all."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from string import ascii_lowercase
from typing import Any

from rss_pipeline.collector.http.guarded_transport import look_up
from rss_pipeline_tests.politeness.answers import read
from rss_pipeline_tests.politeness.publishers import PAGES, START, Ask, Kind, Page
from rss_pipeline_tests.politeness.scoring import Scorer, Url
from rss_pipeline_tests.support.server import Answer, FeedServer, Request, Route

_QUIET_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A kind's line of the table."""

    kind: str
    requests: int
    conditional: int
    bodies: int
    not_modified: int
    refused: int
    """429."""
    images: int
    """Requests for images."""
    apart: int
    faults: int


class Stand:
    """A feed of `hours` without an interval of its own is one with a reader that promises that interval.

    `deadline` is how many seconds that reader waits for an answer.
    """

    def __init__(
        self,
        server: FeedServer,
        kinds: Sequence[Kind],
        clock: Callable[[], datetime],
        *,
        hours: int,
        host_delay: float,
        deadline: float,
    ) -> None:
        self.scorer = Scorer(clock, host_delay=host_delay)
        self.feeds: dict[str, Kind] = {}
        self.entries: list[dict[str, Any]] = []
        """The feeds as a registry lists them."""
        self._server = server
        self._kinds = kinds
        self._clock = clock
        self._deadline = deadline
        self._known: set[Url] = set()
        self._hosts: dict[str, set[str]] = {}
        """Rules of each kind."""
        self._names: dict[str, str] = {}
        """The address of each host that has a name."""
        for number, kind in enumerate(kinds):
            self._publish(number, kind, hours)

    def url(self, id: str) -> str:
        return next(entry["url"] for entry in self.entries if entry["id"] == id)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """The name server of the client."""
        return [self._names[host]] if host in self._names else await look_up(host, port)

    def judge(self) -> None:
        """At the end: what shows only in all requests together."""
        for kind in self._kinds:
            if kind.is_limited and kind.images:
                self.scorer.judge_pictures(self._hosts[kind.name], since=START)
            elif kind.is_limited:
                ids = [id for id, its in self.feeds.items() if its is kind]
                self.scorer.judge_limit(ids, since=START)

    def settle(self) -> set[Url]:
        """After a poll: wait until all connections are closed, and report requests that no one was
        subscribed to. Gives the URLs that were requested since the last time."""
        until = time.monotonic() + _QUIET_SECONDS
        while self._server.open.get("", 0) and time.monotonic() < until:
            time.sleep(0.005)
        asked = set()
        for request in self._server.requests:
            url = (request.host, request.target)
            asked.add(url)
            if url not in self._known:
                self.scorer.saw_stray(request)
        self._server.forget()
        return asked

    def table(self) -> list[Row]:
        """The table of results so far, a row a kind."""
        rows = []
        for kind in self._kinds:
            ids = [id for id, its in self.feeds.items() if its is kind]
            feeds = [self.scorer.subscriptions[id] for id in ids]
            at_fault = {*ids, *self._hosts[kind.name]}
            rows.append(
                Row(
                    kind=kind.name,
                    requests=sum(feed.requests for feed in feeds),
                    conditional=sum(feed.conditional for feed in feeds),
                    bodies=sum(feed.bodies for feed in feeds),
                    not_modified=sum(feed.not_modified for feed in feeds),
                    refused=sum(status == 429 for feed in feeds for _, status in feed.answered)
                    + (pictures := self.scorer.pictures(self._hosts[kind.name])).count(429),
                    images=len(pictures),
                    apart=sum(feed.apart for feed in feeds),
                    faults=sum(fault.feed in at_fault for fault in self.scorer.faults),
                )
            )
        return rows

    def _publish(self, number: int, kind: Kind, hours: int) -> None:
        places = {place: _place(number, place) for place in kind.pages}
        self._hosts[kind.name] = {host for host, _ in places.values()}
        for host, _ in places.values():
            self._server.listen(host)
        urls = {
            place: self._server.url(self._name(number, kind, place, host), path)
            for place, (host, path) in places.items()
        }
        memory: dict[str, Any] = {}
        for place, page in kind.pages.items():
            told = self._told(page, urls, memory, is_image=place in kind.images)
            self._server.route(*places[place], told)
        self._known |= set(places.values())
        for place in kind.feeds:
            id = f"{number:02}-{place.replace('/', '-')}"
            options = {"interval": f"{hours}h", **kind.options}
            interval = options["interval"]
            is_led = place in kind.feeds[: kind.leading]
            led_to = [each for each in kind.pages if is_led and each not in (*kind.feeds, *kind.images)]
            self.scorer.subscribe(
                id,
                [places[each] for each in (place, *led_to)],
                interval=None if interval is None else timedelta(hours=int(interval.removesuffix("h"))),
            )
            given = {name: value for name, value in options.items() if value is not None}
            # The pages of a feed that opens private hosts are named to no one.
            opened = {} if kind.images else {"allow_private": ["127.0.0.0/8"]}
            self.entries.append({"url": urls[place], "id": id, **opened, **given})
            self.feeds[id] = kind

    def _name(self, number: int, kind: Kind, place: str, address: str) -> str:
        """The host of a page as its URL has it."""
        if not kind.service:
            return address
        name = f"{place.partition('/')[0]}.service{number}.example"
        self._names[name] = address
        return name

    def _told(self, page: Page, urls: Mapping[str, str], memory: dict[str, Any], *, is_image: bool) -> Route:
        """The page as a route that reports each request to the scorer."""
        asked = 0

        def route(request: Request) -> Answer:
            nonlocal asked
            answer = page(Ask(request=request, at=self._clock(), number=asked, urls=urls, memory=memory))
            asked += 1
            said = read(answer, deadline=self._deadline)
            connections = self._server.open[request.host]
            if is_image:
                self.scorer.saw_picture(request, said, pages=PAGES, connections=connections)
                return answer
            self.scorer.saw(request, said, connections=connections)
            typed = said.document is not None and answer.raw is None
            return replace(answer, headers=_with_type(answer)) if typed else answer

        return route


def _place(number: int, place: str) -> Url:
    letter, _, path = place.partition("/")
    return f"127.0.{1 + ascii_lowercase.index(letter)}.{number + 1}", f"/{path}"


def _with_type(answer: Answer) -> tuple[tuple[str, str], ...]:
    given = answer.headers.items() if isinstance(answer.headers, Mapping) else answer.headers
    return (("Content-Type", "application/rss+xml"), *given)
