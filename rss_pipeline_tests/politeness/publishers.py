"""The publishers' common ground: a feed that grows with time, its validators, and who honours which of them.

The kinds themselves are kinds.py's. Each behaves by the day, counted from the start, and by how often it was
asked.
"""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request as a publisher sees it."""

    request: Request
    at: datetime
    number: int
    """Of this URL, from 0."""
    urls: Mapping[str, str]
    """By page, where the others of the kind are."""

    @property
    def day(self) -> float:
        return (self.at - START) / timedelta(days=1)

    @property
    def edition(self) -> int:
        """Grows by one with each item."""
        return int((self.at - START) / timedelta(hours=EDITION_HOURS))

    def header(self, name: str) -> str | None:
        return self.request.headers.get(name)


Page = Callable[[Ask], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A publisher: pages by `host/path`, where hosts are a letter each, and the feeds among them."""

    name: str
    pages: Mapping[str, Page]
    feeds: tuple[str, ...] = ("a/feed",)
    days: int = 14
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of its feeds in the registry."""


def document(edition: int, extra: str = "") -> bytes:
    """The feed as of an edition: its newest items. `extra` stands in the channel."""
    guids = [f"item-{n}" for n in range(max(edition - _SHOWN, 0), edition + 1)]
    return rss(*guids).replace(b"<channel>", b"<channel>" + extra.encode())


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


def leads(status: int, to: str) -> Page:
    """Redirects to a page of the same kind."""
    return lambda ask: Answer(status=status, headers={"Location": ask.urls[to]})


def between(begin: float, end: float, then: Page, otherwise: Page = both) -> Page:
    """`then` from one day to another, else `otherwise`."""
    return lambda ask: then(ask) if begin <= ask.day < end else otherwise(ask)


def every(nth: int, then: Page, otherwise: Page = both) -> Page:
    """`then` at each nth request."""
    return lambda ask: then(ask) if ask.number % nth == nth - 1 else otherwise(ask)


def with_fields(inner: Page, **fields: Any) -> Page:
    """The same answers with other fields of `Answer`."""
    return lambda ask: replace(inner(ask), **fields)
