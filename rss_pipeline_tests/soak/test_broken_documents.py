"""Documents broken at random, in the processes that read documents: none ends one, overruns or raises.

`RSS_SOAK_DOCUMENTS` names a folder of further documents to break, such as real feeds: those of the tests are
small. The seed is printed, and `RSS_SOAK_SEED` sets it.
"""

import os
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from rss_pipeline.collector.models.outcome import Document, Parsed, Response
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import (
    ImageSearch,
    ParseTask,
    find_item_images,
    parse_document,
    read_chunks,
)
from rss_pipeline_tests.collector.parse.mutations import CONTENT_TYPES, SOUND, broken
from rss_pipeline_tests.support.feeds import make_feed
from rss_pipeline_tests.support.pipeline import NOON

A_BATCH = 200
URL = "http://a.example/feed"


def documents() -> list[bytes]:
    folder = os.environ.get("RSS_SOAK_DOCUMENTS")
    paths = sorted(path for path in Path(folder).iterdir() if path.is_file()) if folder else []
    return [*SOUND, *(path.read_bytes() for path in paths)]


def tasks(folder: Path, cases: int, dice: random.Random) -> Iterator[ParseTask]:
    sound = documents()
    for number in range(cases):
        body = broken(sound[number % len(sound)], dice)
        path = folder / f"{number:06}"
        path.write_bytes(body)
        response = Response(
            status=200,
            requested_url=URL,
            url=URL,
            fetched_at=NOON,
            fetch_ms=1,
            content_type=dice.choice(CONTENT_TYPES),
        )
        document = Document(response=response, path=path, body_bytes=len(body), content_hash="")
        yield ParseTask(feed=make_feed("feed", URL, "a.example"), document=document, now=NOON)


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(40, marks=pytest.mark.slow),
        pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(7200)]),
    ],
)
def test_a_broken_document_is_read_or_refused_and_harms_no_worker(cases: int, tmp_path: Path) -> None:
    seed = int(os.environ.get("RSS_SOAK_SEED") or random.randrange(2**32))
    sys.stderr.write(f"RSS_SOAK_SEED={seed}\n")
    made = tasks(tmp_path, cases, random.Random(seed))
    read = refused = 0
    failures: list[tuple[str, WorkerFailure]] = []
    pool = ParserPool(processes=2, timeout=20)
    try:
        while batch := list(islice(made, A_BATCH)):
            parsed: list[Parsed] = []
            for task, outcome in pool.map(parse_document, batch):
                if isinstance(outcome, Parsed):
                    parsed.append(outcome)
                elif outcome.kind in ("empty_body", "html", "not_a_feed"):
                    refused += 1
                else:
                    failures.append((task.document.path.name, outcome))
            searches = {search.path: search for search in map(searched, parsed)}
            for search, found in pool.map(find_item_images, searches.values()):
                if isinstance(found, WorkerFailure):
                    failures.append((str(search.path), found))
            read += len(parsed)
            for task in batch:
                if task.document.path.name not in {name for name, _ in failures}:
                    task.document.path.unlink()
            for each in parsed:
                each.path.unlink()
    finally:
        pool.close()
    assert failures == []
    assert read + refused == cases
    assert read > cases / 4, f"{read} of {cases} were read"


def searched(parsed: Parsed) -> ImageSearch:
    ids = frozenset(id for chunk in read_chunks(parsed.path) for id in chunk.ids)
    return ImageSearch(
        feed=make_feed("feed", URL, "a.example"), feed_link=parsed.header.link, path=parsed.path, ids=ids
    )
