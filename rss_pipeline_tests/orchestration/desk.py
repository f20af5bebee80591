"""The Dagster UI as a person has it: a dozen feeds for `rss-pipeline up`, and a browser on it.

No test is in here. The browser is that of support/clients/chromium.py.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from playwright.sync_api import Page

from rss_pipeline_tests.support.clients.chromium import chromium, watched
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.server import Request as Asked
from rss_pipeline_tests.support.up import Up

BUSY = ["astronomy", "bicycles", "cinema"]
"""Another item at each visit."""
QUIET = ["dialects", "economy", "forests", "gardening", "harbours", "islands", "jazz"]
BROKEN = "kitchens"
"""Answers 404."""
GONE = "lighthouses"
"""Answers 410."""
FEEDS = [*BUSY, *QUIET, GONE, BROKEN]


def entries(server: FeedServer) -> list[dict[str, Any]]:
    """Publish the feeds, each on a host of its own; their entries in feeds.yaml."""
    return [
        {"url": server.route(host(id), f"/{id}.xml", _published(id)), "id": id, "allow_private": True}
        for id in FEEDS
    ]


def host(id: str) -> str:
    return f"127.0.0.{FEEDS.index(id) + 2}"


def _published(id: str) -> Answer | Callable[[Asked], Answer]:
    if id == BROKEN:
        return Answer(status=404)
    if id == GONE:
        return Answer(status=410)
    if id in QUIET:
        return Answer(body=rss(f"{id}-a", f"{id}-b"), etag='"1"')
    visits = count(1)

    def another_item(_: Asked) -> Answer:
        visit = next(visits)
        return Answer(body=rss(*(f"{id}-{n}" for n in range(visit + 2))), etag=f'"{visit}"')

    return another_item


@dataclass(frozen=True, slots=True)
class Desk:
    """A browser's page on the UI of a running `up`."""

    up: Up
    server: FeedServer
    page: Page
    elsewhere: list[str] = field(default_factory=list)
    """Requests of pages for addresses that are not this machine's."""
    errors: list[str] = field(default_factory=list)
    """Errors of a page's scripts."""

    def open(self, path: str) -> Page:
        """The page, at this path of the UI."""
        self.page.goto(f"http://127.0.0.1:{self.up.port}{path}", wait_until="domcontentloaded")
        return self.page

    def go(self, path: str) -> Page:
        """The same as by a link of the UI: its scripts, which take seconds, are not loaded again."""
        self.page.evaluate(
            """path => { history.pushState(null, "", path);
            dispatchEvent(new PopStateEvent("popstate", {state: null})); }""",
            path,
        )
        return self.page


@contextmanager
def browser(up: Up, server: FeedServer) -> Iterator[Desk]:
    """A page on the UI of this `up`, that may request nothing elsewhere."""
    with chromium() as started_browser, watched(started_browser, with_cache=True) as found:
        yield Desk(up, server, found.page(), found.elsewhere, found.errors)
