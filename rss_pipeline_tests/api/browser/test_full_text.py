"""Full text in Chromium: the switch of a feed, an item with its article, and one with a reason."""

import os

import pytest
from playwright.sync_api import Page, expect

from rss_pipeline.storage.accounts.user_rows import note_change_of_items
from rss_pipeline_tests.api.browser.library import Library

pytest.importorskip("rss_pipeline.features.full_text")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_user_switches_full_text_on_and_sees_articles_and_reasons(books: Library) -> None:
    feed = books.feed(
        "The Harbour Gazette", "The bridge is open", "The ferry stays", content_html="<p>A teaser.</p>"
    )
    database = books.reader.database
    user = books.user(feed)
    shown, walled = [
        row["id"]
        for row in database.query("SELECT id FROM items WHERE feed_id = ? ORDER BY arrived", [feed]).rows
    ]
    for id, status, verdict, reason, html in (
        (shown, "shown", "article", "", "<p>The whole article of the page.</p>" * 8),
        (walled, "none", "consent", "the page wants consent to cookies first", None),
    ):
        database.query(
            """INSERT INTO articles (item_id, feed_id, status, verdict, reason, host, attempts, html,
              next_attempt_at) VALUES (?, ?, ?, ?, ?, 'a.example', 1, ?, '2026-03-02T12:00:00Z')""",
            [id, feed, status, verdict, reason, html],
        )
    with books.open(user) as found:
        page = found.page()
        page.goto(f"/feeds/{feed}/edit")
        switch = page.get_by_label("Show the articles behind its new items")
        expect(switch).not_to_be_checked()
        switch.check()
        picture(page, "switch")
        page.get_by_role("button", name="Save").click()
        page.goto(f"/feeds/{feed}/full-text")
        expect(page.get_by_text("You have switched it on.")).to_be_visible()
        expect(page.get_by_text("the page wants consent to cookies first")).to_be_visible()
        picture(page, "state")
        page.goto(f"/items/{shown}")
        expect(page.locator(".body")).to_contain_text("The whole article of the page.")
        expect(page.locator(".note")).to_have_count(0)
        picture(page, "article")
        page.goto(f"/items/{walled}")
        expect(page.locator(".note")).to_have_text(
            "This is the feed's own text, not the article: the page wants consent to cookies first."
        )
        picture(page, "reason")
    with books.open(user, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True) as found:
        page = found.page()
        page.goto(f"/feeds/{feed}/edit")
        expect(page.get_by_label("Show the articles behind its new items")).to_be_checked()
        picture(page, "switch-phone")
        page.goto(f"/feeds/{feed}/full-text")
        picture(page, "state-phone")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_article_of_one_item_is_one_key_or_click_and_the_list_stays(
    books: Library, scripts: bool
) -> None:
    names = [f"Item {n}" for n in range(30)]
    feed = books.feed("Daily", *names, content_html="<p>A teaser.</p>", link="https://a.example/1")
    user, database = books.user(feed), books.reader.database

    def end(html: str | None, reason: str = "") -> None:
        """The end of the request."""
        database.query(
            """UPDATE articles SET status = ?, verdict = 'consent', reason = ?, html = ?, page_characters = 9,
              requested_at = '2026-03-02T12:00:00Z' WHERE feed_id = ? AND status = 'pending'""",
            ["none" if html is None else "shown", reason, html, feed],
        )
        database.batch([note_change_of_items()])

    with books.open(user, java_script_enabled=scripts) as found:
        page = found.page()
        page.goto("/unread")
        if not scripts:
            page.locator(".entry .title").nth(9).click()
            page.get_by_role("button", name="Show the article").click()
            expect(page.locator(".note")).to_contain_text("The article is not here yet")
            end("<p>The whole article.</p>")
            page.get_by_role("link", name="Look again").click()
            expect(page.locator(".body")).to_have_text("The whole article.")
            page.get_by_role("button", name="Show the feed's text").click()
            expect(page.locator(".body")).to_have_text("A teaser.")
            expect(page.locator("[data-up]")).to_be_visible()
            return
        for _ in range(10):
            page.keyboard.press("j")
        chosen = page.locator(".entry.current")
        # The item opens, and nothing else happens to the list.
        page.keyboard.press("f")
        expect(chosen.locator(".note")).to_contain_text("The article is not here yet")
        picture(page, "requested")
        top = chosen.evaluate("each => each.getBoundingClientRect().top")
        end("<p>The whole article.</p>" * 40)
        expect(chosen.locator(".body p")).to_have_count(40)
        assert abs(chosen.evaluate("each => each.getBoundingClientRect().top") - top) < 2
        expect(page.locator(".entry")).to_have_count(30)
        expect(chosen.locator(".note")).to_have_count(0)
        picture(page, "in-place")
        page.keyboard.press("f")
        expect(chosen.locator(".body")).to_have_text("A teaser.")
        # By a click; one that is refused says so at the item.
        page.keyboard.press("j")
        page.locator(".opened").get_by_role("button", name="Show the article").click()
        expect(page.locator(".opened .note")).to_contain_text("not here yet")
        end(None, "the page wants consent to cookies first")
        expect(page.locator(".opened .note")).to_contain_text("the page wants consent to cookies first")
        picture(page, "refused")
        # An item without a link, and the page of an item.
        page.keyboard.press("j")
        expect(page.locator(".opened .title, .entry.open .title").first).to_be_visible()
        id = page.locator(".entry.current").get_attribute("data-id")
        database.query("UPDATE items SET link = NULL WHERE id = ?", [id])
        page.goto(f"/items/{id}")
        expect(page.locator(".note")).to_be_hidden()
        page.keyboard.press("f")
        expect(page.locator(".note")).to_contain_text("no link to a page")
        database.query("UPDATE items SET link = 'https://a.example/2' WHERE id = ?", [id])
        page.goto(f"/items/{id}")
        page.keyboard.press("f")
        expect(page.locator(".note")).to_contain_text("not here yet")
        end("<p>The whole article.</p>")
        expect(page.locator(".body")).to_have_text("The whole article.")
        assert page.url.endswith(f"/items/{id}")
        picture(page, "item")
        assert found.errors == []
