"""A page without a feed in a browser: what it lists is shown, taken, and read; a lost list is taken anew."""

import pytest
from playwright.sync_api import expect

from rss_pipeline_tests.api.browser.test_adding import Desk, desk, heads
from rss_pipeline_tests.support.clients.chromium import CHROMIUM
from rss_pipeline_tests.support.server import Answer

site = pytest.importorskip("rss_pipeline_tests.features.pages.site")
pytest.importorskip("rss_pipeline.features.pages")
__all__ = ["desk"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


def serve(desk: Desk, main: str) -> str:
    body = site.page(main).encode()
    return desk.server.route("127.0.0.9", "/news/", Answer(body=body, headers={"Content-Type": "text/html"}))


def test_a_page_is_shown_taken_and_read_and_a_lost_list_is_taken_anew(desk: Desk) -> None:
    url = serve(desk, site.entries())
    with desk.page(desk.user("ida")) as page:
        page.goto("/feeds/add")
        page.get_by_label("Address").fill(url)
        page.get_by_role("button", name="Add").click()
        with desk.visits():
            heads(page, "No feed, but a list")
        expect(page.get_by_text(site.TITLES[0])).to_be_visible()
        expect(page.get_by_text("2026-01-11")).to_be_visible()
        page.get_by_role("button", name="Collect these entries").click()
        with desk.visits():
            heads(page, "You are subscribed")
        page.get_by_role("link", name="Read News").click()
        expect(page.locator(".entry")).to_have_count(6)
        page.get_by_role("link", name=site.TITLES[0]).first.click()
        expect(page.get_by_text(site.WORDS).first).to_be_visible()

        titles = [f"{title} again" for title in site.TITLES]
        url = serve(desk, site.entries(titles=titles, kind="item").replace("/news/", "/2027/"))
        desk.a_minute_passes()
        page.get_by_role("link", name="News").first.click()
        page.get_by_role("link", name="Edit").first.click()
        page.get_by_role("button", name="Refresh now").click()
        with desk.visits():
            heads(page, "The visit failed")
        expect(page.get_by_role("button", name="See what would be collected now")).to_be_visible()
        desk.a_minute_passes()
        page.get_by_role("link", name="Read News").click()
        page.get_by_role("link", name="What would be collected now?").click()
        page.get_by_role("button", name="See what would be collected now").click()
        with desk.visits():
            heads(page, "No feed, but a list")
        desk.a_minute_passes()
        page.get_by_role("button", name="Collect these entries").click()
        with desk.visits():
            heads(page, "You are subscribed")
        expect(page.get_by_text("has brought 6 items")).to_be_visible()
