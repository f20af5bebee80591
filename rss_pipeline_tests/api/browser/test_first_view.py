"""The cost of a browser's first view: bytes, and nothing that moves once it is shown."""

import pytest
from playwright.sync_api import Request, expect

from rss_pipeline_tests.api.browser.library import Library

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

KILOBYTE = 1_000
SHIFTS = """() => new Promise(resolve => {
  const seen = new PerformanceObserver(() => {});
  seen.observe({ type: "layout-shift", buffered: true });
  resolve(seen.takeRecords().reduce((sum, each) => sum + each.value, 0));
})"""


def test_the_first_view_of_100_feeds_and_50_items_is_less_than_100_kilobytes(books: Library) -> None:
    feeds = [books.feed(f"Feed of the number {n}") for n in range(100)]
    for n, feed in enumerate(feeds[:60]):
        books.arrive(feed, f"An item with a title of the usual length, which is number {n}")
    user = books.user(*feeds, folder="A folder")
    requests: list[Request] = []
    with books.open(user) as found:
        page = found.page()
        page.on("requestfinished", lambda request: requests.append(request))
        page.goto("/", wait_until="networkidle")
        expect(page.locator("#entries .title")).to_have_count(50)
        expect(page.locator("[data-feed]")).to_have_count(100)
        shifts = page.evaluate(SHIFTS)
        sizes = {each.url: each.sizes() for each in requests if each.resource_type != "image"}
    sent = {url: size["responseBodySize"] + size["responseHeadersSize"] for url, size in sizes.items()}
    assert any(url.endswith(".css") for url in sent)
    assert any(url.endswith(".js") for url in sent)
    assert sum(sent.values()) < 100 * KILOBYTE, sent
    assert shifts == 0
