"""A feed that was stored by the wrong codec is read rightly from now on, and a repair heals what is stored.

The wrong reading is that of a parser that takes damaged UTF-8 for Windows-1252.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.parse import document
from rss_pipeline.collector.parse.characters.decode import Decoded
from rss_pipeline.pipeline.session import session
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, parse_document
from rss_pipeline_tests.features.replay.replays import replayed
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

DAY = "1 Jan 2026"
PAGE = "http://e.example"
FEEDS: dict[str, Callable[[int], str]] = {
    "by-guid": lambda number: f"<guid>g{number}</guid>",
    "by-guid-with-bad-places": lambda number: f"<guid>{title(number)}</guid>",
    "by-link": lambda number: f"<link>{PAGE}/{title(number)}</link>",
    "by-hash": lambda _: "",
    "by-shared-link": lambda _: f"<link>{PAGE}</link>",
}


def by_windows_1252(task: ParseTask) -> Parsed:
    """In a worker process that ends with its pool."""

    def decode(body: bytes, **_: Any) -> Decoded:
        return Decoded(text=body.decode("cp1252", "replace"), charset="cp1252", rule="fallback", replaced=1)

    vars(document)["decode"] = decode
    return parse_document(task)


class WrongParser(ParserPool):
    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        wrong = by_windows_1252 if function is parse_document else function
        return super().map(wrong, tasks, timeout=timeout)


def title(number: int) -> str:
    """Cut within a character where `|` is."""
    return f"“Grün” {number} —|"


def serve(pipeline: Pipeline, server: FeedServer, *numbers: int) -> None:
    for id, identity in FEEDS.items():
        items = "".join(
            f"<item>{identity(n)}<title>{title(n)}</title><pubDate>{DAY}</pubDate>"
            f"<description>“Ja”, sagte er|</description></item>"
            for n in numbers
        )
        source = (
            f'<?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>“T”</title>{items}'
            "</channel></rss>"
        )
        body = source.encode().replace(b"|", b"\xe2\x80")
        url = server.route("127.0.0.2", f"/{id}", Answer(body=body, etag=etag_of(body)))
        if id not in [feed["id"] for feed in pipeline.feeds]:
            pipeline.register(url, id)


def poll(pipeline: Pipeline) -> None:
    pipeline.clock.turn(hours=3)
    pipeline.poll(all_feeds=True)


def poll_by_wrong_codec(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, pipeline.parser_pool = pipeline.parser_pool, None
    with monkeypatch.context() as wrong:
        wrong.setattr(session, "ParserPool", WrongParser)
        poll(pipeline)
    pipeline.parser_pool = kept


@pytest.mark.slow
def test_a_repair_heals_what_was_stored_by_the_wrong_codec_and_no_item_comes_twice(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(pipeline, server, 2, 1)
    poll_by_wrong_codec(pipeline, monkeypatch)
    before = {id: pipeline.guids(id) for id in FEEDS}
    for id in FEEDS:
        assert {row["title"][:10] for row in pipeline.items(id)} == {"â€œGrÃ¼nâ€"}
        assert pipeline.feed(id)["charset"] == "cp1252"

    serve(pipeline, server, 3, 2, 1)
    poll(pipeline)
    healed = "“Grün” {} —\ufffd".format
    for id in FEEDS:
        assert len(pipeline.guids(id)) == 3, f"{id}: one is new"
        assert set(before[id]) < set(pipeline.guids(id))
        assert healed(3) in {row["title"] for row in pipeline.items(id)}
        warning = pipeline.feed(id)["warning"]
        assert "its charset is utf-8 now, and was cp1252" in warning
        assert f"`rss-pipeline replay --repair {id}`" in warning

    for planned in replayed(pipeline, dry_run=True, repair=True):
        assert (planned.items_new, planned.items_differ, planned.items_gone) == (0, 2, 0)
    for done in replayed(pipeline, repair=True):
        assert (done.items_new, done.items_repaired, done.items_gone) == (0, 2, 0)
    for id in FEEDS:
        rows = {row["title"]: row for row in pipeline.items(id)}
        assert set(rows) == {healed(1), healed(2), healed(3)}
        assert {row["content_html"] for row in rows.values()} == {"“Ja”, sagte er\ufffd"}
    assert [each.items_differ for each in replayed(pipeline, repair=True)] == [0] * len(FEEDS)

    serve(pipeline, server, 4, 3, 2, 1)
    poll(pipeline)
    for id in FEEDS:
        assert len(pipeline.guids(id)) == 4
        assert pipeline.feed(id)["title"] == "“T”"
        assert pipeline.feed(id)["warning"] is None, "the charset is that of the document before"


def test_a_document_with_the_wrong_label_has_a_warning(pipeline: Pipeline, server: FeedServer) -> None:
    body = '<?xml version="1.0" encoding="gb2312"?><rss><channel><title>Füße</title></channel></rss>'.encode()
    headers = {"Content-Type": "text/xml; charset=iso-8859-1"}
    url = server.route("127.0.0.2", "/feed", Answer(body=body, headers=headers, etag=etag_of(body)))
    pipeline.register(url, "feed")
    pipeline.poll()
    feed = pipeline.feed("feed")
    assert (feed["title"], feed["charset"]) == ("Füße", "utf-8")
    assert 'labelled "iso-8859-1", but its bytes are utf-8' in feed["warning"]
    assert feed["warning_kinds"] == '["mislabelled"]'
