"""axe-core finds nothing serious on any view, light and dark, wide and narrow."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from rss_pipeline_tests.api.browser.library import Library

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-playwright-python")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATHS = (
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
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
COLOURS = {"runOnly": ["color-contrast"]}
"""What the dark colours can change: of the elements, they change nothing."""


def serious(page: Page, **options: Any) -> list[str]:
    """What axe-core calls serious or critical, with where it is."""
    found = axe.Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def in_both_colours(page: Page) -> list[str]:
    bright = serious(page)
    page.emulate_media(color_scheme="dark")
    dark = serious(page, **COLOURS)
    page.emulate_media(color_scheme="light")
    return bright + [f"in the dark, {each}" for each in dark]


@pytest.mark.parametrize(
    ("look", "found_on"), [({}, in_both_colours), (PHONE, serious)], ids=("light and dark", "phone")
)
def test_axe_finds_nothing_serious_on_any_view(
    books: Library, look: dict[str, Any], found_on: Callable[[Page], list[str]]
) -> None:
    feed = books.feed("Planet", "one", "two", link="https://planet.example/")
    user = books.user(feed, folder="News")
    with books.open(user, **look) as found:
        page = found.page()
        page.goto("/unread")
        id = page.locator(".entry").last.get_attribute("data-id")
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.locator(".opened .body").wait_for()
        assert found_on(page) == []
        page.keyboard.press("?")
        assert found_on(page) == []
        bad = {}
        for path in PATHS:
            page.goto(path.format(feed=feed, item=id))
            if what := found_on(page):
                bad[path] = what
        assert bad == {}
