"""A feed added in a browser by the address of a web page, followed until its items are there, and read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline_tests.api.pages.browsing import browser as cookies_of
from rss_pipeline_tests.reader.test_refresh import steps_of_a_run
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, PATIENCE_MS, watched
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.reader import Reader, User, served
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]

SITE = b"""<!doctype html><html><head><title>A site</title>
<link rel="alternate" type="application/rss+xml" href="/feed"></head><body></body></html>"""


class Desk:
    """A reader on a home that may fetch from loopback, a publisher, and a browser."""

    def __init__(self, reader: Reader, pipeline: Pipeline, server: FeedServer, browser: Browser) -> None:
        self.reader = reader
        self.server = server
        self._pipeline = pipeline
        self._browser = browser
        reader.app.state.clock = utc_now
        self._url = f"http://127.0.0.1:{reader.settings.reader_port}"

    def user(self, name: str) -> User:
        """A new user, with a client that knows the reader's port."""
        user = self.reader.user(name)
        user.client.headers["Host"] = f"127.0.0.1:{self.reader.settings.reader_port}"
        return user

    @contextmanager
    def page(self, user: User, **options: Any) -> Iterator[Page]:
        """A page of the browser, in which this user is signed in."""
        with watched(self._browser, base_url=self._url, **options) as found:
            for each in cookies_of(self.reader, user).cookies.jar:
                found.context.add_cookies([{"name": each.name, "value": each.value or "", "url": self._url}])
            yield found.page()
            assert found.elsewhere == []
            assert found.errors == []

    @contextmanager
    def visits(self) -> Iterator[None]:
        """The work of `up` meanwhile: a run once a visit is requested."""
        with ThreadPoolExecutor(1) as threads:
            run = threads.submit(self._run)
            yield
            run.result()

    def a_minute_passes(self) -> None:
        """So long a visit by hand waits after an answer."""
        self._pipeline.database.query("UPDATE feeds SET last_fetched_at = '2026-01-01T00:00:00Z'")

    def _run(self) -> None:
        soon(lambda: open_requests.waiting(self._pipeline.database, now=utc_now()).can_begin > 0)
        self._pipeline.clock.now = utc_now()
        with self._pipeline.session() as session, session.step():
            steps_of_a_run(session, stay=60)
        # The run's events, which are Dagster's.
        self._pipeline.database.query("UPDATE feeds SET reported_count = change_count")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Desk]:
    port = free_port()
    with FeedServer() as server:
        pipeline = Pipeline(
            tmp_path_factory.mktemp("home"),
            allow_networks=(ip_network("127.0.0.0/8"),),
            allow_ports=frozenset({server.port}),
            reader_port=port,
        )
        with Reader.on(pipeline.settings) as reader, served(reader.app, port=port):
            yield Desk(reader, pipeline, server, browser)
        pipeline.database.close()


def heads(page: Page, text: str) -> None:
    """Wait until the page has this heading."""
    expect(page.get_by_role("heading", level=1)).to_have_text(text, timeout=PATIENCE_MS)


def test_a_feed_is_added_by_the_address_of_a_web_page_and_its_items_come(desk: Desk) -> None:
    site = desk.server.route("127.0.0.2", "/", Answer(body=SITE, headers={"Content-Type": "text/html"}))
    desk.server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    with desk.page(desk.user("ann")) as page:
        page.goto("/feeds/add")
        page.get_by_label("Address").fill(site)
        page.get_by_label("Folder").fill("News")
        page.get_by_role("button", name="Add").click()
        heads(page, "Looking for a feed")
        with desk.visits():
            heads(page, "You are subscribed")
        expect(page.get_by_text("has brought 2 items")).to_be_visible()
        expect(
            page.get_by_role("navigation", name="Feeds").get_by_role("link", name="News 2")
        ).to_be_visible()
        page.get_by_role("link", name="Read A feed").click()
        expect(page.locator(".entry")).to_have_count(2)


def test_a_feed_is_added_and_refreshed_without_scripts(desk: Desk) -> None:
    url = desk.server.route("127.0.0.3", "/feed", Answer(body=rss("a")))
    with desk.page(desk.user("ben"), java_script_enabled=False) as page:
        page.goto("/feeds/add")
        page.get_by_label("Address").fill(url)
        page.get_by_role("button", name="Add").click()
        with desk.visits():
            heads(page, "You are subscribed")
        desk.server.route("127.0.0.3", "/feed", Answer(body=rss("a", "b")))
        desk.a_minute_passes()
        page.get_by_role("link", name="Edit title and folder").click()
        page.get_by_role("button", name="Refresh now").click()
        with desk.visits():
            heads(page, "1 new item")


PAGES = ("/feeds/add", "/failing", "/feeds/{}/edit", "/feeds/{}/backups", "/feeds/{}/unsubscribe", "/tasks")


def test_on_a_phone_no_page_is_wider_than_the_screen(desk: Desk) -> None:
    url = desk.server.route("127.0.0.4", f"/{'unbroken' * 20}", Answer(status=500))
    user = desk.user("eve")
    desk.server.route("127.0.0.4", f"/{'unbroken' * 20}", Answer(body=rss("a")))
    user.client.post("/api/feeds", json={"url": url, "title": "Unbroken" * 20, "folder": "Folder" * 20})
    with desk.visits():
        soon(lambda: user.client.get("/api/feeds").json()["feeds"])
    desk.server.route("127.0.0.4", f"/{'unbroken' * 20}", Answer(status=500))
    [feed] = user.client.get("/api/feeds").json()["feeds"]
    desk.a_minute_passes()
    user.client.post(f"/api/feeds/{feed['id']}/refresh")
    with desk.visits():
        pass
    with desk.page(user, viewport={"width": 390, "height": 800}) as page:
        for path in (*PAGES, "/settings/folders", f"/settings/folders/one?name={'Folder' * 20}"):
            page.goto(path.format(feed["id"]))
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
