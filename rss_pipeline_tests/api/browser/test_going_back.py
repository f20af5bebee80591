"""Back in Chromium: a list is as long as it was, at the same place, and says what is read now."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rss_pipeline_tests.api.browser.library import Library, library, shows
from rss_pipeline_tests.storage.subscriptions.readers import unread
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, CHROMIUM_ARGUMENTS
from rss_pipeline_tests.support.waiting import soon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

NOTE_KEPT = "addEventListener('pageshow', event => { window.wasKept = event.persisted; })"
TOP = "id => document.getElementById(id).getBoundingClientRect().top"


def titles(page: Page) -> list[str]:
    return page.locator("#entries .title").all_inner_texts()


def go_on(page: Page, times: int) -> None:
    """Load the items behind those of a list, so many times."""
    for _ in range(times):
        shown = page.locator("#entries .entry").count()
        page.locator("#more").click()
        expect(page.locator("#entries .entry")).not_to_have_count(shown)


@pytest.mark.parametrize("path", ["/unread", "/all", "/feeds/{feed}?show=all&order=oldest"])
def test_a_list_that_was_extended_is_as_long_and_at_the_same_place(books: Library, path: str) -> None:
    feed = books.feed("Planet", *(f"item {n}" for n in range(1, 45)))
    user = books.user(feed)
    books.prefer(user, entries_per_page=10)
    with books.open(user) as found:
        page = found.page()
        page.goto(path.format(feed=feed))
        go_on(page, 2)
        before = titles(page)
        assert len(before) == 30
        line = page.locator(".entry").nth(21)
        line.scroll_into_view_if_needed()
        id = line.get_attribute("id") or ""
        place = page.evaluate(TOP, id)
        page.goto((line.locator(".title").get_attribute("href") or "").partition("?")[0])
        soon(lambda: unread(books.reader.database, user.id) == {feed: 43})
        page.go_back()
        expect(page.locator("#entries .entry")).to_have_count(30)
        shows(page, *before)
        soon(lambda: abs(page.evaluate(TOP, id) - place) <= 2)
        # What was read meanwhile is read, and stays in its place.
        expect(page.locator(".entry.read")).to_have_attribute("id", id)
        expect(page).to_have_title(title_of(path, 43))
        go_on(page, 1)
        assert len(set(titles(page))) == 40
        # A list that is opened anew is as it is at first.
        page.goto(path.format(feed=feed))
        expect(page.locator("#entries .entry")).to_have_count(10)


def title_of(path: str, number: int) -> str:
    name = {"/unread": "Unread", "/all": "All items"}.get(path, "Planet")
    return f"({number}) {name} - rss_pipeline"


def test_what_came_in_meanwhile_is_at_the_top_after_going_back(books: Library) -> None:
    feed = books.feed("Planet", *(f"item {n}" for n in range(1, 25)))
    user = books.user(feed)
    books.prefer(user, entries_per_page=10)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        go_on(page, 1)
        before = titles(page)
        page.goto("/settings")
        books.arrive(feed, "new")
        page.go_back()
        expect(page.locator("#entries .entry")).to_have_count(21)
        shows(page, "new", *before)


def test_the_last_unread_item_is_still_there_after_going_back(books: Library) -> None:
    feed = books.feed("Planet", "one")
    with books.open(books.user(feed)) as found:
        page = found.page()
        page.goto("/unread")
        page.goto(page.locator(".title").get_attribute("href") or "")
        page.go_back()
        expect(page.locator(".entry.read .title")).to_have_text("one")
        expect(page).to_have_title("Unread - rss_pipeline")


def test_another_user_gets_nothing_of_the_list_by_going_back(books: Library) -> None:
    ann, bob = books.user(books.feed("Planet", "hers")), books.user(books.feed("Gazette", "his"))
    with books.open(ann) as found, books.open(bob) as other:
        page = found.page()
        page.goto("/unread")
        page.goto("/settings")
        found.context.clear_cookies()
        found.context.add_cookies(
            [
                {"name": each["name"], "value": each["value"], "url": books.url}
                for each in other.context.cookies()
            ]
        )
        page.go_back()
        expect(page.locator("#entries .title")).to_have_text(["his"])
        assert "hers" not in page.evaluate("JSON.stringify(sessionStorage)")


def test_without_scripts_a_list_says_what_is_read_now(books: Library) -> None:
    feed = books.feed("Planet", "one", "two")
    # Requests that are intercepted are never answered from a cache.
    with books.open(books.user(feed), java_script_enabled=False, with_cache=True) as found:
        page = found.page()
        page.goto("/all")
        page.get_by_role("link", name="two").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("two")
        page.go_back()
        expect(page.locator(".entry.read .title")).to_have_text(["two"])
        expect(page.locator(".entry.unread .title")).to_have_text(["one"])


@pytest.fixture(scope="module")
def keeping(browser: Browser) -> Iterator[Browser]:
    """A browser that keeps the pages that were left as they are, like those of people."""
    running = browser.browser_type.launch(
        executable_path=CHROMIUM,
        args=CHROMIUM_ARGUMENTS,
        ignore_default_args=["--disable-back-forward-cache"],
    )
    with running:
        yield running


def _kept(reader: ASGIApp) -> ASGIApp:
    """Pages that a browser keeps whatever happens meanwhile."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        async def changed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [each for each in message["headers"] if each[0] != b"cache-control"]
                message = {**message, "headers": [*headers, (b"cache-control", b"private, no-cache")]}
            await send(message)

        await reader(scope, receive, changed)

    return app


def test_a_page_that_the_browser_has_kept_as_it_was_says_what_is_read_now(
    keeping: Browser, tmp_path: Path
) -> None:
    with library(tmp_path, keeping, wrap=_kept) as books:
        user = books.user(books.feed("Planet", "one", "two"))
        with books.open(user, with_cache=True) as found:
            page = found.page()
            page.goto("/healthz")
            page.evaluate(NOTE_KEPT)
            page.goto("/settings")
            page.go_back(wait_until="commit")
            if not page.evaluate("window.wasKept"):
                pytest.skip("this build of Chromium keeps no page as it was, whatever the page")
            page.goto("/all")
            page.evaluate(NOTE_KEPT)
            item = page.locator(".entry").first.get_attribute("data-id") or ""
            page.goto("/settings")
            books.mark(user, item, is_read=True, is_starred=True)
            # It is not loaded.
            page.go_back(wait_until="commit")
            expect(page.locator(f"#i-{item}.read .unstar")).to_be_visible()
            expect(page.locator('.column [data-view="unread"] .number')).to_have_text("1")
            expect(page.locator('.column [data-view="starred"] .number')).to_have_text("1")
            assert page.evaluate("window.wasKept") is True


def test_a_page_is_not_kept_as_it_was_once_something_was_read_without_scripts(
    keeping: Browser, tmp_path: Path
) -> None:
    with library(tmp_path, keeping) as books:
        user = books.user(books.feed("Planet", "one", "two"))
        with books.open(user, java_script_enabled=False, with_cache=True) as found:
            page = found.page()
            page.goto("/all")
            page.get_by_role("link", name="two").click()
            page.go_back(wait_until="commit")
            expect(page.locator(".entry.read .title")).to_have_text("two")
            expect(page.locator(".entry.unread .title")).to_have_text("one")
