"""Backups read by a better parser: what was missed comes in, and `repair` corrects what was wrong."""

import pytest

from rss_pipeline.features.replay.sql import READ
from rss_pipeline_tests.features.replay.replays import (
    all_rows,
    collected,
    drop_database,
    poll_over_time,
    replayed,
    serve,
)
from rss_pipeline_tests.features.replay.yesterdays_parser import poll_with_worse_parser
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def with_worse_parser(place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    poll_with_worse_parser(place, server, monkeypatch)
    return place


@pytest.mark.slow
def test_a_corrected_parser_brings_in_what_was_missed_as_of_when_it_was_published(
    with_worse_parser: Pipeline,
) -> None:
    place = with_worse_parser
    assert place.guids("one") == ["dateless", "fine", "garbled-ö", "garbled-ü", "late"]
    before = {row["id"]: row for row in place.items("one")}
    feed = place.feed("one")

    [one] = replayed(place, "one")

    assert (one.items_new, one.items_repaired) == (2, 0)
    now = {row["guid"]: row for row in place.items("one")}
    first, second = place.backups("one")
    assert (now["missed"]["created_at"], now["missed"]["backup_key"]) == (first[12:32], first)
    assert (now["missed-too"]["created_at"], now["missed-too"]["backup_key"]) == (second[12:32], second)
    assert {id: row for row in now.values() if (id := row["id"]) in before} == before
    assert place.feed("one") == feed
    assert "http://i.example/missed.png" in place.tasks()
    assert place.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []


@pytest.mark.slow
def test_repair_corrects_what_was_read_wrongly_and_keeps_what_it_was(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    before = {row["guid"]: row for row in place.items("one")}
    feed = place.feed("one")

    [one] = replayed(place, "one", repair=True)

    assert (one.items_new, one.items_differ, one.items_repaired) == (2, 3, 3)
    now = {row["guid"]: row for row in place.items("one")}
    assert now["garbled-ü"]["title"] == "Title of garbled-ü"
    assert "Text of garbled-ü" in now["garbled-ü"]["content_html"]
    assert (now["dateless"]["pub_date"], now["dateless"]["pub_date_source"]) == (
        "2026-03-02T08:00:00Z",
        "feed",
    )
    for guid in before:
        for name in ("id", "guid", "created_at", "backup_key"):
            assert now[guid][name] == before[guid][name]
    versions = place.rows("SELECT * FROM item_versions")
    assert len(versions) == 3
    old = {row["id"]: row for row in before.values()}
    for version in versions:
        assert {name: version[name] for name in READ} == {
            name: old[version["item_id"]][name] for name in READ
        }
    assert place.feed("one") == feed
    assert "http://i.example/garbled-ü.png" in place.tasks(), "images of the mended text are looked for"
    rows = all_rows(place)
    [again] = replayed(place, "one", repair=True)
    assert (again.items_new, again.items_differ, again.items_repaired) == (0, 0, 0)
    assert all_rows(place) == rows


def test_repair_adds_all_authors_to_items_from_before_there_were_several(
    place: Pipeline, server: FeedServer
) -> None:
    authors = b"<author><name>Ada</name><title>Analyst</title></author><author>Bo</author></item>"
    serve(place, server, "one", rss("a", "b").replace(b"</item>", authors, 1))
    poll_over_time(place, 1)
    today = place.items("one")
    assert [(row["author"], row["authors"]) for row in today] == [("Ada", '["Ada","Bo"]'), (None, "[]")]
    place.database.query("UPDATE items SET authors = NULL, author = replace(author, 'Ada', 'AdaAnalyst')")
    [planned] = replayed(place, "one", repair=True, dry_run=True)
    assert [(each.title, each.fields) for each in planned.findings] == [("Title of a", ("author", "authors"))]
    [done] = replayed(place, "one", repair=True)
    assert (done.items_differ, done.items_repaired) == (1, 1)
    mended = {row["guid"]: (row["author"], row["authors"]) for row in place.items("one")}
    assert mended == {"a": ("Ada", '["Ada","Bo"]'), "b": (None, None)}


@EVERYWHERE
def test_repair_adds_the_comments_of_items_from_before_they_were_stored_and_keeps_no_second_text(
    place: Pipeline, server: FeedServer
) -> None:
    page = b"<comments>https://talk.example/9</comments></item>"
    serve(place, server, "one", rss("a", "b").replace(b"</item>", page, 1))
    poll_over_time(place, 1)
    place.database.query("UPDATE items SET comments_url = NULL")
    [planned] = replayed(place, "one", repair=True, dry_run=True)
    assert [(each.title, each.fields) for each in planned.findings] == [("Title of a", ("comments_url",))]
    [done] = replayed(place, "one", repair=True)
    assert (done.items_differ, done.items_repaired) == (1, 1)
    found = {row["guid"]: row["comments_url"] for row in place.items("one")}
    assert found == {"a": "https://talk.example/9", "b": None}
    assert place.rows("SELECT * FROM item_versions") == []


def test_repair_adds_the_link_of_a_permalink_that_is_a_path_and_no_item_comes_twice(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def listing(*names: str) -> bytes:
        items = "".join(f"<item><guid>/blog/{name}</guid><title>{name}</title></item>" for name in names)
        return f"<rss><channel><link>http://e.example/</link>{items}</channel></rss>".encode()

    serve(pipeline, server, "one", listing("b", "a"), listing("c", "b", "a"))
    poll_over_time(pipeline, 1)
    pipeline.database.query("UPDATE items SET link = NULL")
    poll_over_time(pipeline, 1)
    assert pipeline.guids("one") == ["/blog/a", "/blog/b", "/blog/c"]
    [done] = replayed(pipeline, "one", repair=True)
    assert (done.items_new, done.items_repaired) == (0, 2)
    links = {row["guid"]: row["link"] for row in pipeline.items("one")}
    assert links == {guid: f"http://e.example{guid}" for guid in ("/blog/a", "/blog/b", "/blog/c")}


@pytest.mark.slow
@EVERYWHERE
def test_a_repaired_table_is_what_todays_parser_would_have_collected(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    replayed(place, "one", repair=True)
    mended = [row for row in collected(place)["items"] if row["feed_id"] == "one"]
    drop_database(place)
    place.sync()
    replayed(place, "one")
    assert [row for row in collected(place)["items"] if row["feed_id"] == "one"] == mended


@pytest.mark.slow
def test_a_dry_run_writes_nothing_and_said_all_of_it(with_worse_parser: Pipeline) -> None:
    place = with_worse_parser
    rows = all_rows(place)
    objects = [(info.key, info.size, info.modified) for info in place.objects.list("")]
    one, two = replayed(place, dry_run=True, repair=True)
    assert all_rows(place) == rows
    assert [(info.key, info.size, info.modified) for info in place.objects.list("")] == objects

    told = {(finding.what, finding.title): finding.fields for finding in one.findings}
    assert told == {
        ("new", "Title of missed"): (),
        ("new", "Title of missed-too"): (),
        ("differs", "Title of garbled-Ã¼"): ("title", "content_html"),
        ("differs", "Title of garbled-Ã¶"): ("title", "content_html"),
        ("differs", "Title of dateless"): ("pub_date", "pub_date_source"),
    }
    assert (one.items_new, one.items_differ, one.items_gone) == (2, 3, 0)
    assert [(finding.what, finding.item_id) for finding in two.findings] == [("gone", f"{3:032}")]
    done = {finding.item_id for each in replayed(place, repair=True) for finding in each.findings}
    assert done == {finding.item_id for finding in (*one.findings, *two.findings)}
    assert place.guids("two") == ["fine", "ghost", "x"], "what is no longer found is never deleted"
