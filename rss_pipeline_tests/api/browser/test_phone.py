"""The reader on a phone of 390 px: targets for fingers, tools in one row, wide tables, footnotes."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from rss_pipeline_tests.api.browser.library import Library
from rss_pipeline_tests.support.installed import there
from rss_pipeline_tests.support.waiting import soon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
PATHS = there(
    "/unread",
    "/starred",
    "/feeds",
    "/feeds/{feed}?show=all",
    "/feeds/{feed}/edit",
    "/feeds/add",
    "/folders/News",
    "/items/{item}",
    "/search?q=one",
    "/settings",
    "/settings/apps",
    "/settings/folders",
    "/settings/opml",
    "/settings/sessions",
    "/statistics",
    "/settings/folders/one?name=News",
    "/feeds/{feed}/statistics",
    "/nothing-here",
)
SMALL = """() => {
  const inText = (each) => getComputedStyle(each).display === 'inline'
    && each.parentElement.textContent.trim() !== each.textContent.trim();
  const isShown = (each) => !each.closest('.body, [hidden], dialog, .plot')
    && each.checkVisibility({ visibilityProperty: true })
    && (each.closest('summary') || !each.closest('details:not([open])'));
  const found = [];
  for (const each of document.querySelectorAll(':is(main, .top) :is(a, button, summary, select, input)')) {
    if (!isShown(each) || (each.tagName === 'A' && inText(each))) continue;
    const target = each.matches('[type="checkbox"], [type="radio"]') ? each.closest('label') ?? each : each;
    const box = target.getBoundingClientRect();
    if (!box.width || !box.height || (box.height >= 43.9 && box.width >= 43.9)) continue;
    found.push(`${each.outerHTML.slice(0, 90)} ${box.width}x${box.height}`);
  }
  return found;
}"""
"""Targets that are smaller than 44 px, but for links in a sentence, which WCAG 2.5.5 leaves out."""
NARROW = "document.styleSheets[0].insertRule('body * { font-size: 3px !important; }')"
"""Text narrower than that of any font, as an arrow or a word can be in the fonts of another machine."""
TABLE = "<tr>" + "".join(f"<td>several words of column {n}</td>" for n in range(12)) + "</tr>"
NOTES = (
    '<p>A claim.<sup id="r1"><a href="#n1">1</a></sup></p>'
    + "<p>Text.</p>" * 60
    + '<ol><li id="n1">Its source. <a href="#r1">back</a></li></ol>'
    + "<p>More.</p>" * 60
)


def fits(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_everything_that_is_tapped_has_44_pixels(books: Library) -> None:
    feed, other = (
        books.feed(name, "one", "two", link="https://a.example/1", comments_url="https://a.example/1#c")
        for name in ("Planet", "Other")
    )
    user = books.user(feed, other, folder="News")
    with books.open(user, **PHONE) as found:
        page = found.page()
        page.goto("/unread")
        item = page.locator(".entry").first.get_attribute("data-id")
        page.locator(".menu summary").tap()
        small = {"the menu": page.evaluate(SMALL)}
        page.locator(".menu summary").tap()
        page.locator(".choice summary").tap()
        small["the order"] = page.evaluate(SMALL)
        page.evaluate(NARROW)
        small["the order, in narrow text"] = page.evaluate(SMALL)
        page.goto("/unread")
        page.locator(".entry .title").first.tap()
        page.locator(".opened .end").wait_for()
        small["an open item"] = page.evaluate(SMALL)
        page.evaluate(NARROW)
        page.locator(".menu summary").tap()
        small["an open item and the menu, in narrow text"] = page.evaluate(SMALL)
        for path in PATHS:
            page.goto(path.format(feed=feed, item=item))
            small[path] = page.evaluate(SMALL)
            assert fits(page), path
            page.evaluate(NARROW)
            small[f"{path}, in narrow text"] = page.evaluate(SMALL)
    assert {where: what for where, what in small.items() if what} == {}


@pytest.mark.parametrize("path", ["/unread", "/feeds/{feed}", "/folders/News", "/starred"])
def test_the_tools_of_a_list_are_in_one_row(books: Library, path: str) -> None:
    feed = books.feed("Planet", "one")
    with books.open(books.user(feed, folder="News"), **PHONE) as found:
        page = found.page()
        page.goto(path.format(feed=feed))
        boxes = page.evaluate(
            "[...document.querySelectorAll('.tools > :not(.gap)')].map(each => each.getBoundingClientRect())"
        )
        assert len({round(box["top"] + box["height"] / 2) for box in boxes}) == 1
        assert max(box["right"] for box in boxes) <= 390 - 16
        if path != "/starred":
            # By the name that it has on a wide page.
            expect(page.get_by_role("button", name="Mark all read")).to_be_visible()


def test_a_wide_table_scrolls_in_itself_and_its_words_stay_whole(books: Library) -> None:
    feed = books.feed("Planet", "one", content_html=f"<table>{TABLE}</table><pre>{'code ' * 90}</pre>")
    with books.open(books.user(feed), **PHONE) as found:
        page = found.page()
        page.goto("/unread")
        page.locator(".entry .title").tap()
        page.locator(".opened .end").wait_for()
        assert fits(page)
        for name in ("Table", "Preformatted text"):
            part = page.get_by_role("group", name=name)
            assert part.evaluate("each => each.scrollWidth > each.clientWidth")
            # By keyboard, too.
            part.focus()
            page.keyboard.press("ArrowRight")
            soon(lambda: page.evaluate("document.activeElement.scrollLeft > 0"))
        assert page.locator(".opened td").first.evaluate("each => each.getBoundingClientRect().width") > 60


@pytest.mark.parametrize("scripts", [True, False])
def test_a_footnote_and_the_way_back_stay_on_the_page(books: Library, scripts: bool) -> None:
    feed = books.feed("Planet", "one", content_html=NOTES, link="https://planet.example/1")
    with books.open(books.user(feed), java_script_enabled=scripts, **PHONE) as found:
        page = found.page()
        page.goto("/unread")
        page.locator(".entry .title").click()
        body = page.locator(".body")
        claim, source = body.get_by_text("A claim."), body.get_by_text("Its source.")
        body.get_by_role("link", name="1", exact=True).click()
        expect(source).to_be_in_viewport()
        expect(claim).not_to_be_in_viewport()
        body.get_by_role("link", name="back", exact=True).click()
        expect(claim).to_be_in_viewport()
        page.go_back()
        expect(source).to_be_in_viewport()
        assert len(found.context.pages) == 1


def test_what_is_nested_deeply_leaves_room_for_its_text(books: Library) -> None:
    quotes = "<blockquote>" * 30 + "<p id=quoted>A word of it</p>" + "</blockquote>" * 30
    lists = "<ul><li>" * 25 + "A word of it" + "</li></ul>" * 25
    feed = books.feed("Planet", "deep", content_html=quotes + lists)
    with books.open(books.user(feed), **PHONE) as found:
        page = found.page()
        page.goto("/unread")
        page.locator(".title").click()
        for innermost in ("blockquote p", "li:not(:has(li))"):
            text = page.locator(f".opened .body {innermost}").last
            expect(text).to_be_visible()
            assert text.evaluate("each => each.clientWidth") > 200
