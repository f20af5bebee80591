"""A publisher's view of a feed reader: each request judged by what was answered before, faults by kind.

The rules are RFC 9110, RFC 9111 and RSS 2.0 as publishers read them (Rachel Kroll's feed reader score, the
guide of openrss.org), and what benchmarks/politeness.md promises beyond them. Nothing of the product is
called. Which publishers there are is kinds.py's, what an answer says answers.py's.

"Stored" is a 200 with a whole document that can be read; fortnight.py compares that with the database.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

from rss_pipeline_tests.politeness.answers import (
    DAY,
    Said,
    Wishes,
    checked_after,
    date_of,
    freshness,
    rate_limit_reset,
    retry_after,
    usable,
)
from rss_pipeline_tests.support.server import Request

FaultKind = Literal[
    "validator invented",
    "validator dropped",
    "validator altered",
    "validator sent elsewhere",
    "before the interval",
    "before the answer is stale",
    "in a skipped hour",
    "during backoff",
    "during a hold",
    "requests too close",
    "two connections",
    "cookie",
    "referer",
    "authorization",
    "user agent",
    "accept encoding",
    "method",
    "address",
    "validators not kept",
    "an image again",
    "an image not kept",
    "a Referer forgotten",
    "over the limit",
    "waits longer than its neighbours",
    "a false validator",
    "an item not kept",
]

SPREAD = 0.97
"""The operator's interval may be undercut by as much; what a publisher requests never."""
SHORTEST = timedelta(minutes=15)
FIRST_BACKOFF = timedelta(minutes=30)
CHALLENGE = timedelta(hours=6)
BARE_429 = timedelta(minutes=15)
LONGEST_HOST_HOLD = timedelta(hours=1)
LEARNED = timedelta(days=2)
"""From when on a limit is known to whoever learns from 429."""
IMAGE_DELAY = timedelta(seconds=0.2)
"""After each request for an image, on each of two connections to its host."""
IMAGE_AGAIN = timedelta(minutes=30)
"""The first failure of an image may pass within the hour."""
IN_FLIGHT = timedelta(seconds=1)
"""A request for an image may be on its way when the other connection has to wait."""
MOST_REFUSED = 0.05
MOST_WAITING = 3.0
"""No feed of a host with a limit waits so many times as long as another."""
SAME_VISIT = timedelta(seconds=60)
"""A redirect is followed within that."""
SAME_ROUND = timedelta(minutes=3)
"""Two feeds that were led to a URL within that: which of them a request there is for cannot be known."""
_REFUSALS = (429, 503)
"""The answers of a host that limits the rate."""
NEVER = datetime.min.replace(tzinfo=UTC)

Url = tuple[str, str]
"""Host and request target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    kind: FaultKind
    feed: str
    at: datetime
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The validators that came with a stored document."""

    etag: str | None = None
    modified: str | None = None
    dated: datetime = NEVER
    """The Date of the answer that gave `modified`, or its time."""
    is_false: bool = False
    """Another document came under the same ones: none is wanted until one changes."""


@dataclass(slots=True, kw_only=True)
class Subscription:
    """The publisher's memory of one feed and of the client's visits."""

    id: str
    urls: frozenset[Url]
    interval: timedelta | None
    """None is up to the client, from 15 minutes on."""
    requests: int = 0
    conditional: int = 0
    bodies: int = 0
    not_modified: int = 0
    apart: int = 0
    """Requests without validators after a long time of nothing but 304."""
    stored_from: Url | None = None
    validators: dict[Url, "Given"] = field(default_factory=dict)
    """The last ones from each URL that came with a stored document."""
    digest: int = 0
    """A hash of the stored document."""
    headers: dict[str, str] = field(default_factory=dict)
    """Headers of the stored answer, as every 304 freshened them (RFC 9111 4.3.4)."""
    wishes: Wishes = field(default_factory=Wishes)
    body_at: datetime | None = None
    failures: int = 0
    last_at: datetime = NEVER
    leads_to: str | None = None
    follow_at: datetime = NEVER
    """The instant from which on its last redirect may be followed."""
    led_by: str | None = None
    """The first host of this visit, where it has redirected."""
    interval_until: datetime = NEVER
    stale_at: datetime = NEVER
    backoff_until: datetime = NEVER
    held_until: datetime = NEVER
    held_by: str | None = None
    """The host that requested it: a redirect may have led there."""
    led_until: datetime = NEVER
    """The instant from which the redirects of this visit may be followed again."""
    answered: list[tuple[datetime, int]] = field(default_factory=list)
    """Each answer that is no redirect, and its status."""
    cookies: dict[str, str] = field(default_factory=dict)
    """The cookie that a redirect of this visit has set, by host."""

    @property
    def may_be_stuck(self) -> bool:
        return self.not_modified > 0 and self.failures == 0

    def usable_at(self, url: Url) -> tuple[str | None, str | None]:
        given = self.validators.get(url, Given())
        return usable(given.etag, given.modified, dated=given.dated)


@dataclass(slots=True, kw_only=True)
class Picture:
    """The publisher's memory of the requests for one of its images."""

    asked_at: datetime = NEVER
    referer: str | None = None
    refused: bool = False
    """At `asked_at`: it may be requested another way."""
    has_failed: bool = False
    """At `asked_at`: another request may be made, half an hour later at the soonest, once on that day."""
    before: datetime = NEVER
    """The time of the request before it."""


@dataclass(slots=True, kw_only=True)
class PictureHost:
    """The memory of a host of images."""

    asked: list[datetime] = field(default_factory=list)
    answered: list[tuple[datetime, int]] = field(default_factory=list)
    held_at: datetime = NEVER
    held_until: datetime = NEVER
    wants_referer_since: datetime | None = None


class Scorer:
    """It gets every request and its answer, in their order. Time is `clock`'s."""

    def __init__(self, clock: Callable[[], datetime], *, host_delay: float) -> None:
        self.faults: list[Fault] = []
        self.by_hand: frozenset[str] = frozenset()
        """Feeds that a person requests now: their interval and backoff do not count, holds do."""
        self.subscriptions: dict[str, Subscription] = {}
        self._clock = clock
        self._host_delay = timedelta(seconds=host_delay)
        self._of: dict[Url, list[Subscription]] = {}
        self._asked: dict[str, datetime] = {}
        self._host_held: dict[str, datetime] = {}
        self._url_held: dict[Url, datetime] = {}
        self._pictures: dict[Url, Picture] = {}
        self._picture_hosts: dict[str, PictureHost] = {}
        self._unavailable: dict[str, dict[str, datetime]] = {}

    def subscribe(self, id: str, urls: Iterable[Url], *, interval: timedelta | None) -> None:
        """From now on requests to these URLs are a feed's."""
        subscription = Subscription(id=id, urls=frozenset(urls), interval=interval)
        self.subscriptions[id] = subscription
        for url in subscription.urls:
            self._of.setdefault(url, []).append(subscription)

    def pictures(self, hosts: Iterable[str]) -> list[int]:
        """The statuses of all answers of these hosts to requests for images."""
        known = [self._picture_hosts[host] for host in hosts if host in self._picture_hosts]
        return [status for host in known for _, status in host.answered]

    def saw_picture(self, request: Request, said: Said, *, pages: str, connections: int) -> None:
        """One request for an image, shown by items with pages that are all at the site `pages`."""
        at, name = self._clock(), request.host
        host = self._picture_hosts.setdefault(name, PictureHost())
        image = self._pictures.setdefault((name, request.target), Picture())
        referer = request.headers.get("referer")
        self._check_identity(name, request)
        for header in ("cookie", "authorization", "if-none-match", "if-modified-since"):
            if header in request.headers:
                self.fault("address", name, f"{header}: {request.headers[header]}")
        if referer not in (None, pages):
            self.fault("referer", name, f"{referer}")
        if connections > 2:
            self.fault("two connections", name, f"{connections} for images")
        if len(host.asked) > 1 and at - host.asked[-2] < IMAGE_DELAY:
            self.fault("requests too close", name, f"three within {at - host.asked[-2]}")
        if host.held_at + IN_FLIGHT < at < host.held_until:
            self.fault("during a hold", name, f"{request.target} until {host.held_until}")
        again = image.refused and referer != image.referer
        last_day = image.before if image.has_failed else image.asked_at
        if at - last_day < DAY or at - image.asked_at < IMAGE_AGAIN:
            self.fault("an image again", name, f"{request.target}, {at - image.asked_at} after the last time")
        since = host.wants_referer_since
        if referer is None and since is not None and at > since + IN_FLIGHT and not again:
            self.fault("a Referer forgotten", name, request.target)
        if since is None and again and referer is not None and said.status == 200:
            host.wants_referer_since = at
        image.before, image.asked_at, image.referer = image.asked_at, at, referer
        image.refused = said.status in (401, 403)
        wants_fewer = said.status in _REFUSALS and (said.status == 429 or "retry-after" in said.headers)
        image.has_failed = not wants_fewer and said.status not in (200, 301, 302, 307, 308)
        host.asked.append(at)
        host.answered.append((at, said.status))
        asked = retry_after(said.headers, at=at)
        if said.status == 429 or (said.status == 503 and asked):
            host.held_at, host.held_until = at, at + min(asked or BARE_429, LONGEST_HOST_HOLD)

    def judge_pictures(self, hosts: Iterable[str], *, since: datetime) -> None:
        """At the end, of hosts with a limit: how many of the requests for images it refused."""
        for name in hosts:
            known = self._picture_hosts.get(name, PictureHost()).answered
            later = [status for at, status in known if at >= since + LEARNED]
            if later.count(429) > MOST_REFUSED * len(later):
                self.fault("over the limit", name, f"{later.count(429)} of {len(later)} answers are 429")

    def judge_limit(self, ids: Iterable[str], *, since: datetime) -> None:
        """At the end, of feeds that share a limit: how many of their requests it refused, and whether one of
        them waited much longer than the others, from when on the limit could be known."""
        feeds = [self.subscriptions[id] for id in ids]
        later = {feed.id: [status for at, status in feed.answered if at >= since + LEARNED] for feed in feeds}
        answers = sum(map(len, later.values()))
        refused = sum(status in _REFUSALS for statuses in later.values() for status in statuses)
        if refused > MOST_REFUSED * answers:
            self.fault("over the limit", feeds[0].id, f"{refused} of {answers} answers are 429 or 503")
        visits = {id: sum(status not in _REFUSALS for status in statuses) for id, statuses in later.items()}
        most, (id, least) = max(visits.values()), min(visits.items(), key=lambda pair: pair[1])
        if least * MOST_WAITING <= most:
            self.fault("waits longer than its neighbours", id, f"{least} visits, another had {most}")

    def fault(self, kind: FaultKind, feed: str, what: str = "") -> None:
        self.faults.append(Fault(kind=kind, feed=feed, at=self._clock(), what=what))

    def count(self, id: str | None = None) -> Counter[FaultKind]:
        return Counter(fault.kind for fault in self.faults if id in (None, fault.feed))

    def saw(self, request: Request, said: Said, *, connections: int = 1) -> None:
        """One request to a URL of a subscription, and what was answered. `connections` its host has open."""
        at, url = self._clock(), (request.host, request.target)
        feed = self._asking(url)
        feed.requests += 1
        conditional = not {"if-none-match", "if-modified-since"}.isdisjoint(request.headers)
        feed.conditional += conditional
        if feed.leads_to is None or at - feed.last_at > SAME_VISIT:
            feed.cookies = {}
            self._check_schedule(feed, at)
            feed.led_until = NEVER
        if feed.leads_to is not None and _place(feed.leads_to) == "".join(url) and at < feed.follow_at:
            self.fault("before the answer is stale", feed.id, f"to be followed from {feed.follow_at} on")
        self._check_shape(feed, request)
        self._check_host(feed, url, at, connections)
        self._check_validators(feed, url, request, at)
        led = [each for each in self._led_to(url) if at - each.last_at <= SAME_ROUND]
        self._note(feed, url, said, at, conditional=conditional)
        if len(led) > 1:
            # Only the address's own hold, and its host's, can be held against them.
            for each in led:
                each.failures = 0
                each.interval_until = each.backoff_until = NEVER

    def _asking(self, url: Url) -> Subscription:
        """The feed that a request is for: of several that lead to a URL, the one that was led there last."""
        return max(self._led_to(url) or self._of[url], key=lambda feed: feed.last_at)

    def _led_to(self, url: Url) -> list[Subscription]:
        """The feeds with a last answer that has redirected there."""
        place = "".join(url)
        feeds = self._of[url]
        return [feed for feed in feeds if feed.leads_to is not None and _place(feed.leads_to) == place]

    def saw_stray(self, request: Request) -> None:
        """A request to a URL that no one subscribed to."""
        self.fault("address", request.host, f"{request.method} {request.target}")

    def kept(self, id: str, etag: str | None, modified: str | None) -> None:
        """The state of a feed in the client's own store."""
        feed = self.subscriptions[id]
        given = Given() if feed.stored_from is None else feed.validators[feed.stored_from]
        if (etag, modified) != (given.etag, given.modified):
            what = f"{etag}, {modified} for {given.etag}, {given.modified}"
            self.fault("validators not kept", id, what)

    def _check_shape(self, feed: Subscription, request: Request) -> None:
        headers = request.headers
        self._check_identity(feed.id, request)
        for name in ("cookie", "referer", "authorization"):
            if name in headers and not (name == "cookie" and headers[name] == feed.cookies.get(request.host)):
                self.fault(name, feed.id, headers[name])

    def _check_identity(self, id: str, request: Request) -> None:
        if request.method != "GET":
            self.fault("method", id, request.method)
        agent = request.headers.get("user-agent", "")
        if "/" not in agent or not ("@" in agent or "://" in agent):
            self.fault("user agent", id, agent)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            self.fault("accept encoding", id, request.headers.get("accept-encoding", ""))

    def _check_host(self, feed: Subscription, url: Url, at: datetime, connections: int) -> None:
        host = url[0]
        if connections > 1:
            self.fault("two connections", feed.id, f"{connections} to {host}")
        before = self._asked.get(host)
        if before is not None and at - before < self._host_delay:
            self.fault("requests too close", feed.id, f"{at - before} to {host}")
        self._asked[host] = at
        held = max(
            self._host_held.get(host, NEVER),
            self._url_held.get(url, NEVER),
            feed.held_until if feed.held_by == host else NEVER,
        )
        if at < held:
            self.fault("during a hold", feed.id, f"{host} until {held}")

    def _check_schedule(self, feed: Subscription, at: datetime) -> None:
        if feed.id in self.by_hand:
            return
        if at < feed.interval_until:
            self.fault("before the interval", feed.id, f"not before {feed.interval_until}")
        if at < feed.stale_at:
            self.fault("before the answer is stale", feed.id, f"not before {feed.stale_at}")
        if at < feed.led_until:
            self.fault("before the answer is stale", feed.id, f"a redirect, not before {feed.led_until}")
        if at < feed.backoff_until:
            self.fault("during backoff", feed.id, f"not before {feed.backoff_until}")
        skipped = at.hour in feed.wishes.hours or at.weekday() in feed.wishes.days
        if skipped and at - feed.last_at < DAY:
            self.fault("in a skipped hour", feed.id, f"{at:%A %H:%M}")

    def _check_validators(self, feed: Subscription, url: Url, request: Request, at: datetime) -> None:
        sent = (request.headers.get("if-none-match"), request.headers.get("if-modified-since"))
        stored = feed.usable_at(url)
        if url not in feed.validators:
            others = {value for each in feed.validators for value in feed.usable_at(each)}
            for given in filter(None, sent):
                kind: FaultKind = "validator sent elsewhere" if given in others else "validator invented"
                self.fault(kind, feed.id, given)
            return
        is_false = feed.validators[url].is_false
        if sent == (None, None) != stored and (is_false or self._is_due_apart(feed, at)):
            feed.apart += not is_false
            return
        if is_false:
            self.fault("a false validator", feed.id, f"{sent}")
            return
        for value, known in zip(sent, stored, strict=True):
            if value is None and known is not None:
                self.fault("validator dropped", feed.id, known)
            elif value is not None and known is None:
                self.fault("validator invented", feed.id, value)
            elif value != known:
                self.fault("validator altered", feed.id, f"{value} for {known}")

    @staticmethod
    def _is_due_apart(feed: Subscription, at: datetime) -> bool:
        longest = checked_after(feed.wishes.dates)
        return feed.may_be_stuck and feed.body_at is not None and at - feed.body_at >= longest

    def _note(self, feed: Subscription, url: Url, said: Said, at: datetime, *, conditional: bool) -> None:
        feed.last_at, feed.leads_to = at, None
        led_by, feed.led_by = feed.led_by, None
        if said.status in (301, 302, 303, 307, 308):
            feed.leads_to = said.headers["location"]
            feed.follow_at = at + (retry_after(said.headers, at=at) or timedelta(0))
            feed.led_by = led_by or url[0]
            feed.led_until = max(feed.led_until, at + _stays(said.headers, at=at))
            if "set-cookie" in said.headers:
                feed.cookies[url[0]] = said.headers["set-cookie"].partition(";")[0]
            return
        feed.answered.append((at, said.status))
        if said.status == 304 and conditional:
            self._note_current(feed, url, said, at)
        elif said.document is not None:
            feed.bodies += 1
            feed.body_at = at
            before, was_false = feed.usable_at(url), feed.validators.get(url, Given()).is_false
            is_other = url == feed.stored_from and feed.digest != said.digest
            feed.validators[url] = Given()
            feed.stored_from = url
            feed.headers = {}
            feed.wishes, feed.digest = said.document, said.digest
            self._note_current(feed, url, said, at)
            if before == feed.usable_at(url) != (None, None) and not conditional and (was_false or is_other):
                feed.validators[url] = replace(feed.validators[url], is_false=True)
        else:
            feed.bodies += said.status == 200
            self._note_failure(feed, url, said, at, is_led=led_by not in (None, url[0]))

    def _note_current(self, feed: Subscription, url: Url, said: Said, at: datetime) -> None:
        feed.not_modified += said.status == 304
        feed.failures = 0
        feed.headers |= said.headers
        given = feed.validators.get(url, Given())
        given = replace(given, etag=said.headers.get("etag", given.etag))
        if "last-modified" in said.headers:
            date = date_of(said.headers, at=at)
            given = replace(given, modified=said.headers["last-modified"], dated=date)
        feed.validators[url] = given
        asked = retry_after(said.headers, at=at) or timedelta(0)
        fresh = max(freshness(feed.headers, at=at), feed.wishes.ttl, asked)
        feed.interval_until = at + (SHORTEST if feed.interval is None else feed.interval * SPREAD)
        feed.stale_at = at + min(fresh, DAY)
        feed.backoff_until = feed.held_until = NEVER

    def _note_failure(self, feed: Subscription, url: Url, said: Said, at: datetime, *, is_led: bool) -> None:
        host = url[0]
        feed.failures += 1
        pause = min(FIRST_BACKOFF * 2 ** min(feed.failures - 1, 6), DAY)
        if said.status == 410:
            pause = DAY
        elif said.headers.get("cf-mitigated") == "challenge":
            pause = max(pause, CHALLENGE)
        feed.held_by = host
        asked = retry_after(said.headers, at=at)
        if said.status == 429 and not asked:
            asked = rate_limit_reset(said.headers)
        feed.backoff_until = at + max(pause, asked or timedelta(0), _stays(said.headers, at=at))
        if said.status == 429:
            if not is_led:
                self._hold(host, at + min(asked or BARE_429, LONGEST_HOST_HOLD))
            feed.held_until = self._url_held[url] = at + (asked or BARE_429)
        elif said.status == 503 and asked:
            feed.held_until = at + asked
            others = self._unavailable.setdefault(host, {})
            others[feed.id] = at + asked
            if not is_led and sum(until > at for until in others.values()) > 1:
                self._hold(host, at + min(asked, LONGEST_HOST_HOLD))

    def _hold(self, host: str, until: datetime) -> None:
        self._host_held[host] = max(self._host_held.get(host, NEVER), until)


def _place(url: str) -> str:
    """Host and target, without the port."""
    parts = urlsplit(url)
    return f"{parts.hostname}{parts.path}"


def _stays(headers: Mapping[str, str], *, at: datetime) -> timedelta:
    """The seconds for which a redirect or an error holds: by Retry-After, or as it is fresh."""
    return max(retry_after(headers, at=at) or timedelta(0), freshness(headers, at=at))
