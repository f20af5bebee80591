"""axe-core finds nothing serious on any view, light and dark, wide and narrow."""

from collections.abc import Callable
from itertools import cycle, permutations
from typing import Any

import pytest
from playwright.sync_api import Page, ViewportSize

from rss_pipeline_tests.api.browser.library import Library
from rss_pipeline_tests.support.clients.chromium import HEIGHT, WIDTH
from rss_pipeline_tests.support.installed import there

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-playwright-python")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATHS = there(
    "/unread",
    "/all",
    "/starred",
    "/feeds",
    "/feeds/{feed}?show=all",
    "/feeds/{feed}/edit",
    "/feeds/{feed}/statistics",
    "/feeds/add",
    "/folders/News",
    "/items/{item}",
    "/failing",
    "/search?q=one",
    "/settings",
    "/settings/apps",
    "/settings/folders",
    "/settings/opml",
    "/settings/sessions",
    "/statistics",
    "/tasks",
)
WIDE: ViewportSize = {"width": WIDTH, "height": HEIGHT}
NARROW: ViewportSize = {"width": 390, "height": 844}
LABELS = "label-content-name-mismatch"
"""An experimental rule: a control's name has what is on it, so that it can be called by that."""
ARTICLE = (
    '<p>A claim.<sup id="r"><a href="#n">1</a></sup></p>'
    '<ol><li id="n">Its source. <a href="#r">back</a></li></ol>'
    + 2 * f"<table><tr>{'<td>cell&nbsp;of&nbsp;words</td>' * 20}</tr></table><pre>{'code ' * 90}</pre>"
    + '<p><img src="https://pic.example/a.png" alt="A cat"></p>'
)
"""Elements that scroll sideways, a footnote, and an image that is not archived."""
COLOURS = {"runOnly": ["color-contrast"]}
"""The page in dark colours: of the elements, they change nothing."""


def serious(page: Page, **options: Any) -> list[str]:
    """The violations that axe-core, which is in the page, calls serious or critical, with where it is."""
    options = {"resultTypes": ["violations"], "rules": {LABELS: {"enabled": True}}, **options}
    found = page.evaluate("options => axe.run(document, options)", options)["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def on_the_desk(page: Page) -> list[str]:
    return serious(page)


def in_the_dark(page: Page) -> list[str]:
    page.emulate_media(color_scheme="dark")
    found = serious(page, **COLOURS)
    page.emulate_media(color_scheme="light")
    return [f"in the dark, {each}" for each in found]


def on_a_phone(page: Page) -> list[str]:
    page.set_viewport_size(NARROW)
    found = serious(page)
    page.set_viewport_size(WIDE)
    return [f"on a phone, {each}" for each in found]


LOOKS = (on_the_desk, in_the_dark, on_a_phone)
"""A page in both colours, and as narrow as a phone's."""


def found_on(page: Page, *looks: Callable[[Page], list[str]]) -> list[str]:
    page.evaluate(axe.Axe().axe_script)
    return [each for look in looks for each in look(page)]


@pytest.mark.parametrize(
    "looks_each", [pytest.param(3, marks=pytest.mark.soak), 1], ids=["all looks", "a look each"]
)
def test_axe_finds_nothing_serious_on_any_view(books: Library, looks_each: int) -> None:
    """Each look at an item that is open; at the other pages one after the other takes its turn."""
    fields = {"link": "https://planet.example/", "comments_url": "https://planet.example/#talk"}
    feed = books.feed("Planet", "one", "two", content_html=ARTICLE, **fields)
    user = books.user(feed, folder="News")
    with books.open(user) as found:
        page = found.page()
        page.goto("/unread")
        id = page.locator(".entry").last.get_attribute("data-id")
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.locator(".opened .body").wait_for()
        assert found_on(page, *LOOKS) == []
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()
        assert found_on(page, *LOOKS[:looks_each]) == []
        bad = {}
        for path, looks in zip(PATHS, cycle(permutations(LOOKS, looks_each)), strict=False):
            page.goto(path.format(feed=feed, item=id))
            if what := found_on(page, *looks):
                bad[path] = what
        assert bad == {}
