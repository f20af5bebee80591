"""Items as files: JSON lines and Parquet, read back; whole or not at all; the command that writes them."""

import io
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rss_pipeline.errors import DatabaseUnavailable, ExportRefused
from rss_pipeline.pipeline.read import item_files as exporting
from rss_pipeline.pipeline.read.feed_reader import FeedReader
from rss_pipeline.pipeline.read.item_files import FORMATS, Format, export
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

ENCLOSURE = (
    b"<author>mail@e.example (A)</author><author>\xe4\xb8\x96</author>"
    b'<category>x</category><category>\xe4\xb8\x96</category><enclosure url="http://e/1.mp3" length="7"/>'
)


@pytest.fixture
def collected(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """Two feeds: `news` with a, b and c, `other` with d."""
    body = rss("c", "b", "a").replace(b"</item></channel>", ENCLOSURE + b"</item></channel>")
    assert ENCLOSURE in body
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=body)), "news", title="News")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("d"))), "other")
    pipeline.poll()
    return pipeline


def reader(pipeline: Pipeline) -> FeedReader:
    return FeedReader(pipeline.database, pipeline.objects)


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_json_lines_hold_what_is_stored(collected: Pipeline) -> None:
    collected.database.query(
        """INSERT INTO story_members
          (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
        SELECT id, 's', feed_id, arrived, id, arrived, created_at, 1 FROM items WHERE guid IN ('a', 'd')"""
    )
    file = io.BytesIO()
    done = export(reader(collected), file, format="jsonl")
    rows = lines(file.getvalue())
    assert (done.items, done.feeds) == (4, 2)
    assert [row["story"] for row in rows] == ["s", None, None, "s"]
    assert [(row["feed_id"], row["guid"]) for row in rows] == [
        ("news", "a"), ("news", "b"), ("news", "c"), ("other", "d"),
    ]  # fmt: skip
    assert rows[0]["published_at"] == "2026-03-02T08:00:00Z"
    assert (rows[0]["author"], rows[0]["authors"]) == ("A", ["A", "世"])
    assert rows[0]["categories"] == ["x", "世"]
    assert rows[0]["enclosures"] == [{"url": "http://e/1.mp3", "type": None, "length": 7}]
    assert (rows[0]["content_html"], "html" in rows[0]) == ("<p>Text of a</p>", False)


def test_parquet_read_back_is_the_same_with_types(
    collected: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "ROWS_AT_ONCE", 3)
    target = tmp_path / "items.parquet"
    export(reader(collected), target, format="parquet", html=True)
    table = pq.read_table(target)
    assert pq.ParquetFile(target).num_row_groups == 2
    assert table.schema.field("published_at").type == pa.timestamp("ms", tz="UTC")
    for name in ("authors", "categories"):
        assert table.schema.field(name).type == pa.list_(pa.string())
    rows = table.to_pylist()
    items = [item for feed in ("news", "other") for item in reader(collected).items(feed, html=True)]
    for row, item in zip(rows, items, strict=True):
        assert row["published_at"] == item.published_at
        assert row["collected_at"] == datetime(2026, 3, 2, 12, 0, 1, tzinfo=UTC)
        assert (row["id"], row["html"], row["cursor"]) == (item.id, item.html, item.cursor)
        assert (row["authors"], row["categories"]) == (list(item.authors), list(item.categories))
    assert rows[0]["enclosures"] == [{"url": "http://e/1.mp3", "type": None, "length": 7}]
    assert [path.name for path in tmp_path.glob(".*partial")] == []


def test_nothing_to_export_is_a_file_all_the_same(pipeline: Pipeline, tmp_path: Path) -> None:
    export(reader(pipeline), tmp_path / "none.parquet", format="parquet")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0


def test_an_export_goes_on_where_the_last_one_ended(collected: Pipeline, server: FeedServer) -> None:
    # The feed with the highest arrival number is read again: it must not depend on which was stored last.
    server.route("127.0.0.3", "/feed", Answer(body=rss("d", "last")))
    collected.clock.turn(hours=1)
    collected.poll("other")
    first = export(reader(collected), io.BytesIO(), format="jsonl")
    assert export(reader(collected), io.BytesIO(), format="jsonl", since=first.cursor).items == 0
    server.route("127.0.0.3", "/feed", Answer(body=rss("e", "d", "last")))
    collected.clock.turn(hours=1)
    collected.poll("other")
    file = io.BytesIO()
    again = export(reader(collected), file, format="jsonl", since=first.cursor)
    assert ([row["guid"] for row in lines(file.getvalue())], again.feeds) == (["e"], 1)


def test_what_fails_half_way_leaves_the_old_file(collected: Pipeline, tmp_path: Path) -> None:
    target = tmp_path / "items.jsonl"
    target.write_text("old")

    class Failing(FeedReader):
        def items(self, *args: Any, **kwargs: Any) -> Any:
            yield from list(super().items(*args, **kwargs))[:2]
            raise DatabaseUnavailable("on purpose")

    with pytest.raises(DatabaseUnavailable):
        export(Failing(collected.database, collected.objects), target, format="jsonl")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.glob(".*partial")] == []


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(collected: Pipeline, tmp_path: Path) -> None:
    (tmp_path / "archive").mkdir()
    dated, latest = tmp_path / "archive" / "2026-03.jsonl", tmp_path / "latest.jsonl"
    latest.symlink_to(dated)
    for before in (None, "old"):  # A link that leads to nothing yet, then to a file.
        if before is not None:
            dated.write_text(before)
        export(reader(collected), latest, format="jsonl")
        assert latest.is_symlink()
        assert len(lines(dated.read_bytes())) == 4
        assert [path.name for path in tmp_path.rglob(".*partial")] == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_pipe_is_written_to_and_stays(collected: Pipeline, tmp_path: Path, format: Format) -> None:
    pipe = tmp_path / "items"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        done = export(reader(collected), pipe, format=format)
        data = read.result()
    assert pipe.is_fifo()
    rows = len(lines(data)) if format == "jsonl" else pq.read_table(io.BytesIO(data)).num_rows
    assert (rows, done.items) == (4, 4)


def test_a_device_stays_one(collected: Pipeline, tmp_path: Path) -> None:
    link = tmp_path / "nowhere"
    link.symlink_to(os.devnull)
    assert export(reader(collected), link, format="jsonl").items == 4
    assert link.is_symlink()
    assert link.is_char_device()


def test_a_folder_is_refused(collected: Pipeline, tmp_path: Path) -> None:
    with pytest.raises(ExportRefused, match="Is a directory"):
        export(reader(collected), tmp_path, format="jsonl")


def test_a_folder_that_is_not_there_is_reported(collected: Pipeline, tmp_path: Path) -> None:
    with pytest.raises(ExportRefused, match="No such file or directory; check the folder"):
        export(reader(collected), tmp_path / "no" / "items.jsonl", format="jsonl")


def test_without_pyarrow_a_sentence_says_what_to_install(
    collected: Pipeline, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ExportRefused, match="not installed") as refused:
        export(reader(collected), tmp_path / "items.parquet", format="parquet")
    assert "-e '.[parquet]'" in str(refused.value)
    assert list(tmp_path.glob("*.parquet")) == []
