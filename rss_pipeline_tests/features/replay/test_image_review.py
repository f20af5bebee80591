"""A repair gives images the URLs and the tasks that they have now, and fetches nothing twice."""

from typing import Any

from rss_pipeline.collector.models.item import image_task_id
from rss_pipeline_tests.features.replay.replays import all_rows, poll_over_time, replayed, serve
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import FeedServer

CONTENT = b'<p>Text of a</p><img src="p.png"><img src="/r.png"><img src="q.png">'
BASE = "http://example.com/2026/a/"


def polled(place: Pipeline, server: FeedServer) -> list[dict[str, Any]]:
    body = rss("a", "b").replace(b"<p>Text of a</p>", CONTENT)
    serve(
        place,
        server,
        "one",
        body.replace(b"<link>http://example.com/a</link>", f"<link>{BASE}</link>".encode()),
    )
    poll_over_time(place, 1)
    assert urls(place) == [f"{BASE}p.png", "http://example.com/r.png", f"{BASE}q.png"]
    return tasks(place)


def tasks(place: Pipeline) -> list[dict[str, Any]]:
    return place.rows("SELECT * FROM image_tasks ORDER BY position")


def urls(place: Pipeline) -> list[str]:
    return [task["original_url"] for task in tasks(place)]


def as_before(place: Pipeline, url: str, **columns: Any) -> None:
    """Give an image's task the URL against the feed's link, as it was found until now."""
    [task] = [each for each in tasks(place) if each["original_url"] == url]
    former = url.replace(BASE, "http://example.com/")
    values = {"id": image_task_id(task["item_id"], former), "original_url": former, **columns}
    sets = ", ".join(f"{name} = ?" for name in values)
    place.database.query(f"UPDATE image_tasks SET {sets} WHERE id = ?", [*values.values(), task["id"]])


@EVERYWHERE
def test_an_archived_image_with_another_url_keeps_its_object_and_is_not_fetched_again(
    place: Pipeline, server: FeedServer
) -> None:
    today = polled(place, server)
    as_before(place, f"{BASE}p.png", status="success", r2_key="images/one/0.png", bytes=9)
    as_before(place, f"{BASE}q.png", status="failed", attempts=3, last_error="404")
    rows = all_rows(place)
    [planned] = replayed(place, "one", repair=True, dry_run=True)
    assert [(each.title, each.fields) for each in planned.findings] == [("Title of a", ("images",))]
    assert all_rows(place) == rows

    [done] = replayed(place, "one", repair=True)

    assert (done.items_differ, done.items_repaired) == (1, 1)
    first, second, third = tasks(place)
    assert [task["id"] for task in (first, second, third)] == [task["id"] for task in today]
    assert (first["original_url"], first["status"]) == (f"{BASE}p.png", "success")
    assert (first["r2_key"], first["position"]) == ("images/one/0.png", 0)
    assert second == today[1]
    assert (third["original_url"], third["status"], third["attempts"]) == (f"{BASE}q.png", "pending", 0)
    assert third["last_error"] is None
    rows = all_rows(place)
    [again] = replayed(place, "one", repair=True)
    assert (again.items_differ, again.items_repaired) == (0, 0)
    assert all_rows(place) == rows


def test_an_image_that_is_found_now_gets_an_index_of_its_own(place: Pipeline, server: FeedServer) -> None:
    polled(place, server)
    place.database.query("DELETE FROM image_tasks WHERE original_url LIKE '%/r.png'")
    before = tasks(place)
    replayed(place, "one")
    assert tasks(place) == before, "only a repair changes what is stored"
    [planned] = replayed(place, "one", dry_run=True)
    assert [each.fields for each in planned.findings] == [("images",)]
    [done] = replayed(place, "one", repair=True)
    assert done.items_repaired == 1
    assert tasks(place)[:2] == before
    assert [(task["original_url"], task["position"]) for task in tasks(place)[2:]] == [
        ("http://example.com/r.png", 3)
    ]


def test_an_item_with_a_base_that_is_read_otherwise_now_keeps_its_archived_images(
    place: Pipeline, server: FeedServer
) -> None:
    polled(place, server)
    as_before(place, f"{BASE}p.png", status="success", r2_key="images/one/0.png", bytes=9)
    place.database.query("UPDATE items SET base_url = 'http://example.com/' WHERE guid = 'a'")
    [done] = replayed(place, "one", repair=True)
    assert (done.items_differ, done.items_repaired) == (1, 1)
    assert [each.fields for each in done.findings] == [("base_url",)]
    assert urls(place) == [f"{BASE}p.png", "http://example.com/r.png", f"{BASE}q.png"]
    assert tasks(place)[0]["r2_key"] == "images/one/0.png"
    assert place.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []


def test_a_task_that_a_download_holds_stays_as_it_is(place: Pipeline, server: FeedServer) -> None:
    polled(place, server)
    place.database.query(
        "INSERT INTO leases (token, run_id, expires_at, feeds, hosts)"
        " VALUES ('live', 'r', '2999-01-01T00:00:00Z', '[]', '[]')"
    )
    as_before(place, f"{BASE}p.png", lease_token="live")
    replayed(place, "one", repair=True)
    assert "http://example.com/p.png" in urls(place)
