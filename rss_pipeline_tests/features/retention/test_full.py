"""A database without room for a row can be cleaned, and forgets feeds; the poll after it brings nothing back.

A real SQLite has a page limit, a real Postgres a tablespace of some MB where a file system can be mounted. In
D1, and in Postgres everywhere, a trigger refuses rows, as the server would, until items have left.
"""

import contextlib
import itertools
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.errors import DatabaseFull, StorageRejected
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Result, Statement, Value
from rss_pipeline.storage.feeds.forget import begin_forget, end_forget
from rss_pipeline_tests.features.retention.archive import NEW, OLD, age, cleaned, is_sound, stock
from rss_pipeline_tests.pipeline.images.test_places import FullForKeys, collect, installation, keys
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.postgres_database import SHARED

_guids = itertools.count()
_REFUSED = (("INSERT", "items"), ("INSERT", "expired_items"), ("UPDATE", "topics"))


def fill(database: Database) -> None:
    """Leave no free page, and let the file have no more."""
    if isinstance(database, SqliteDatabase):
        database.query("PRAGMA max_page_count = 1")  # Of what there is, so many.
    for size in (3_000, 300, 30):
        with contextlib.suppress(DatabaseFull):
            while True:
                database.query(
                    "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('x', ?, 'x')",
                    [f"{next(_guids):0{size}}"],
                )


@contextlib.contextmanager
def full(pipeline: Pipeline, request: pytest.FixtureRequest) -> Any:
    """Within, there is no room until items go."""
    database = pipeline.database
    most = len(pipeline.rows("SELECT id FROM items"))
    if isinstance(database, SqliteDatabase):
        fill(database)
        yield
        database.query("PRAGMA max_page_count = 1000000")
    elif pipeline.settings.pays_by_row:
        for event, table in _REFUSED:
            database.query(
                f"""CREATE TRIGGER full_{table} BEFORE {event} ON {table}
                WHEN (SELECT count(*) FROM items) >= {most}
                BEGIN SELECT RAISE(ABORT, 'Exceeded maximum DB size'); END"""
            )
        yield
        for _, table in _REFUSED:
            database.query(f"DROP TRIGGER full_{table}")
    else:
        running = request.getfixturevalue("running_postgres")
        triggers = "; ".join(
            f"CREATE TRIGGER full_disk BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()"
            for event, table in _REFUSED
        )
        running.execute(
            SHARED,
            f"""CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
            $$BEGIN IF (SELECT count(*) FROM items) >= {most} THEN RAISE disk_full USING MESSAGE =
            'could not extend file: No space left on device'; END IF; RETURN NEW; END$$; {triggers}""",
        )
        yield
        running.execute(SHARED, "DROP FUNCTION full_disk CASCADE")


class SaysFull:
    """D1 with the word for a database that is full where a trigger of a test has refused a row."""

    def __init__(self, real: Database) -> None:
        self._real = real

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        try:
            return self._real.batch(statements)
        except StorageRejected as error:
            if "Exceeded maximum DB size" in str(error):
                raise DatabaseFull(str(error)) from error
            raise

    def close(self) -> None: ...


def refuses(database: Database) -> bool:
    try:
        database.query(
            "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('y', ?, 'x')",
            [f"{next(_guids)}{'y' * 2_000}"],
        )
    except DatabaseFull:
        return True
    return False


@EVERYWHERE
def test_a_full_database_can_be_cleaned_and_forgets_a_feed_and_no_poll_brings_anything_back(
    place: Pipeline, server: FeedServer, request: pytest.FixtureRequest
) -> None:
    stock(place, server)
    place.database.query("UPDATE items SET summary = ? WHERE guid LIKE 'old%'", ["x" * 6_000])
    # It lists only new items from now on: what is old needs no tombstone.
    server.route("127.0.0.2", "/feed", Answer(body=rss(*NEW)))
    third = server.route("127.0.0.9", "/feed", Answer(body=rss(*(f"{n}" * 200 for n in range(40)))))
    place.register(third, "three")
    place.poll(all_feeds=True)
    # As a sync does with a topic of feeds.yaml.
    place.database.query("INSERT INTO topics (id, definition, stale_at) VALUES ('t', '{}', '2026')")
    place.database.query("INSERT INTO topic_members (topic_id, feed_id) VALUES ('t', 'three')")
    database = place.database if not place.settings.pays_by_row else SaysFull(place.database)
    with full(place, request):
        assert refuses(database)
        assert cleaned(place, database=database).total.items == 2 * len(OLD)
        assert not refuses(database)
    retired = place.rows("SELECT feed_id, guid FROM expired_items WHERE feed_id IN ('one', 'two') ORDER BY 2")
    # In SQLite a page that their image tasks leave may have room for all tombstones.
    ids = (
        ("one", "two") if len(retired) > len(OLD) and isinstance(place.database, SqliteDatabase) else ("two",)
    )
    assert [tuple(row.values()) for row in retired] == [(id, guid) for guid in OLD for id in ids]
    is_sound(place)
    with full(place, request):
        assert refuses(database)
        assert begin_forget(database, "three")["items"] == 40
        assert end_forget(database, "three") == 1
        assert not refuses(database)
    if isinstance(place.database, SqliteDatabase):
        size = place.settings.database_path.stat().st_size
        cleaned(place)
        assert place.settings.database_path.stat().st_size < size, "the file shrinks"
    place.feeds = [feed for feed in place.feeds if feed["id"] != "three"]
    for n, listed in ((2, NEW), (3, (*OLD, *NEW))):
        server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(*listed, "newest", title="Another")))
    place.poll(all_feeds=True)
    for id in ("one", "two"):
        assert place.guids(id) == sorted([*NEW, "newest"])
    is_sound(place)


@contextlib.contextmanager
def small_disk(running: Postgres) -> Iterator[Path]:
    """A file system of some MB, which has the database `small` of this server."""
    disk = running.folder / "small"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=28m", "small", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        shutil.chown(disk, running.folder.owner())
        disk.chmod(0o700)
        running.execute("postgres", f"CREATE TABLESPACE small LOCATION '{disk}'")
        running.execute("postgres", "CREATE DATABASE small TEMPLATE template0 TABLESPACE small")
        yield disk
    finally:
        running.execute("postgres", "DROP DATABASE IF EXISTS small WITH (FORCE);\nDROP TABLESPACE small")
        subprocess.run(["umount", disk], check=True)
        disk.rmdir()


@contextlib.contextmanager
def full_to_the_last_page(database: Database, disk: Path) -> Iterator[None]:
    with contextlib.suppress(OSError), (disk / "others").open("wb", buffering=0) as others:
        while True:
            others.write(bytes(4_096))
    fill(database)
    assert shutil.disk_usage(disk).free < 8_192
    yield
    (disk / "others").unlink()
    database.query("DELETE FROM expired_items WHERE feed_id IN ('x', 'y')")


def test_a_postgres_on_a_disk_without_a_free_page_can_be_cleaned_and_forgets_a_feed(
    running_postgres: Postgres, tmp_path: Path, server: FeedServer
) -> None:
    with small_disk(running_postgres) as disk:
        place = Pipeline(tmp_path, database_server=PostgresBackend(url=running_postgres.url("small")))
        stock(place, server)
        old = [f"{n}" * 200 for n in range(40)]
        place.register(server.route("127.0.0.9", "/feed", Answer(body=rss(*old, *NEW))), "three")
        place.poll(all_feeds=True)
        with full_to_the_last_page(place.database, disk):
            assert refuses(place.database)
            assert cleaned(place).total.items == 2 * len(OLD)
        is_sound(place)
        age(place, "three", 181, *old[:20])
        running_postgres.execute("small", "DROP TABLE IF EXISTS rss_sqlite.reserve")
        with full_to_the_last_page(place.database, disk):
            with pytest.raises(DatabaseFull, match="make 2 MB free"):
                cleaned(place)
            assert len(place.guids("three")) == len(old) + len(NEW), "nothing is lost"
            with (disk / "others").open("r+b") as others:
                others.truncate((disk / "others").stat().st_size - 2_097_152)
            assert cleaned(place).total.items == 20
        cleaned(place)  # There is room for the reserve again.
        with full_to_the_last_page(place.database, disk):
            assert begin_forget(place.database, "one")["items"] == len(NEW)
            assert end_forget(place.database, "one") == 1
        place.feeds = [feed for feed in place.feeds if feed["id"] != "one"]
        for n, listed in ((3, (*OLD, *NEW)), (9, (*old, *NEW))):
            server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(*listed, "newest", title="Another")))
        place.poll(all_feeds=True)
        assert place.guids("two") == sorted([*NEW, "newest"])
        assert place.guids("three") == sorted([*old[20:], *NEW, "newest"]), "nothing is back"
        place.close()


def test_images_that_cannot_move_in_a_full_database_stay_readable(tmp_path: Path, server: FeedServer) -> None:
    pipeline = installation(tmp_path, server, objects_public_url=server.url("127.0.0.50", "").rstrip("/"))
    collect(pipeline, server, "a", "b")
    pipeline.database.query("UPDATE feeds SET needs_access = 1")
    cleaned(pipeline, database=FullForKeys(pipeline.database))
    assert {row["r2_key"].split("/")[0] for row in keys(pipeline) if row["feed_id"] == "open"} == {"images"}
    assert all(pipeline.objects.get(row["r2_key"]) for row in keys(pipeline))
    cleaned(pipeline)
    assert {row["r2_key"].split("/")[0] for row in keys(pipeline)} == {"private-images"}
    pipeline.close()
