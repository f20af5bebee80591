"""Image tasks: found once each, none lost between storing an item and reading it."""

from datetime import datetime

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.item import Enclosure, image_task_id, item_id
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Row
from rss_pipeline.storage.images import image_tasks
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline_tests.storage.values import HOUR, NOW, change, feed_row, item, register, spec, visit


@pytest.fixture
def known(database: Database) -> Database:
    """Two feeds; `a` has items 1 to 3, `b` has item 1."""
    register(database, spec("a"), spec("b"))
    visit(database, [item(guid) for guid in "123"])
    visit(database, [item("1")], id="b")
    return database


def record(database: Database, *found: ItemImages, feeds: tuple[str, ...] = (), now: datetime = NOW) -> int:
    """Write them; in how many batches."""
    batches = image_tasks.record_statements(
        found,
        feeds=[(id, feed_row(database, id)["content_hash"]) for id in feeds],
        rules="now",
        now=now,
    )
    for batch in batches:
        database.batch(batch)
    return len(batches)


def images(guid: str, *urls: str, feed: str = "a") -> ItemImages:
    return ItemImages(item_id=item_id(feed, guid), urls=urls)


def tasks(database: Database) -> list[Row]:
    return database.query("SELECT * FROM image_tasks ORDER BY item_id, position").rows


def pending(database: Database, feed_id: str = "a") -> list[str]:
    return [row["id"] for page in image_tasks.pending_items(database, feed_id) for row in page]


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://CDN.example/1.jpg", "cdn.example"),
        ("https://cdn.example?size=1/2", "cdn.example"),
        ("https://me:secret@cdn.example:8443/1.jpg", "cdn.example"),
        ("http://[::1]:8080/2.png", "::1"),
        ("http://[::1/2.png", ""),
        ("http:///1.jpg", ""),
    ],
)
def test_a_task_has_the_host_of_its_image(known: Database, url: str, host: str) -> None:
    record(known, images("1", url, f"{url}?again"))
    assert {row["host"] for row in tasks(known)} == {host}


def test_each_image_of_an_item_is_a_task(known: Database) -> None:
    record(known, images("1", "https://cdn.example/1.jpg", "http://[::1]:8080/2.png"), feeds=("a",))
    first, second = tasks(known)
    assert first == {
        "id": image_task_id(item_id("a", "1"), "https://cdn.example/1.jpg"),
        "item_id": item_id("a", "1"),
        "original_url": "https://cdn.example/1.jpg",
        "r2_key": None,
        "status": "pending",
        "attempts": 0,
        "last_error": None,
        "last_error_kind": None,
        "created_at": instant(NOW),
        "updated_at": instant(NOW),
        "host": "cdn.example",
        "position": 0,
        "next_attempt_at": None,
        "lease_token": None,
        "bytes": None,
        "width": None,
        "height": None,
        "written": None,
    }
    assert (second["host"], second["position"]) == ("::1", 1)


def test_an_item_looked_at_is_pending_no_more_images_or_not(known: Database) -> None:
    assert pending(known) == sorted(item_id("a", guid) for guid in "123")
    record(known, images("1", "https://x.example/1"), images("2"))
    assert pending(known) == [item_id("a", "3")]
    assert pending(known, "b") == [item_id("b", "1")]
    row = known.query("SELECT images_extracted_at FROM items WHERE id = ?", [item_id("a", "2")]).rows[0]
    assert row["images_extracted_at"] == instant(NOW)


def test_to_record_twice_is_to_record_once(known: Database) -> None:
    found = images("1", "https://x.example/1", "https://x.example/2")
    record(known, found)
    before = tasks(known)
    record(known, found, now=NOW + HOUR)
    assert tasks(known) == before


def test_one_url_in_two_items_is_two_tasks_and_twice_in_one_is_one(known: Database) -> None:
    url = "https://x.example/1"
    record(known, images("1", url, url), images("2", url), images("1", url, feed="b"))
    assert [(task["item_id"], task["position"]) for task in tasks(known)] == sorted(
        (item_id(feed, guid), 0) for feed, guid in (("a", "1"), ("a", "2"), ("b", "1"))
    )


def test_the_feeds_flag_falls_with_the_last_batch_and_for_its_feeds_only(known: Database) -> None:
    record(known, images("1"))
    assert feed_row(known)["images_pending"] == 1
    record(known, images("2"), images("3"), feeds=("a",))
    assert (feed_row(known)["images_pending"], feed_row(known, "b")["images_pending"]) == (0, 1)
    record(known, feeds=("b",))
    assert feed_row(known, "b")["images_pending"] == 0


def test_nothing_found_in_nothing_writes_nothing(known: Database) -> None:
    assert record(known) == 0


@pytest.mark.slow
def test_many_tasks_go_in_batches_below_a_megabyte_in_their_order_and_items_are_marked_last(
    known: Database,
) -> None:
    urls = tuple(f"https://x.example/{n}/" + "y" * 500 for n in range(3_000))
    batches = image_tasks.record_statements(
        [images("1", *urls)], feeds=[("a", feed_row(known)["content_hash"])], rules="now", now=NOW
    )
    assert len(batches) > 1
    for batch in batches:
        assert sum(len(str(value).encode()) for value in batch[0].params) <= MAX_PARAMETER_BYTES + 100
    for batch in batches[:-1]:
        known.batch(batch)
        assert item_id("a", "1") in pending(known)
    known.batch(batches[-1])
    assert item_id("a", "1") not in pending(known)
    assert [(task["position"], task["original_url"]) for task in tasks(known)] == list(enumerate(urls))


def test_an_item_that_is_gone_gets_no_tasks_and_stops_no_other(known: Database) -> None:
    record(known, images("unknown", "https://x.example/1"), images("1", "https://x.example/1"))
    assert [task["item_id"] for task in tasks(known)] == [item_id("a", "1")]


@pytest.mark.parametrize(
    "url", ["https://x.example/\ud800", "https://x.example/\0", "https://x.example/" + "y" * 64_000]
)
def test_a_url_that_no_store_takes_is_left_out_and_stops_no_other(known: Database, url: str) -> None:
    record(known, images("1", url, "https://x.example/2"), images("1", "https://x.example/3", feed="b"))
    assert {task["original_url"] for task in tasks(known)} == {"https://x.example/2", "https://x.example/3"}
    assert item_id("a", "1") not in pending(known)


@pytest.mark.parametrize("url", ["https://[broken/1.jpg", "https://例え.jp/画像 1.jpg?a=1&b=2", "//", "1"])
def test_an_odd_url_is_a_task_like_others(known: Database, url: str) -> None:
    record(known, images("1", url))
    assert [task["original_url"] for task in tasks(known)] == [url]


def test_pending_items_come_in_pages_of_two_hundred_each_once(database: Database) -> None:
    register(database, spec("a"))
    visit(database, [item(f"{n}") for n in range(450)])
    pages = list(image_tasks.pending_items(database, "a"))
    assert [len(page) for page in pages] == [200, 200, 50]
    found = [row["id"] for page in pages for row in page]
    assert found == sorted(item_id("a", f"{n}") for n in range(450))


def test_pages_stay_small_however_large_the_items(database: Database) -> None:
    register(database, spec("a"))
    sizes = {f"{n}": 300_000 for n in range(6)} | {"alone": 1_900_000}
    visit(database, [item(guid, content_html="語" * (size // 3)) for guid, size in sizes.items()])
    pages = list(image_tasks.pending_items(database, "a"))
    assert sum(map(len, pages)) == 7
    for page in pages:
        size = sum(len(row["content_html"].encode()) for row in page)
        assert size <= MAX_PARAMETER_BYTES or len(page) == 1


def test_a_pending_item_comes_with_all_that_finding_its_images_needs(database: Database) -> None:
    register(database, spec("a"))
    enclosures = (Enclosure(url="https://a.example/1.jpg", type="image/jpeg"),)
    visit(
        database,
        [item("1", link="https://a.example/1", base_url="https://b.example/", enclosures=enclosures)],
    )
    [[row]] = image_tasks.pending_items(database, "a")
    assert (row["link"], row["base_url"]) == ("https://a.example/1", "https://b.example/")
    assert row["content_html"] == "<p>1</p>"
    assert '"image/jpeg"' in row["enclosures"]


def test_items_marked_while_the_pages_are_read_do_not_shift_them(database: Database) -> None:
    register(database, spec("a"))
    visit(database, [item(f"{n}") for n in range(450)])
    seen = []
    for page in image_tasks.pending_items(database, "a"):
        seen += [row["id"] for row in page]
        record(database, *(ItemImages(item_id=row["id"], urls=()) for row in page))
    assert len(seen) == len(set(seen)) == 450
    assert pending(database) == []


def test_an_unknown_feed_has_nothing_pending(known: Database) -> None:
    assert pending(known, "unknown") == []


def test_the_flag_stays_where_another_run_stored_a_newer_document_since(known: Database) -> None:
    known.query("UPDATE feeds SET images_pending = 1, content_hash = 'newer' WHERE id = 'a'")
    for statement in image_tasks.record_statements([], feeds=[("a", "older")], rules="now", now=NOW)[0]:
        known.query(statement.sql, statement.params)
    assert known.query("SELECT images_pending FROM feeds WHERE id = 'a'").rows == [{"images_pending": 1}]


def test_images_an_item_gains_come_after_those_it_has_whatever_their_place(known: Database) -> None:
    record(known, images("1", "https://x.example/1", "https://x.example/2"))
    change(known, "DELETE FROM image_tasks WHERE position = 0")
    urls = ("https://x.example/new", "https://x.example/2", "https://x.example/1", "https://x.example/last")
    record(known, images("1", *urls), images("2", "https://x.example/other"))
    found = {task["original_url"][18:]: task["position"] for task in tasks(known)}
    assert found == {"2": 1, "new": 2, "1": 3, "last": 4, "other": 0}
