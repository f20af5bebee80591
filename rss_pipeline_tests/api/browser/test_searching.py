"""A person searches in Chromium: in English, Chinese and Japanese, opens what was found and comes back."""

import re

import pytest
from playwright.sync_api import Page, expect

from rss_pipeline_tests.api.browser.library import Library, shows
from rss_pipeline_tests.api.browser.test_going_back import go_on, titles

index = pytest.importorskip("rss_pipeline_tests.features.search.test_api").index

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

WATER = "<p>Two probes found frozen <b>water</b> near the pole of the moon, and brought none of it home.</p>"
CHINESE = "<p>科学家在月球南极发现了水冰,这一发现将改变未来的探测计划。</p>"
JAPANESE = "<p>探査機は月の南極で水の氷を見つけました。東京の研究者が発表しました。</p>"


def search(page: Page, text: str) -> None:
    """Type into the box at the top of the page that is open."""
    box = page.get_by_role("searchbox", name="Search your feeds")
    box.fill(text)
    box.press("Enter")
    expect(page.get_by_role("searchbox", name="Words in title, author or content")).to_have_value(text)


def test_items_are_found_in_three_languages_opened_and_come_back_to(books: Library) -> None:
    feed = books.feed("Planet", "Honey of the moon")
    books.arrive(feed, "Ice on the Moon", content_html=WATER)
    books.arrive(feed, "月球上的水", content_html=CHINESE)
    books.arrive(feed, "月に水の氷", content_html=JAPANESE)
    # What no one subscribes is not found.
    books.feed("Gazette", "Moon water for nobody", content_html=WATER + CHINESE + JAPANESE)
    index(books.reader)
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        words = page.locator("#entries .words")

        search(page, "moon -honey water")
        shows(page, "Ice on the Moon")
        expect(words).to_contain_text("found frozen water near the pole of the moon")
        expect(words.locator("mark")).to_have_text(["water", "moon"])
        expect(page.locator("#entries .title mark")).to_have_text(["Moon"])
        page.get_by_role("link", name="Ice on the Moon").click()
        expect(page.locator(".opened .body")).to_contain_text("brought none of it home")
        page.locator("#entries .of").click()
        expect(page).to_have_url(re.compile(f"/feeds/{feed}$"))
        page.go_back()
        shows(page, "Ice on the Moon")

        # A word in the middle of a Chinese sentence, which has no spaces.
        search(page, "水冰")
        shows(page, "月球上的水")
        expect(words.locator("mark")).to_have_text(["水冰"])
        # What cannot be used of it gets a sentence, and the rest is searched for.
        search(page, 'moon after:yesterdayish "---" OR (')
        expect(page.locator(".notice").first).to_contain_text("“after:yesterdayish” is no date")
        expect(page.locator(".notice").nth(1)).to_contain_text("has no letters or digits, and is left out.")
        expect(page.get_by_text("Nothing found")).to_be_visible()

    with books.open(user, java_script_enabled=False) as found:
        page = found.page()
        page.goto("/unread")
        search(page, "東京 氷")
        shows(page, "月に水の氷")
        expect(page.locator("#entries .words mark")).to_contain_text(["東京"])
        page.get_by_role("link", name="月に水の氷").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("月に水の氷")
        expect(page.locator(".body")).to_contain_text("東京の研究者")
        page.go_back()
        shows(page, "月に水の氷")


def test_a_search_that_was_extended_is_as_long(books: Library) -> None:
    feed = books.feed("Planet", *(f"moon {n}" for n in range(1, 25)))
    user = books.user(feed)
    books.prefer(user, entries_per_page=10)
    index(books.reader)
    with books.open(user) as found:
        page = found.page()
        page.goto("/search?q=moon")
        go_on(page, 1)
        before = titles(page)
        page.goto("/settings")
        page.go_back()
        expect(page.locator("#entries .entry")).to_have_count(20)
        shows(page, *before)
