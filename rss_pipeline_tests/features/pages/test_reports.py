"""Reports of users of other readers about pages as feeds, each rebuilt as a small page."""

import pytest

from rss_pipeline.features.pages.detect import detect
from rss_pipeline.features.pages.page import MOST_LINKS
from rss_pipeline_tests.features.pages.site import URL, page
from rss_pipeline_tests.features.pages.test_visits import DATE, days, listed, serve, titles
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


def test_an_entry_on_top_is_the_only_new_one_whatever_its_links_carry(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """FreshRSS 5823: every item is new whenever one is added. RSS-Bridge 3680: the same posts every day."""

    def of_visit(number: int, *entries: int) -> bytes:
        body = listed(*entries).decode()
        return body.replace('-entry"', f'-entry?utm_source=d{number}&PHPSESSID=s{number}#top"').encode()

    id = pipeline.register(
        serve(server, of_visit(1, *range(5)), of_visit(2, 5, *range(5)), of_visit(3, 6, 5, *range(5))),
        "news",
        page="auto",
    )
    days(pipeline, 3)
    assert len(titles(pipeline, id)) == 7
    assert titles(pipeline, id)[5:] == ["The title of entry 5", "The title of entry 6"]


def test_entries_without_a_link_come_once(pipeline: Pipeline, server: FeedServer) -> None:
    """RSS-Bridge 4256: items without a link. html2rss 393: a page without anchors."""
    rows = [f"<section><h2>Notice {n}</h2><p>On 2026-01-1{n}: text.</p></section>" for n in range(5)]
    url = serve(server, page("".join(rows[1:])).encode(), page("".join(rows)).encode())
    id = pipeline.register(url, "notices", page={"item": "section", "title": "h2"})
    days(pipeline, 2)
    assert sorted(titles(pipeline, id)) == [f"Notice {n}" for n in range(5)]
    assert {item["link"] for item in pipeline.items(id)} == {None}


def test_a_page_that_shows_nothing_says_so_at_its_first_visit(pipeline: Pipeline, server: FeedServer) -> None:
    """FreshRSS 7657: "feed is empty", and no line of a log says why."""
    id = pipeline.register(serve(server, page("<p>No news yet.</p>").encode()), "news", page="auto")
    pipeline.poll()
    feed = pipeline.feed(id)
    assert feed["last_error_kind"] == "no_list"
    assert "links, and no group of them looks like entries" in feed["last_error"]


def test_two_pages_with_the_same_list_have_all_of_it_each(pipeline: Pipeline, server: FeedServer) -> None:
    urls = [serve(server, listed(*range(5), date=DATE), path=path) for path in ("/news/", "/archive/")]
    ids = [pipeline.register(url, f"p{n}", page="auto") for n, url in enumerate(urls)]
    days(pipeline, 2)
    assert [sorted(titles(pipeline, id)) for id in ids] == [[f"The title of entry {n}" for n in range(5)]] * 2
    assert [pipeline.feed(id)["last_error"] for id in ids] == [None, None]


def test_of_ten_thousand_links_the_first_are_read() -> None:
    rows = "".join(f'<li><a href="/p/{n}">Title no. {n}</a> 2026-01-02</li>' for n in range(10_000))
    found = detect(page(f"<ul>{rows}</ul>"), URL)
    assert found.verdict == "certain"
    assert MOST_LINKS - 10 < len(found.entries) <= MOST_LINKS


def test_a_topic_of_a_page_has_its_entries(pipeline: Pipeline, server: FeedServer) -> None:
    pytest.importorskip("rss_pipeline.features.topics")
    from rss_pipeline_tests.features.topics.test_publish import published
    from rss_pipeline_tests.features.topics.test_publish import titles as titles_of_topic

    pipeline.topics = {"town": {"of": "news", "public": True}}
    pipeline.register(serve(server, listed(*range(5), date=DATE)), "news", page="auto")
    pipeline.poll()
    published(pipeline)
    assert titles_of_topic(pipeline, "town") == [f"The title of entry {n}" for n in (4, 3, 2, 1, 0)]
