"""Stories in Chromium, by keyboard and on a phone: a mark on the one line reaches all that it lists."""

import os

import pytest
from playwright.sync_api import expect

from rss_pipeline_tests.api.browser.library import Library, shows
from rss_pipeline_tests.support.reader import Reader

pytest.importorskip("rss_pipeline.features.stories")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


def one_story(reader: Reader, *feeds: str) -> None:
    """Make the items of these feeds one story."""
    rows = reader.database.query("SELECT id, feed_id FROM items ORDER BY arrived").rows
    members = [row["id"] for row in rows if row["feed_id"] in feeds]
    for id in members:
        reader.database.query(
            """INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, decided_at, version, joins)
            SELECT id, ?, feed_id, arrived, id, arrived, '2026-03-02T12:00:00Z', 1, ? FROM items WHERE id = ?
            ON CONFLICT (item_id) DO NOTHING""",
            [members[0], None if id == members[0] else f'[["{members[0]}","event"]]', id],
        )


def test_a_story_is_read_by_keyboard_and_all_counts_follow(books: Library) -> None:
    first = books.feed("Herald", "Road closed")
    second = books.feed("Post", "Landslide", content_html="<p>Forty people are cut off by rocks and mud.</p>")
    third = books.feed("Echo", "A recipe")
    user = books.user(first, second, third)
    one_story(books.reader, first, second)
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        shows(page, "A recipe", "Road closed")
        expect(page).to_have_title("(2) Unread - rss_pipeline")
        story = page.locator("details.story")
        story.locator("summary").click()
        expect(story.locator("li")).to_have_count(1)
        expect(story).to_contain_text("Landslide")
        # What it adds is requested as the story is unfolded.
        expect(story.locator(".adds")).to_have_text("Forty people are cut off by rocks and mud.")
        if folder := os.environ.get("SHOTS"):
            page.screenshot(path=f"{folder}/desk.png")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("m")
        expect(page).to_have_title("(1) Unread - rss_pipeline")
        for feed in (first, second):
            expect(page.locator(f'.column [data-feed="{feed}"] > .count')).to_be_hidden()
        # What comes now was never listed: the story goes on.
        books.arrive(second, "Road open again")
        one_story(books.reader, first, second)
        page.goto("/unread")
        shows(page, "Road open again", "A recipe")
        expect(page.locator("details.story .updated")).to_have_text("updated")
        page.locator("details.story summary").click()
        page.get_by_role("link", name="Why these?").click()
        expect(page.locator("ul.story > li")).to_have_count(3)
        if folder:
            page.screenshot(path=f"{folder}/why.png")
        page.get_by_role("button", name="Not the same").last.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("alone")
        page.get_by_role("button", name="Undo").press("Enter")
        expect(page.locator("ul.story > li")).to_have_count(3)
        near = page.get_by_label("at about that time")
        near.press("A")
        near.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").first).to_contain_text("one story")
        expect(page.locator("ul.story > li")).to_have_count(4)


def test_a_story_on_a_phone_has_its_others_within_the_page(books: Library) -> None:
    feeds = [books.feed(f"A rather long name of a newspaper {n}", f"Landslide {n}") for n in range(4)]
    user = books.user(*feeds)
    one_story(books.reader, *feeds)
    with books.open(user, **PHONE) as found:
        page = found.page()
        page.goto("/unread")
        shows(page, "Landslide 0")
        page.locator("details.story summary").tap()
        expect(page.locator("details.story li")).to_have_count(3)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("link", name="Why these?").tap()
        expect(page.get_by_role("button", name="Not the same")).to_have_count(4)
        # Nothing is cut off, as the first words of an item in a list are.
        every = "[...document.querySelectorAll('main p')]"
        assert page.evaluate(f"{every}.every((each) => each.scrollHeight <= each.clientHeight)")
        page.get_by_role("button", name="Not the same").last.tap()
        page.get_by_role("button", name="Undo").tap()
        expect(page.locator("ul.story > li")).to_have_count(4)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if folder := os.environ.get("SHOTS"):
            page.screenshot(path=f"{folder}/phone.png")
