"""The Dagster UI as a person has it: `rss-pipeline up` with a dozen feeds, and a browser on it.

No test is in here. The browser is that of support/chromium.py.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from playwright.sync_api import Page

from rss_pipeline_tests.support.chromium import chromium, watched
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.server import Request as Asked
from rss_pipeline_tests.support.up import Up, started
from rss_pipeline_tests.support.waiting import soon

BUSY = ["astronomy", "bicycles", "cinema"]
"""Another item at each visit."""
QUIET = ["dialects", "economy", "forests", "gardening", "harbours", "islands", "jazz"]
BROKEN = "kitchens"
"""Answers 404."""
GONE = "lighthouses"
"""Answers 410."""
FEEDS = [*BUSY, *QUIET, BROKEN, GONE]


def serve(server: FeedServer, folder: Path) -> None:
    """Publish the feeds, each on a host of its own, and write the feeds.yaml that lists them."""
    entries = []
    for number, id in enumerate(FEEDS, start=2):
        url = server.route(f"127.0.0.{number}", f"/{id}.xml", _published(id))
        entries.append(f"- url: {url}\n  id: {id}\n  allow_private: true\n")
    (folder / "feeds.yaml").write_text("feeds:\n" + "".join(entries), "utf-8")


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
    """What pages asked of addresses that are not this machine's."""
    errors: list[str] = field(default_factory=list)
    """What a page's scripts threw."""

    def open(self, path: str) -> Page:
        """The page, at this path of the UI."""
        self.page.goto(f"http://127.0.0.1:{self.up.port}{path}", wait_until="domcontentloaded")
        return self.page


@contextmanager
def desk(folder: Path) -> Iterator[Desk]:
    """A running `up` in this folder that has polled every feed once, and a browser on it."""
    with FeedServer() as server:
        serve(server, folder)
        with started(folder) as up, browser(up, server) as desk:
            soon(up.answers)
            soon(lambda: set(up.statuses()["green"]) == {*BUSY, *QUIET})
            yield desk


@contextmanager
def browser(up: Up, server: FeedServer) -> Iterator[Desk]:
    """A page on the UI of this `up`, that may ask nobody else."""
    with chromium() as started_browser, watched(started_browser) as found:
        yield Desk(up, server, found.page(), found.elsewhere, found.errors)
