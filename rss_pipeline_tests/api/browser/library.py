"""A reader behind a real server, with a browser on it. No test is in here."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect
from starlette.types import ASGIApp

from rss_pipeline.api.auth import COOKIE
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.preferences import Preferences, SomePreferences, change_preferences
from rss_pipeline.storage.feeds import registered
from rss_pipeline_tests.api.pages.browsing import browser as client_of
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import NOW, item, spec, visit
from rss_pipeline_tests.support.clients.chromium import Watched, watched
from rss_pipeline_tests.support.reader import Reader, User, reader_settings, served

ARTICLE = "<p>It rained for a week.</p><h2>And then</h2><p>It <b>stopped</b>.</p>"


@dataclass(frozen=True, slots=True)
class Library:
    """The reader, and its address for the browser."""

    reader: Reader
    browser: Browser
    url: str
    names: Iterator[int]

    def feed(self, title: str, *items: str, **fields: Any) -> str:
        """The id of a new feed with items of these titles, the first one the oldest."""
        id = f"feed-{next(self.names)}"
        add(self.reader, id)
        self.arrive(id, *items, **fields)
        self.reader.database.query("UPDATE feeds SET title = ? WHERE id = ?", [title, id])
        return id

    def arrive(self, feed: str, *titles: str, **fields: Any) -> None:
        """New items of a feed, a document each."""
        for title in titles:
            new = item(f"{title} {next(self.names)}", title=title, **{"content_html": ARTICLE, **fields})
            visit(self.reader.database, [new], id=feed)

    def user(self, *feeds: str, **fields: str) -> User:
        """A new user who subscribes these feeds."""
        user = self.reader.user(f"user-{next(self.names)}")
        subscribe(self.reader.database, user.id, *feeds, **fields)
        return user

    def prefer(self, user: User, **preferences: Any) -> None:
        """Let this user prefer something, and the defaults of everything else."""
        caller = Caller(user.key, self.reader.database, self.reader.clock)
        change_preferences(caller, SomePreferences(**{**Preferences().model_dump(), **preferences}))

    def mark(self, user: User, *ids: str, **marks: bool) -> None:
        """Mark these items as another window or an app of the user does."""
        headers = {"Authorization": f"Bearer {user.token}"}
        done = httpx.post(f"{self.url}/api/items/mark", json={"ids": ids, **marks}, headers=headers)
        assert done.status_code == 200, done.text

    @contextmanager
    def open(self, user: User | None, **options: Any) -> Iterator[Watched]:
        """A browser that is signed in as this user; its scripts may not fail, and request nothing of other
        machines."""
        with watched(self.browser, base_url=self.url, **options) as found:
            if user is not None:
                cookie = client_of(self.reader, user).cookies[COOKIE]
                found.context.add_cookies([{"name": COOKIE, "value": cookie, "url": self.url}])
            yield found
            assert found.errors == []
            assert found.elsewhere == []


def shows(page: Page, *titles: str) -> None:
    """Wait until the list has items with these titles and no others: a page that was clicked to is read while
    it still comes in."""
    expect(page.locator("#entries .title")).to_have_text(list(titles), use_inner_text=True)


def add(reader: Reader, id: str) -> None:
    """Register one more feed."""
    changes = registered.registry_changes([spec(id)], [], path="feeds.yaml")
    registered.apply(reader.database, changes, now=NOW)


@contextmanager
def library(
    home: Path, browser: Browser, *, wrap: Callable[[ASGIApp], ASGIApp] = lambda app: app
) -> Iterator[Library]:
    """A reader on an empty home, served on a free port that its settings know, within `wrap` if given."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with (
        Reader.on(reader_settings(home, reader_port=port)) as reader,
        served(wrap(reader.app), port=port) as found,
    ):
        yield Library(reader, browser, f"http://127.0.0.1:{found.port}", count(1))
