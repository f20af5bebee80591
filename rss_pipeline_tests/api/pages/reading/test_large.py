"""Items, feeds and lists of feeds that are far larger than usual: each page takes less than a second."""

import pytest

from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.pages.reading.test_lists import link, titles
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive, subscribe
from rss_pipeline_tests.storage.values import change, item, register, spec, visit
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.installed import there
from rss_pipeline_tests.support.reader import Reader

pytestmark = pytest.mark.slow

IMAGES = "".join(f'<p>{n}<a href="/p{n}"><img src="/i{n}.png" alt=""></a></p>' for n in range(5_000))
TEXT = "<p>A sentence of an article without end.</p>"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        (IMAGES, "<p>4999"),
        (TEXT * (1_990_000 // len(TEXT)), "A sentence of an article without end."),
        (TEXT * (3_000_000 // len(TEXT)), "A sentence of an article without end."),
        (TEXT + f'<img src="data:image/png;base64,{"a" * 2_000_000}">', "too large to be stored whole: "),
    ],
    ids=["5,000 images", "the most that a row holds", "more than a row of D1 holds", "an image within"],
)
def test_a_large_item_is_shown_in_a_second(reader: Reader, html: str, shown: str) -> None:
    user = ann(reader, a=0)
    visit(reader.database, [item("large", content_html=html)], id="a")
    client = browser(reader, user)
    with costs_less_than(1):
        page = client.get("/unread")
    assert titles(page) == ["Title large"]
    with costs_less_than(1):
        page = client.get(link(page, "Title large"))
    assert page.status_code == 200
    assert shown in page.text


def test_a_feed_of_100000_items_is_shown_in_a_second(reader: Reader) -> None:
    user = ann(reader, a=1)
    wanted = 100_000
    reader.database.query(
        f"""WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {wanted - 1})
        INSERT INTO items (id, feed_id, guid, title, pub_date, content_html, created_at, guid_source,
          pub_date_source, arrived)
        SELECT printf('%032x', n), feed_id, n + 1, 'Item ' || n, pub_date, content_html, created_at,
          guid_source, pub_date_source, arrived + n FROM n, items WHERE items.guid = '1'"""
    )
    change(reader.database, f"UPDATE sequences SET value = value + {wanted - 1}")
    client = browser(reader, user)
    for path in there("/unread", "/feeds/a", "/feeds/a?order=oldest", "/feeds", "/feeds/a/statistics"):
        with costs_less_than(1):
            page = client.get(path)
        assert page.status_code == 200
        assert "100,000" in page.text or "100000" in page.text, path
    with costs_less_than(1):
        assert client.get("/next-unread").status_code == 303


def test_3000_subscriptions_are_shown_in_a_second(reader: Reader) -> None:
    feeds = [f"f{n}" for n in range(3_000)]
    register(reader.database, *map(spec, feeds))
    arrive(reader.database, "f7", "1")
    user = reader.user("ann")
    subscribe(reader.database, user.id, *feeds)
    client = browser(reader, user)
    for path in there("/unread", "/feeds", "/feeds/f9", "/settings/folders", "/statistics"):
        with costs_less_than(1):
            page = client.get(path)
        assert page.status_code == 200
