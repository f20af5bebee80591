"""The documents of a folder, polled into SQLite, D1 (real workerd) and Postgres; every row is compared.

    python -m benchmarks.fleet.same_rows FOLDER

With one clock, each place polls the same feeds four times: as they are, unchanged, each with the next feed's
document (other items, often another charset), and as they were. Then everything is replayed with --repair.
After each step all tables are compared value by value, and all objects byte by byte. What must differ is left
out: how long a publisher took to answer, and numbers and names that are the clock's or random; of the arrival
numbers, the order within each feed is compared. Exits with 1 if anything differs.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.documents import Document, folder_feeds
from rss_pipeline.features.copy.sql import TABLES
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.features.replay.replays import replayed
from rss_pipeline_tests.support.pipeline import Pipeline, on_cloudflare
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare
from rss_pipeline_tests.support.services.postgres import local_postgres

PAGE_ROWS = 200
OWN = {"sequences", "installation"}
"""Tables whose values are the database's clock, or random."""
_ORDER = "order of the items of"

Step = tuple[str, Callable[[Pipeline], object]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    documents = folder_feeds(parser.parse_args().folder)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(FeedServer())
        places = dict(_places(stack, folder))
        urls = [server.route(_host(n), f"/{n}", _answer(document)) for n, document in enumerate(documents)]
        for pipeline in places.values():
            for n, url in enumerate(urls):
                pipeline.register(url, f"feed-{n}")
            pipeline.set(fetch_concurrency=10, batch_size=1_000)
        differences = 0
        for what, act in _steps(server, documents):
            for pipeline in places.values():
                act(pipeline)
            differences += _compare(what, places)
    print(f"{len(documents)} documents, {differences} differences")
    sys.exit(differences > 0)


def _places(stack: ExitStack, folder: Path) -> Iterator[tuple[str, Pipeline]]:
    cloudflare = stack.enter_context(local_cloudflare())
    postgres = stack.enter_context(local_postgres())
    postgres.create("rss")
    database = PostgresDatabase(postgres.url("rss"), where="rss")
    migrate(database)
    database.close()
    settings: dict[str, Mapping[str, Any]] = {
        "SQLite": {},
        "D1": on_cloudflare(cloudflare),
        "Postgres": {"database_server": PostgresBackend(url=postgres.url("rss"))},
    }
    for name, stores in settings.items():
        (folder / name).mkdir()
        pipeline = Pipeline(folder / name, **stores)
        stack.callback(pipeline.close)
        yield name, pipeline


def _steps(server: FeedServer, documents: Sequence[Document]) -> Iterator[Step]:
    def poll(pipeline: Pipeline) -> None:
        pipeline.clock.turn(hours=26)
        pipeline.poll(all_feeds=True)

    def repair(pipeline: Pipeline) -> None:
        replayed(pipeline, repair=True)

    def serve(shift: int) -> None:
        for n in range(len(documents)):
            server.route(_host(n), f"/{n}", _answer(documents[(n + shift) % len(documents)]))

    yield "first poll", poll
    yield "unchanged", poll
    serve(1)
    yield "another document each", poll
    serve(0)
    yield "as they were", poll
    yield "replay --repair", repair


def _host(n: int) -> str:
    return f"127.0.{1 + n // 200}.{1 + n % 200}"


def _answer(document: Document) -> Answer:
    return Answer(
        body=document.body,
        etag=document.etag,
        last_modified=document.last_modified,
        headers={"Content-Type": document.content_type},
    )


def _compare(what: str, places: Mapping[str, Pipeline]) -> int:
    """Print what differs from the first place; return how much."""
    contents = {name: dict(_contents(pipeline)) for name, pipeline in places.items()}
    (first, expected), *others = contents.items()
    found = 0
    for name, there in others:
        for key in sorted(expected.keys() | there.keys()):
            ours, theirs = expected.get(key), there.get(key)
            if ours != theirs or _types(ours) != _types(theirs):
                found += 1
                print(f"{what}: {key} differs: {first} {_shown(ours, theirs)}, {name} {_shown(theirs, ours)}")
    rows = [row for key, row in expected.items() if isinstance(row, dict) and not key.startswith(_ORDER)]
    objects = sum(isinstance(each, tuple) for each in expected.values())
    values = sum(map(len, rows))
    print(f"{what}: {len(rows):,} rows with {values:,} values and {objects:,} objects in each place")
    return found


def _contents(pipeline: Pipeline) -> Iterator[tuple[str, object]]:
    """Every row and object under a name of its own."""
    for table, key in TABLES.items():
        if table in OWN:
            continue
        for row in _rows(pipeline, table, key):
            yield f"{table} {[row[column] for column in key]}", _comparable(row)
    by_feed = pipeline.rows("SELECT feed_id, id FROM items ORDER BY feed_id, arrived")
    for feed_id, items in groupby(by_feed, key=lambda row: row["feed_id"]):
        yield f"{_ORDER} {feed_id}", {str(n): item["id"] for n, item in enumerate(items)}
    for info in pipeline.objects.list(""):
        found = pipeline.objects.get(info.key)
        assert found is not None
        yield info.key, (found[0], found[1].content_type, tuple(sorted(found[1].metadata.items())))


def _rows(pipeline: Pipeline, table: str, key: Sequence[str]) -> Iterator[dict[str, Any]]:
    seen = 0
    while rows := pipeline.rows(
        f"SELECT * FROM {table} ORDER BY {', '.join(key)} LIMIT {PAGE_ROWS} OFFSET {seen}"
    ):
        seen += len(rows)
        yield from rows


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    """The row without its arrival number and the time a publisher took."""
    row.pop("arrived", None)
    if row.get("last_change") is not None:
        row["last_change"] = {**json.loads(row["last_change"]), "fetch_ms": None}
    return row


def _types(value: object) -> object:
    """1 and 1.0 and True are equal and not the same."""
    return {name: type(each) for name, each in value.items()} if isinstance(value, dict) else type(value)


def _shown(value: object, other: object) -> str:
    if isinstance(value, dict) and isinstance(other, dict):
        value = {name: each for name, each in value.items() if each != other.get(name)}
    return repr(value)[:300]


if __name__ == "__main__":
    main()
