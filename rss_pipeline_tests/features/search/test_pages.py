"""The page of searches: what is on it, and that nothing typed or published is HTML there."""

import re
from html import unescape

import pytest

from rss_pipeline.features.search.api import IndexReaders
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.features.search.test_api import index
from rss_pipeline_tests.storage.values import item, visit
from rss_pipeline_tests.support.reader import Reader


def test_what_is_found_is_shown_with_its_hits_and_may_be_marked(reader: Reader) -> None:
    user = ann(reader, a=1)
    visit(reader.database, [item("x", title="東京 <b>", content_html="<p>News of 東京 & more</p>")], id="a")
    index(reader)
    page = browser(reader, user).get("/search", params={"q": "東京"})
    assert page.status_code == 200
    assert "<mark>東京</mark> &lt;b&gt;" in page.text
    assert "News of <mark>東京</mark> &amp; more" in page.text
    assert 'formaction="/items/' in page.text
    assert "Title 1" not in page.text


def test_the_page_without_a_text_says_how_to_search(reader: Reader) -> None:
    page = browser(reader, ann(reader)).get("/search")
    assert page.status_code == 200
    assert "How to search" in page.text


def test_a_third_search_of_a_user_at_once_is_429(reader: Reader) -> None:
    user = ann(reader, a=1)
    index(reader)
    page, searches = browser(reader, user), reader.app.state.stores.of(IndexReaders).searches
    with searches.one(user.id), searches.one(user.id):
        third = page.get("/search", params={"q": "title"})
        assert page.get("/search").status_code == 200
    assert third.status_code == 429
    assert f"still running. Try again in {third.headers['Retry-After']} seconds." in third.text
    assert "Title 1" not in third.text
    assert "<mark>Title</mark> 1" in page.get("/search", params={"q": "title"}).text


def test_links_lead_through_all_pages_in_both_orders(reader: Reader) -> None:
    user = ann(reader, a=25)
    user.client.put("/api/user/preferences", json={"entries_per_page": 10})
    index(reader)
    for order in ("date", "rank"):
        address, found = f"/search?q=title&order={order}", set()
        while address:
            page = browser(reader, user).get(address)
            assert page.status_code == 200
            found |= set(re.findall(r'id="i-(\w+)"', page.text))
            more = re.search(r'id="more" href="([^"]+)"', page.text)
            address = unescape(more[1]) if more else ""
        assert len(found) == 25


@pytest.mark.parametrize(
    "text", ['"><script>alert(1)</script>', "'><img src=x onerror=alert(1)>", "</title><b>"]
)
def test_what_is_typed_is_no_html(reader: Reader, text: str) -> None:
    user = ann(reader, a=1)
    index(reader)
    page = browser(reader, user).get("/search", params={"q": text})
    assert page.status_code == 200
    for tag in ("<script>alert", "<img src=x", "</title><b>"):
        assert tag not in page.text


def test_ten_kilobytes_are_answered_with_what_was_left_out(reader: Reader) -> None:
    user = ann(reader, a=1)
    index(reader)
    page = browser(reader, user).get("/search", params={"q": "word " * 2_000})
    assert page.status_code == 200
    assert "Only the first 2,000 characters are searched for." in page.text


def test_without_an_index_the_page_says_so(reader: Reader) -> None:
    page = browser(reader, ann(reader, a=1)).get("/search", params={"q": "title"})
    assert page.status_code == 200
    assert "does not exist yet" in page.text


def test_no_one_comes_to_the_login(reader: Reader) -> None:
    page = browser(reader).get("/search", params={"q": "title"})
    assert page.status_code == 303
    assert page.headers["Location"].startswith("/login?next=")
