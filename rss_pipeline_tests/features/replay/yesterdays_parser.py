"""The parser of yesterday, which drops items and reads a title and a date wrongly, and feeds polled with it.

No test is in here.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.pipeline.session import session
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, parse_document, read_chunks
from rss_pipeline.storage.items.items import COLUMNS, chunked_rows, known_rows
from rss_pipeline_tests.features.replay.replays import poll_over_time, serve
from rss_pipeline_tests.support.kept_parsers import KeptParsers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer

COLUMN = {name: number for number, name in enumerate(COLUMNS)}


def _worse(task: ParseTask) -> Parsed:
    parsed = parse_document(task)
    rows = []
    for row in known_rows(read_chunks(parsed.path)).values():
        if row[COLUMN["guid"]] in {"missed", "missed-too"}:
            continue
        if row[COLUMN["guid"]].startswith("garbled"):
            row[COLUMN["title"]] = row[COLUMN["title"]].encode().decode("latin-1")
            row[COLUMN["content_html"]] = "<p>garbled</p>"
        if row[COLUMN["guid"]] == "dateless":
            at = instant(task.document.response.fetched_at)
            row[COLUMN["pub_date"]], row[COLUMN["pub_date_source"]] = at, "fetched"
        rows.append(row)
    if b"ghost" in task.document.path.read_bytes():
        rows.append(_ghost(task, rows[0]))
    with parsed.path.open("wb") as file:
        for chunk in chunked_rows(rows):
            pickle.dump(chunk, file)
    return replace(parsed, items_seen=len(rows))


def _ghost(task: ParseTask, like: list[Any]) -> list[Any]:
    ghost = list(like)
    ghost[COLUMN["guid"]], ghost[COLUMN["id"]] = "ghost", f"{len(task.feed.id):032}"
    return ghost


class _Yesterday(ParserPool):
    """Worker processes with yesterday's parser in them."""

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        return super().map(_worse if function is parse_document else function, tasks, timeout=timeout)


class _KeptYesterday(KeptParsers):
    """The worker processes of all tests, where each has imported this module once."""

    def __init__(self, kept: KeptParsers) -> None:
        super().__init__()
        self._kept = kept

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], *, timeout: float | None = None
    ) -> Iterator[tuple[Any, Any]]:
        return self._kept.map(_worse if function is parse_document else function, tasks, timeout=timeout)


def poll_with_worse_parser(place: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two feeds, polled in two versions while the parser was worse than it is now."""
    serve(
        place,
        server,
        "one",
        rss("fine", "missed", "garbled-ü", image="http://i.example"),
        rss("fine", "missed", "missed-too", "late", "garbled-ö", "dateless", image="http://i.example"),
    )
    serve(place, server, "two", rss("fine", "x"), rss("x").replace(b"A feed", b"ghost"))
    kept = place.parser_pool
    place.parser_pool = None if kept is None else _KeptYesterday(kept)
    with monkeypatch.context() as yesterday:
        yesterday.setattr(session, "ParserPool", _Yesterday)
        poll_over_time(place, 2)
    place.parser_pool = kept
