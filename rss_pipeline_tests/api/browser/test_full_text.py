"""Full text in Chromium: the switch of a feed, an item with its article, and one with a reason."""

import os

import pytest
from playwright.sync_api import Page, expect

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
