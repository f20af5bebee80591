"""Reading in Chromium: by keys and clicks, on a phone, in the dark, without scripts, while items come in."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from starlette.types import ASGIApp, Receive, Scope, Send

from rss_pipeline_tests.api.browser.library import Library, library, shows
from rss_pipeline_tests.storage.subscriptions.readers import unread
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.waiting import soon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def count_of(page: Page, feed: str) -> str:
    return page.locator(f'.column [data-feed="{feed}"] > .count .number').inner_text()


def test_items_are_read_marked_and_starred_by_keys_and_all_counts_follow(books: Library) -> None:
    feed = books.feed("Planet", "one", "two", "three")
    other = books.feed("Gazette", "four")
    user = books.user(feed, other)
    with books.open(user) as found:
        page = found.page()
        page.goto(f"/feeds/{feed}")
        expect(page).to_have_title("(3) Planet - rss_pipeline")
        keyboard = page.keyboard
        keyboard.press("j")
        expect(page.locator(".entry.current .title")).to_have_text("three")
        keyboard.press("o")
        expect(page.locator(".opened .body")).to_contain_text("It stopped.")
        expect(page).to_have_title("(2) Planet - rss_pipeline")
        expect(page.locator('[data-view="unread"] .number').first).to_have_text("3")
        # The next one opens, too, while one is open.
        keyboard.press("j")
        expect(page.locator(".entry.open .title")).to_have_text("two")
        expect(page.locator(".opened")).to_have_count(1)
        expect(page).to_have_title("(1) Planet - rss_pipeline")
        keyboard.press("m")
        expect(page).to_have_title("(2) Planet - rss_pipeline")
        keyboard.press("s")
        expect(page.locator(".entry.current .unstar")).to_be_visible()
        keyboard.press("k")
        expect(page.locator(".entry.open .title")).to_have_text("three")
        with page.expect_navigation():
            keyboard.press("n")
        expect(page).to_have_title("(1) Gazette - rss_pipeline")
        keyboard.press("g")
        with page.expect_navigation():
            keyboard.press("s")
        shows(page, "two")
        page.go_back()
        expect(page).to_have_title("(1) Gazette - rss_pipeline")
        soon(lambda: unread(books.reader.database, user.id) == {feed: 2, other: 1})


@pytest.mark.skipif("search" not in INSTALLED, reason="the feature search is removed")
def test_keys_are_letters_where_text_is_typed_and_commands_of_the_browser_stay(books: Library) -> None:
    feed = books.feed("Planet", "one")
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        page.keyboard.press("/")
        expect(page.locator(".search input")).to_be_focused()
        page.keyboard.type("jmsno?")
        expect(page.locator(".search input")).to_have_value("jmsno?")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        for chord in ("Control+m", "Alt+m", "Meta+m"):
            page.keyboard.press(chord)
        expect(page.locator(".entry.unread")).to_have_count(1)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("m")
        expect(page.locator(".entry.unread")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("m")
        expect(page.locator(".entry.unread")).to_have_count(0)
        # The page shows a mark before the reader has it.
        soon(lambda: unread(books.reader.database, user.id) == {feed: 0})


def test_a_mark_that_still_waits_for_a_connection_is_sent_although_its_page_is_closed(
    browser: Browser, tmp_path: Path
) -> None:
    held: list[str] = []

    def holding(reader: ASGIApp) -> ASGIApp:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") != "/held":
                await reader(scope, receive, send)
                return
            held.append(scope["path"])
            while (await receive())["type"] != "http.disconnect":
                pass

        return app

    with library(tmp_path / "home", browser, wrap=holding) as books:
        feed = books.feed("Planet", "one")
        user = books.user(feed)
        # Requests that are intercepted end with their page.
        with books.open(user, with_cache=True) as found:
            page = found.page()
            page.goto("/unread")
            # As many as a browser has connections to one host.
            page.evaluate("() => { for (let n = 0; n < 6; n++) fetch('/held').catch(() => {}); }")
            soon(lambda: len(held) == 6)
            page.keyboard.press("j")
            page.keyboard.press("m")
            expect(page.locator(".entry.unread")).to_have_count(0)
            assert unread(books.reader.database, user.id) == {feed: 1}
            page.close()
            soon(lambda: unread(books.reader.database, user.id) == {feed: 0})


def test_marks_of_one_item_arrive_in_the_order_in_which_they_were_made(books: Library) -> None:
    feed = books.feed("Planet", "one")
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        held: list[Route] = []
        # The first one is slow.
        page.route("**/api/items/mark", lambda route: route.continue_() if held else held.append(route))
        for key in "jmm":
            page.keyboard.press(key)
        expect(page.locator(".entry.current.unread")).to_have_count(1)
        # Later requests are answered meanwhile, and a star waits for no mark of another kind.
        page.keyboard.press("s")
        starred = "SELECT 1 FROM item_states WHERE user_id = ? AND starred_at IS NOT NULL"
        # Routes are handled while the page is spoken to.
        soon(lambda: page.evaluate("1") and books.reader.database.query(starred, [user.id]).rows and held)
        held[0].continue_()
        soon(lambda: page.evaluate("marking") == 0)
        assert unread(books.reader.database, user.id) == {feed: 1}


def test_new_items_are_announced_and_loaded_on_demand_and_only_what_was_shown_is_marked(
    books: Library,
) -> None:
    feed = books.feed("Planet", "one", "two")
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        books.arrive(feed, "three", "four")
        page.keyboard.press("r")
        news = page.get_by_role("button", name="2 new items")
        expect(news).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("2 new items")
        expect(page).to_have_title("(4) Unread - rss_pipeline")
        shows(page, "two", "one")
        news.click()
        expect(page.locator("#entries .entry")).to_have_count(4)
        shows(page, "four", "three", "two", "one")
        expect(news).to_be_hidden()
        books.arrive(feed, "five")
        page.get_by_role("button", name="Mark all read").click()
        expect(page).to_have_title("(1) Unread - rss_pipeline")
        shows(page, "five")
        soon(lambda: unread(books.reader.database, user.id) == {feed: 1})


def test_the_first_items_of_all_come_by_themselves(books: Library) -> None:
    feed = books.feed("Planet")
    with books.open(books.user(feed)) as found:
        page = found.page()
        page.goto("/unread")
        expect(page.locator(".empty")).to_contain_text("1 feed waits for its first visit")
        books.arrive(feed, "one")
        expect(page.locator("#entries .entry")).to_have_count(1)


def test_older_items_are_appended_once_and_the_last_key_goes_on_into_them(books: Library) -> None:
    feed = books.feed("Planet", *(f"item {n}" for n in range(1, 15)))
    user = books.user(feed)
    books.prefer(user, entries_per_page=10, mark_read_on_open=False)
    with books.open(user) as found:
        page = found.page()
        page.goto(f"/feeds/{feed}?show=all")
        expect(page.locator("#entries .entry")).to_have_count(10)
        for _ in range(10):
            page.keyboard.press("j")
        expect(page.locator(".entry.current .title")).to_have_text("item 5")
        page.keyboard.press("j")
        expect(page.locator(".entry.current .title")).to_have_text("item 4")
        shows(page, *(f"item {n}" for n in range(14, 0, -1)))
        expect(page.locator("#more")).to_have_count(0)


def test_everything_is_read_starred_and_marked_without_scripts(books: Library) -> None:
    feed = books.feed("Planet", "one", "two", "three")
    other = books.feed("Gazette", "four")
    user = books.user(feed, other)
    with books.open(user, java_script_enabled=False) as found:
        page = found.page()
        page.goto("/unread")
        page.get_by_role("link", name="three").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("three")
        expect(page.locator(".body")).to_contain_text("It rained for a week.")
        page.get_by_role("button", name="Star", exact=True).click()
        page.get_by_role("link", name="Next", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("two")
        page.get_by_role("button", name="Mark unread").click()
        shows(page, "four", "two", "one")
        page.get_by_role("button", name="Mark read").nth(2).click()
        shows(page, "four", "two")
        page.goto("/starred")
        shows(page, "three")
        page.goto(f"/feeds/{feed}")
        page.get_by_role("button", name="Mark all read").click()
        expect(page.locator(".empty")).to_contain_text("All read")
        page.get_by_role("link", name="Next unread feed").click()
        shows(page, "four")
    assert unread(books.reader.database, user.id) == {feed: 0, other: 1}


def test_a_phone_has_no_line_that_is_wider_than_it_and_feeds_on_a_page_of_their_own(books: Library) -> None:
    wide = f"<p>{'word' * 60}</p><pre>{'x' * 400}</pre><table><tr>{'<td>cell cell</td>' * 30}</tr></table>"
    feed = books.feed("A feed of a " + "long" * 20 + " name", "t" * 200, content_html=wide)
    user = books.user(feed)
    with books.open(user, **PHONE) as found:
        page = found.page()

        def fits() -> bool:
            return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

        page.goto("/unread")
        expect(page.locator(".column")).to_be_hidden()
        assert fits()
        page.locator(".title").click()
        expect(page.locator(".opened .body")).to_be_visible()
        assert fits()
        id = page.locator(".entry").get_attribute("data-id")
        for path in (f"/items/{id}", "/feeds"):
            page.goto(path)
            assert fits()
        page.get_by_role("link", name="A feed of a").click()
        expect(page).to_have_url(re.compile(f"/feeds/{feed}$"))
        page.locator(".menu summary").click()
        expect(page.get_by_role("link", name="Settings")).to_be_visible()
        assert fits()


def test_the_page_is_dark_where_the_system_or_the_user_says_so(books: Library) -> None:
    user = books.user(books.feed("Planet", "one"))

    def brightness(page: Page) -> int:
        page.goto("/unread")
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return max(map(int, re.findall(r"\d+", colour)[:3]))

    with books.open(user, color_scheme="dark") as dark, books.open(user) as light:
        in_dark, in_light = dark.page(), light.page()
        assert (brightness(in_dark) < 60, brightness(in_light) > 200) == (True, True)
        books.prefer(user, theme="dark")
        assert brightness(in_light) < 60
        books.prefer(user, theme="light")
        assert brightness(in_dark) > 200


def test_dates_are_in_the_reader_s_zone_and_texts_run_in_their_own_direction(books: Library) -> None:
    at = datetime(2026, 1, 31, 23, 30, tzinfo=UTC)
    feed = books.feed("مجلة القراءة", "مراجعة الهاتف", pub_date=at, content_html="<p>كيف غيّر الهاتف</p>")
    user = books.user(feed)
    books.prefer(user, dates="absolute")
    with books.open(user, timezone_id="Asia/Tokyo") as found:
        page = found.page()
        page.goto("/unread")
        expect(page.locator(".entry time")).to_have_text(re.compile(r"^1 Feb 2026, 08:30"))
        direction = "element => getComputedStyle(element).direction"
        assert page.locator(".entry h2").evaluate(direction) == "rtl"
        page.locator(".title").click()
        assert page.locator(".opened .body").evaluate(direction) == "rtl"
        assert page.locator("html").evaluate(direction) == "ltr"
    with books.open(user, java_script_enabled=False, timezone_id="Asia/Tokyo") as found:
        page = found.page()
        page.goto("/all")
        expect(page.locator(".entry time")).to_have_text("31 January 2026, 23:30 UTC")


def test_a_session_that_has_ended_leads_to_the_login_and_not_into_nothing(books: Library) -> None:
    user = books.user(books.feed("Planet", "one"))
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        books.reader.database.query("DELETE FROM sessions WHERE user_id = ?", [user.id])
        with page.expect_navigation():
            page.keyboard.press("r")
        expect(page).to_have_url(re.compile(r"/login\?next=/unread$"))


def test_counts_and_marks_follow_what_other_clients_did_once_somebody_looks(books: Library) -> None:
    feed, other = books.feed("Planet", "one", "two", "three"), books.feed("Gazette", "four")
    user = books.user(feed, other, folder="News")
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        ids = [each.get_attribute("data-id") or "" for each in page.locator(".entry").all()]
        books.mark(user, *ids[:2], is_read=True)
        books.mark(user, ids[2], is_starred=True)
        page.evaluate("polled = 0; dispatchEvent(new Event('focus'))")
        expect(page.locator(".entry.read")).to_have_count(2)
        expect(page.locator(f"#i-{ids[2]} .unstar")).to_have_count(1)
        expect(page).to_have_title("(2) Unread - rss_pipeline")
        expect(page.locator('[data-view="unread"] .number').first).to_have_text("2")
        expect(page.locator('.column [data-view="starred"] .number')).to_have_text("1")
        expect(page.locator(".column .of-folder .number")).to_have_text("2")
        books.mark(user, ids[0], is_read=False)
        page.keyboard.press("r")
        expect(page.locator(".entry.read")).to_have_count(1)
        expect(page).to_have_title("(3) Unread - rss_pipeline")
        # An item's own page follows too.
        page.goto(f"/items/{ids[3]}")
        books.mark(user, ids[3], is_read=False, is_starred=True)
        page.evaluate("polled = 0; dispatchEvent(new Event('focus'))")
        expect(page.get_by_role("button", name="Remove the star", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Remove the star of this item")).to_be_visible()
        page.get_by_role("button", name="Mark read").click()
        expect(page.get_by_role("button", name="Mark unread")).to_be_visible()


def test_an_item_is_starred_and_left_for_the_next_one_at_its_end(books: Library) -> None:
    feed = books.feed("Planet", "one", "two", link="https://planet.example/1")
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        page.locator(".title").first.click()
        opened = page.locator(".opened")
        expect(opened.locator(".acts").first.get_by_role("link", name="Original page")).to_be_visible()
        opened.get_by_role("button", name="Star", exact=True).click()
        expect(opened.get_by_role("button", name="Remove the star", exact=True)).to_be_visible()
        expect(page.locator('.column [data-view="starred"] .number')).to_have_text("1")
        opened.get_by_role("button", name="Next", exact=True).click()
        expect(page.locator(".entry.open .title")).to_have_text("one")
        page.wait_for_function("marking === 0")
        page.goto("/starred")
        shows(page, "two")


def test_images_that_are_missing_are_requested_at_the_item_and_put_in_once_they_are_there(
    books: Library,
) -> None:
    cat = '<p><img src="https://pic.example/cat.png" alt="A cat"></p>'
    feed = books.feed("Planet", "one", content_html=cat)
    database = books.reader.database
    [item] = database.query("SELECT id FROM items WHERE feed_id = ?", [feed]).rows
    database.query(
        """INSERT INTO image_tasks (id, item_id, original_url, status, attempts, created_at, updated_at, host,
          position) VALUES (?, ?, 'https://pic.example/cat.png', 'failed', 3, ?, ?, 'pic.example', 0)""",
        [f"cat of {feed}", item["id"], "2026-03-02T12:00:00Z", "2026-03-02T12:00:00Z"],
    )
    with books.open(books.user(feed)) as found:
        page = found.page()
        page.goto("/unread")
        page.locator(".title").click()
        page.get_by_role("button", name="Load 1 missing image").click()
        expect(page.locator(".missing")).to_contain_text("1 image will be loaded in a moment.")
        key = f"images/{feed}/0a1b2c3d/cat.png"
        books.reader.stores.objects.put(key, pictures.png(30, 20), content_type="image/png")
        database.query(
            """UPDATE image_tasks SET status = 'success', r2_key = ?, last_error_kind = NULL,
              width = 30, height = 20 WHERE item_id = ?""",
            [key, item["id"]],
        )
        expect(page.locator(".opened img")).to_have_attribute("alt", "A cat")
        expect(page.locator(".missing")).to_be_hidden()
