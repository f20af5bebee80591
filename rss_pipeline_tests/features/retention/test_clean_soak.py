"""A clean of a large archive: how long it takes and how much memory. Short in CI, long by `make soak`."""

import gc
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.retention.service import clean
from rss_pipeline.settings import Settings
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.support.pipeline import NOON

FEEDS = 20
IMAGES = 3
MEMORY_BYTES = 40_000_000
"""The memory that a clean may add to the process, however much there is to remove."""


@pytest.mark.parametrize(
    ("items", "characters"),
    [
        pytest.param(2_000, 21_000, marks=pytest.mark.slow),
        pytest.param(100_000, 3_000, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_a_large_archive_is_cleaned_in_bounded_memory(items: int, characters: int, tmp_path: Path) -> None:
    assert items * characters > MEMORY_BYTES
    settings = Settings(home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="test")
    database = SqliteDatabase(settings.database_path)
    schema.migrate(database)
    objects = FolderStore(settings.objects_path)
    # One item in a hundred and one is young, with its images.
    for number in range(FEEDS):
        _fill(database, settings.objects_path, f"feed-{number:02}", items // FEEDS, "<p>" + "x" * characters)
    memory = Memory()
    started = time.monotonic()
    cleaned = clean(database, objects, settings, now=NOON, confirmed=True, progress=memory)
    seconds = time.monotonic() - started
    sys.stderr.write(
        f"{items:,} items and {IMAGES * items:,} images cleaned in {seconds:.0f} s,"
        f" {memory.grown / 1e6:.0f} MB more at most\n"
    )
    young = FEEDS * (items // FEEDS // 100)
    assert (cleaned.total.items, cleaned.total.images) == (items, IMAGES * items)
    assert cleaned.total.image_bytes == 10 * IMAGES * items
    assert not cleaned.is_unfinished
    assert memory.grown < MEMORY_BYTES
    (left,) = database.query("SELECT count(*) AS items FROM items").rows
    assert left["items"] == young
    named = {row["r2_key"] for row in database.query("SELECT r2_key FROM image_tasks").rows}
    assert {info.key for info in objects.list("images/")} == named
    assert len(named) == IMAGES * young
    assert not any(clean(database, objects, settings, now=NOON, confirmed=True).figures().values())
    database.close()


class Memory:
    """A Progress that watches what the process takes."""

    def __init__(self) -> None:
        gc.collect()
        self._process = psutil.Process()
        self._before = self._process.memory_info().rss
        self.grown = 0

    def begin(self, step: str, total: int) -> None: ...

    def advance(self, step: str, by: int = 1) -> None:
        self.grown = max(self.grown, self._process.memory_info().rss - self._before)


def _fill(database: SqliteDatabase, root: Path, feed_id: str, items: int, content: str) -> None:
    """Old items and one young in a hundred, each with archived images, as the stores have them."""
    database.query(
        "INSERT INTO feeds (id, url, host, next_fetch_at, created_at) VALUES (?, ?, 'h', 'x', 'x')",
        [feed_id, feed_id],
    )
    old, young = (instant(NOON - timedelta(days=days)) for days in (181, 1))
    rows = [[f"{feed_id}-{n:06}", old] for n in range(items)]
    rows += [[f"{feed_id}-young-{n:06}", young] for n in range(items // 100)]
    for some in _hundreds(rows):
        tasks = [[f"{id}-{n}", id, n, f"images/{feed_id}/{id}/{n}.png"] for id, _ in some for n in range(3)]
        database.batch(
            [
                Statement(
                    """INSERT INTO items (id, feed_id, guid, created_at, content_html, pub_date, guid_source,
                      pub_date_source)
                    SELECT json_extract(value, '$[0]'), ?, json_extract(value, '$[0]'),
                      json_extract(value, '$[1]'), ?, 'x', 'guid', 'feed' FROM json_each(?) WHERE true""",
                    [feed_id, content, compact(some)],
                ),
                Statement(
                    """INSERT INTO image_tasks (id, item_id, position, r2_key, original_url, created_at,
                      updated_at, host, bytes, status)
                    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),
                      json_extract(value, '$[2]'), json_extract(value, '$[3]'), 'http://images.example/',
                      'x', 'x', 'h', 10, 'success' FROM json_each(?) WHERE true""",
                    [compact(tasks)],
                ),
            ]
        )
        for *_, key in tasks:
            # What FolderStore.put would write, without waiting for the disk three hundred thousand times.
            for path, body in ((root / key, b"0123456789"), (root / ".metadata" / f"{key}.json", b"{}")):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(body)


def _hundreds(rows: list[list[str]]) -> Iterator[list[list[str]]]:
    for start in range(0, len(rows), 100):
        yield rows[start : start + 100]
