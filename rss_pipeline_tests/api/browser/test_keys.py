"""Keys in Chromium: with every layout of the keyboard, and those that mark all and take it back."""

import pytest
from playwright.sync_api import Page, expect

from rss_pipeline_tests.api.browser.library import Library
from rss_pipeline_tests.storage.subscriptions.readers import unread
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.waiting import soon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

LAYOUTS = {
    "Russian": "оьыш",
    "Ukrainian": "оьіш",
    "Greek": "ξμσι",
    "Hebrew": "חצדן",
    "Arabic": "تةسه",
    "Korean": "ㅓㅡㄴㅑ",
    "Thai": "่ทหร",
    "an input method": ["Process"] * 4,
}
"""The labels on the keys of `j`, `m`, `s` and, where it does nothing, `i`."""
SHIFT = 8


def press(page: Page, key: str, code: str, *, modifiers: int = 0) -> None:
    """A key as the browser reports it: what is typed by it, and its place on an English keyboard."""
    session = page.context.new_cdp_session(page)
    for kind in ("rawKeyDown", "keyUp"):
        session.send(
            "Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code, "modifiers": modifiers}
        )
    session.detach()


def test_keys_work_by_their_place_where_the_layout_has_no_latin_letters(books: Library) -> None:
    feed = books.feed("Planet", "one", "two")
    user = books.user(feed)
    books.prefer(user, mark_read_on_open=False)
    with books.open(user) as found:
        page = found.page()
        for layout, (j, m, s, i) in LAYOUTS.items():
            page.goto("/unread")
            press(page, j, "KeyJ")
            expect(page.locator(".entry.current .title"), layout).to_have_text("two")
            press(page, i, "KeyI")
            press(page, m, "KeyM")
            expect(page.locator(".entry.current.read"), layout).to_have_count(1)
            press(page, m, "KeyM")
            expect(page.locator(".entry.current.unread"), layout).to_have_count(1)
            press(page, s, "KeyS")
            expect(page.locator(".entry.current .unstar"), layout).to_have_count(1)
            press(page, s, "KeyS")
            expect(page.locator(".entry.current .star"), layout).to_have_count(1)
            soon(lambda: page.evaluate("marking") == 0)
        # What is printed on the key is what it does, wherever it is: `j` of Dvorak, `?` of Russian.
        press(page, "j", "KeyC")
        expect(page.locator(".entry.current .title")).to_have_text("one")
        for key, code, modifiers in (("?", "Digit7", SHIFT), (",", "Slash", SHIFT), ("؟", "Slash", SHIFT)):
            press(page, key, code, modifiers=modifiers)
            expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
            page.keyboard.press("Escape")
        if "search" in INSTALLED:
            press(page, ".", "Slash")
            expect(page.locator(".search input")).to_be_focused()


def test_caps_lock_makes_no_other_key_of_one_and_letters_with_accents_are_none(books: Library) -> None:
    feed = books.feed("Planet", "one", "two")
    with books.open(books.user(feed)) as found:
        page = found.page()
        page.goto("/unread")
        press(page, "J", "KeyJ")
        expect(page.locator(".entry.current .title")).to_have_text("two")
        # Shift makes another one of it, also while caps lock is on.
        press(page, "j", "KeyJ", modifiers=SHIFT)
        press(page, "ŝ", "KeyJ")
        press(page, "ß", "KeyS")
        expect(page.locator(".entry.current .title")).to_have_text("two")
        expect(page.locator(".unstar")).to_have_count(0)
        press(page, "A", "KeyA")
        expect(page.locator(".entry.unread")).to_have_count(2)
        # A key that is held acts once; some of other scripts have two characters (Khmer, Arabic).
        for repeat in ("true", "false"):
            page.evaluate(
                f"""document.body.dispatchEvent(new KeyboardEvent(
                  'keydown', {{ key: 'ញ៉', code: 'KeyS', bubbles: true, repeat: {repeat} }}))"""
            )
        expect(page.locator(".unstar")).to_have_count(1)


@pytest.mark.parametrize(("key", "modifiers"), [("A", SHIFT), ("a", SHIFT), ("Ф", SHIFT)])
def test_a_key_marks_all_that_was_shown(books: Library, key: str, modifiers: int) -> None:
    feed = books.feed("Planet", "one", "two")
    user = books.user(feed)
    with books.open(user) as found:
        page = found.page()
        page.goto(f"/feeds/{feed}")
        with page.expect_navigation():
            press(page, key, "KeyA", modifiers=modifiers)
        expect(page.locator(".empty")).to_contain_text("All read")
        soon(lambda: unread(books.reader.database, user.id) == {feed: 0})
        press(page, key, "KeyA", modifiers=modifiers)
        expect(page.locator("#say")).to_have_text("Nothing to mark")


@pytest.mark.parametrize(
    "undo",
    [
        '<form action="/all" data-key-action="undo"><button>Undo</button></form>',
        '<form action="/all"><button data-key-action="undo">Undo</button></form>',
    ],
)
def test_a_key_takes_back_what_offers_to_be_taken_back(books: Library, undo: str) -> None:
    with books.open(books.user(books.feed("Planet", "one"))) as found:
        page = found.page()
        page.goto("/unread")
        page.keyboard.press("z")
        expect(page.locator("#say")).to_have_text("Nothing to undo")
        page.evaluate("undo => document.querySelector('main').insertAdjacentHTML('beforeend', undo)", undo)
        with page.expect_navigation():
            page.keyboard.press("z")
        expect(page.get_by_role("heading", level=1)).to_have_text("All items")
