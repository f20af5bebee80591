"""The publishers' common ground: a feed that grows with time, its validators, and who honours which of them.

The kinds themselves are kinds.py's. Each behaves by the day, counted from the start, and by how often it was
requested.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, Request

START = datetime(2026, 3, 2, 12, 0, 0, 700_000, tzinfo=UTC)
"""A Monday. Not a whole second: what is kept in whole ones must not come early."""
EDITION_HOURS = 30
_SHOWN = 5
FIRST_ITEMS = 5
"""Items of a feed that has published before its first day."""
PHOTOS = 12
_PHOTOS_OF_AN_ITEM = 4
PAGES = "http://example.com/"
"""The site of all items' pages."""


def edition_at(at: datetime) -> int:
    """Grows by one with each item."""
    return int((at - START) / timedelta(hours=EDITION_HOURS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as a publisher sees it."""

    request: Request
    at: datetime
    number: int
    """The number of the request of this URL, from 0."""
    urls: Mapping[str, str]
    """By page, where the others of the kind are."""
    memory: dict[str, Any]
    """The publisher's memory of all requests to it."""

    @property
    def day(self) -> float:
        return (self.at - START) / timedelta(days=1)

    @property
    def edition(self) -> int:
        return edition_at(self.at)

    def header(self, name: str) -> str | None:
        return self.request.headers.get(name)


Page = Callable[[Ask], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A publisher: pages by `host/path`, where hosts are a letter each, and the feeds and images among them.

    Hosts of a `service` are names of one registered domain, of which only the feeds are.
    """

    name: str
    pages: Mapping[str, Page]
    feeds: tuple[str, ...] = ("a/feed",)
    images: tuple[str, ...] = ()
    gives_images: bool = False
    """Some requests for them are answered with images: after a week at the latest all items have theirs."""
    leading: int = 1
    """So many feeds, the first ones, are led to the pages that are no feeds."""
    service: bool = False
    is_whole: bool = False
    """Each item that was listed at a visit is stored after it, whatever its validators say."""
    is_limited: bool = False
    """It allows so many requests in a time, to all of its feeds together."""
    days: int = 14
    options: Mapping[str, Any] = field(default_factory=dict)
    """The number of its feeds in the registry."""


def document(edition: int, extra: str = "", *, is_dated: bool = False) -> bytes:
    """The feed as of an edition: its newest items. `extra` is in the channel. `is_dated`: each has the date
    of its edition, the first ones before the first day; otherwise all have one, which shows no rhythm."""
    guids = [f"item-{n}" for n in range(max(edition - _SHOWN, 0), edition + 1)]
    body = rss(*guids).replace(b"<channel>", b"<channel>" + extra.encode())
    return re.sub(rb"(?<=/item-)([0-9]+)(</link><pubDate>)[^<]*", _dated, body) if is_dated else body


def _dated(found: re.Match[bytes]) -> bytes:
    date = http_date(START + timedelta(hours=EDITION_HOURS * (int(found[1]) - FIRST_ITEMS)))
    return found[1] + found[2] + date.encode()


def pictured(ask: Ask) -> Answer:
    """A feed with a logo in each of its items, and photos that other items may show as well."""

    def images(found: re.Match[bytes]) -> bytes:
        first = int(found[1]) * _PHOTOS_OF_AN_ITEM
        shown = ["i/logo.png", *(f"i/{(first + n) % PHOTOS}.png" for n in range(_PHOTOS_OF_AN_ITEM))]
        return found[0] + "".join(f'<img src="{ask.urls[place]}">' for place in shown).encode()

    if ask.header("if-none-match") == edition_etag(ask):
        return Answer(status=304)
    body = re.sub(rb"<p>Text of item-([0-9]+)</p>", images, document(ask.edition))
    return Answer(body=body, headers={"ETag": edition_etag(ask)})


def edition_etag(ask: Ask) -> str:
    return f'"edition-{ask.edition}"'


def edition_date(ask: Ask) -> str:
    return http_date(START + timedelta(hours=EDITION_HOURS * ask.edition))


def http_date(at: datetime) -> str:
    return format_datetime(at.replace(microsecond=0), usegmt=True)


def page(
    *,
    etag: Callable[[Ask], str | None] = lambda _: None,
    modified: Callable[[Ask], str | None] = lambda _: None,
    on_304: Callable[[Ask], Mapping[str, str]] | None = None,
    extra: str = "",
    headers: Callable[[Ask], Mapping[str, str]] = lambda _: {},
    **answer: Any,
) -> Page:
    """A feed with these validators; whichever of them is sent back as it was gets a 304, If-None-Match first
    (RFC 9110 13.2.2). A 304 has the same headers, or `on_304`. `answer` are fields of the 200."""

    def serve(ask: Ask) -> Answer:
        now = {"ETag": etag(ask), "Last-Modified": modified(ask)}
        fields = {name: value for name, value in now.items() if value is not None} | dict(headers(ask))
        if _is_current(ask, now["ETag"], now["Last-Modified"]):
            return Answer(status=304, headers=fields if on_304 is None else on_304(ask))
        return Answer(body=document(ask.edition, extra), headers=fields, **answer)

    return serve


def _is_current(ask: Ask, etag: str | None, modified: str | None) -> bool:
    match ask.header("if-none-match"), ask.header("if-modified-since"):
        case None, None:
            return False
        case None, since:
            return since == modified
        case known, _:
            return known == etag


both = page(etag=edition_etag, modified=edition_date)


def fixed(answer: Answer) -> Page:
    return lambda _: answer


def leads(status: int, to: str, **headers: str) -> Page:
    """Redirects to a page of the same kind."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda ask: Answer(status=status, headers={"Location": ask.urls[to], **named})


def between(begin: float, end: float, then: Page, otherwise: Page = both) -> Page:
    """`then` from one day to another, else `otherwise`."""
    return lambda ask: then(ask) if begin <= ask.day < end else otherwise(ask)


def every(nth: int, then: Page, otherwise: Page = both) -> Page:
    """`then` at each nth request."""
    return lambda ask: then(ask) if ask.number % nth == nth - 1 else otherwise(ask)


def limited(
    inner: Page,
    *,
    every: timedelta,
    most: int = 1,
    counts_refusals: bool = False,
    says_when: bool = False,
    status: int = 429,
) -> Page:
    """429, or another status, to all but `most` requests in each `every`, to all pages of the kind together;
    `says_when` they may come again. `counts_refusals`: also a request that is refused is one of them."""

    def serve(ask: Ask) -> Answer:
        let_in = ask.memory.setdefault("let in", [])
        let_in[:] = [at for at in let_in if ask.at - at < every]
        refused = len(let_in) >= most
        wait = every - (ask.at - let_in[-most]) if refused else timedelta(0)
        if not refused or counts_refusals:
            let_in.append(ask.at)
        if not refused:
            return inner(ask)
        return Answer(
            status=status, headers={"Retry-After": str(math.ceil(wait.total_seconds()))} if says_when else {}
        )

    return serve


def hotlinked(inner: Page) -> Page:
    """403 to whoever does not come from the pages of the items."""
    return lambda ask: inner(ask) if ask.header("referer") == PAGES else Answer(status=403)


def with_fields(inner: Page, **fields: Any) -> Page:
    """The same answers with other fields of `Answer`."""
    return lambda ask: replace(inner(ask), **fields)
