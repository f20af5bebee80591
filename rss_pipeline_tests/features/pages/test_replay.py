"""The items of a page from backups of a version that read pages otherwise: what was taken then comes again.

A page is confirmed and then written as one that was certain: no version of the detection is needed for it.
"""

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.features.pages.detect import detect
from rss_pipeline.features.pages.known import Known, mark
from rss_pipeline.features.pages.links import guids_of
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline_tests.features.pages.site import TITLES, WORDS, link, page, rebuilt
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def unsure(*numbers: int, around: str = "") -> str:
    """A page with these entries, of which none is certain now."""
    rows = "".join(
        f'<div class="row"><a href="{link(n)}">{TITLES[n % len(TITLES)]}, part {n}</a></div>' for n in numbers
    )
    return page(f"<p>{WORDS * 20}</p><div>{rows}</div>", around=around)


def collected(pipeline: Pipeline, server: FeedServer, *bodies: str) -> str:
    """The id of a page that had these bodies, one a day, and is certain by all that is stored."""
    url = server.route(HOST, "/news/", *(Answer(body=each.encode()) for each in bodies))
    id = pipeline.register(url, "news", page="confirmed")
    for _ in bodies:
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(days=1)
    pipeline.feeds[0]["page"] = "auto"
    pipeline.write_registry()
    old, new = mark("confirmed"), mark("auto")
    pipeline.rows("UPDATE feeds SET page = 'auto', page_known = replace(page_known, ?, ?)", old, new)
    for key in pipeline.backups(id):
        rewrite(pipeline, key, lambda text: text.replace(old, new).replace('"confirmed"', '"auto"'))
    return id


def rewrite(pipeline: Pipeline, key: str, change: Any) -> None:
    """Other metadata for a backup."""
    body, info = pipeline.objects.get(key) or (b"", None)
    assert info is not None
    assert info.content_type is not None
    metadata = {name: change(text) for name, text in info.metadata.items()}
    pipeline.objects.put(key, body, content_type=info.content_type, metadata=metadata)


def without(pipeline: Pipeline, id: str, *names: str) -> None:
    """Leave these out of the metadata of the page's backups, as earlier versions did."""

    def change(text: str) -> str:
        return json.dumps({name: each for name, each in json.loads(text).items() if name not in names})

    for key in pipeline.backups(id):
        rewrite(pipeline, key, change)


def read_again(pipeline: Pipeline, *, is_lost: bool) -> None:
    """All items from the backups; with the database or without one."""
    if not is_lost:
        pipeline.rows("DELETE FROM items")
    pipeline.database.close()
    if is_lost:
        for path in pipeline.settings.home.glob("rss.sqlite*"):
            path.unlink()
    home, file = str(pipeline.settings.home), str(pipeline.settings.feeds_file)
    arguments = ["restore"] if is_lost else ["replay", "--all"]
    done = CliRunner().invoke(main, arguments, env={"RSS_PIPELINE_HOME": home, "RSS_FEEDS_FILE": file})
    assert done.exit_code == 0, done.output
    pipeline.database = connect(pipeline.settings)


def shown(pipeline: Pipeline, id: str) -> list[dict[str, Any]]:
    """All that readers see of the items."""
    own = {"arrived", "images_extracted_at"}
    return [{name: value for name, value in row.items() if name not in own} for row in pipeline.items(id)]


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_list_that_was_certain_is_taken_again_where_none_is_now(
    pipeline: Pipeline, server: FeedServer, is_lost: bool
) -> None:
    bodies = [unsure(*range(6)), unsure(6, *range(6)), rebuilt(unsure(7, 6, *range(5)), seed=2)]
    id = collected(pipeline, server, *bodies)
    before = shown(pipeline, id)
    assert len(before) == 8
    read_again(pipeline, is_lost=is_lost)
    assert shown(pipeline, id) == before


@pytest.mark.slow
def test_the_memory_after_the_first_document_is_that_of_the_next_backup_or_of_the_feed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = collected(pipeline, server, unsure(*range(6)), unsure(6, *range(6)))
    without(pipeline, id, "after")
    before = shown(pipeline, id)
    read_again(pipeline, is_lost=True)
    assert shown(pipeline, id) == before
    pipeline.objects.delete_many(pipeline.backups(id)[1:])
    read_again(pipeline, is_lost=False)
    assert len(shown(pipeline, id)) == 6


@pytest.mark.slow
def test_the_first_backup_alone_brings_its_list_and_one_without_it_the_rest(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = collected(pipeline, server, unsure(*range(6)), unsure(6, *range(6)))
    before, [first, second] = shown(pipeline, id), pipeline.backups(id)
    kept = {key: pipeline.objects.get(key) for key in (first, second)}
    for gone, count in ((second, 6), (first, 7)):
        pipeline.objects.delete_many([gone])
        read_again(pipeline, is_lost=True)
        assert len(shown(pipeline, id)) == count
        assert {row["id"] for row in shown(pipeline, id)} <= {row["id"] for row in before}
        body, info = kept[gone] or (b"", None)
        assert info is not None
        assert info.content_type is not None
        pipeline.objects.put(gone, body, content_type=info.content_type, metadata=info.metadata)


def test_entries_that_are_found_now_alone_are_none_of_a_document_of_then(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = collected(pipeline, server, unsure(*range(6)), unsure(6, *range(6)))
    # Then, the last two were none of the list.
    known = {n: mark(f"//{server.url(HOST, link(n)).partition('//')[2]}") for n in (4, 5)}
    assert known[4] in pipeline.feed(id)["page_known"]

    def change(text: str) -> str:
        for each in known.values():
            text = text.replace(each, "")
        return text.replace('\\"count\\":6', '\\"count\\":4').replace('\\"count\\":7', '\\"count\\":5')

    pipeline.rows("DELETE FROM items WHERE link LIKE '%/news/4-%' OR link LIKE '%/news/5-%'")
    text = json.loads(change(json.dumps(pipeline.feed(id)["page_known"])))
    pipeline.rows("UPDATE feeds SET page_known = ?", text)
    for key in pipeline.backups(id):
        rewrite(pipeline, key, change)
    before = shown(pipeline, id)
    assert len(before) == 5
    read_again(pipeline, is_lost=False)
    assert shown(pipeline, id) == before


@pytest.mark.slow
def test_a_list_that_was_refused_then_is_refused_again_whatever_a_person_said_later(
    pipeline: Pipeline, server: FeedServer
) -> None:
    others = unsure(*range(20, 26)).replace("/news/", "/views/")
    more = unsure(26, *range(20, 26)).replace("/news/", "/views/")
    bodies = [unsure(*range(6)), unsure(6, *range(6)), others, more]
    url = server.route(HOST, "/list/", *(Answer(body=each.encode()) for each in bodies))
    id = pipeline.register(url, "news", page="auto")
    for body in bodies:
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(days=1)
        if pipeline.feed(id)["last_error_kind"] is None:
            continue
        if pipeline.feed(id)["page"] == "auto":
            pipeline.feeds[0]["page"] = "confirmed"
            pipeline.write_registry()
        else:
            guids = guids_of(detect(body, url).entries)
            known = replace(Known.of_list(guids), settings=mark("confirmed"), is_confirmed=True)
            pipeline.rows("UPDATE feeds SET page_known = ?, content_hash = NULL", known.to_text())
    assert pipeline.feed(id)["last_error_kind"] is None
    before = shown(pipeline, id)
    assert len(before) == 14
    read_again(pipeline, is_lost=True)
    assert shown(pipeline, id) == before
