"""axe-core finds nothing serious on any view, light and dark, wide and narrow."""

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
LOOKS: tuple[dict[str, Any], ...] = (
    {},
    {"color_scheme": "dark"},
    {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
)


def serious(page: Page) -> list[str]:
    """What axe-core calls serious or critical, with where it is."""
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("look", LOOKS, ids=("light", "dark", "phone"))
def test_axe_finds_nothing_serious_on_any_view(books: Library, look: dict[str, Any]) -> None:
    feed = books.feed("Planet", "one", "two", link="https://planet.example/")
    user = books.user(feed, folder="News")
    with books.open(user, **look) as found:
        page = found.page()
        page.goto("/unread")
        id = page.locator(".entry").last.get_attribute("data-id")
        page.keyboard.press("j")
        page.keyboard.press("o")
        page.locator(".opened .body").wait_for()
        assert serious(page) == []
        page.keyboard.press("?")
        assert serious(page) == []
        bad = {}
        for path in PATHS:
            page.goto(path.format(feed=feed, item=id))
            if what := serious(page):
                bad[path] = what
        assert bad == {}
