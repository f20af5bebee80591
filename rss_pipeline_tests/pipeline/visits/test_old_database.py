"""A database as the code of schema 31 left it: the pipeline goes on where that code stopped.

The rows are in database_at_0031.sql, their tables in support/schema_0031.sql.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.errors import NetworkUnavailable
from rss_pipeline.pipeline.images.download import download_images
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.databases import make_oldest
from rss_pipeline_tests.support.pictures import PNG
from rss_pipeline_tests.support.server import Answer, FeedServer

RUN_ENDED = datetime(2026, 11, 22, 3, 43, tzinfo=UTC)
"""A minute after the feeds that the outage postponed are due."""
POSTPONED = ("f4", "f5", "f6")


@dataclass(slots=True)
class Installation:
    """The old database with its migrations applied, and publishers that answer until `outage`."""

    settings: Settings
    database: Database
    server: FeedServer
    now: datetime = RUN_ENDED

    def session(self) -> Session:
        return Session(
            RunContext(
                settings=self.settings,
                database=self.database,
                objects=open_objects(self.settings),
                run_id="the next run",
                clock=lambda: self.now,
            )
        )

    def poll(self, *, after: timedelta = timedelta(0)) -> dict[str, Visit]:
        self.now += after
        with self.session() as session:
            return {visit.feed.id: visit for visit in poll_round(session, Due(now=self.now), {})}

    def rows(self, sql: str) -> list[dict[str, Any]]:
        return self.database.query(sql).rows

    def feed(self, id: str) -> dict[str, Any]:
        (row,) = self.database.query("SELECT * FROM feeds WHERE id = ?", [id]).rows
        return row

    def answer(self) -> None:
        """Let every publisher answer with one item more than the old code had stored."""
        for number, id in enumerate(("f1", "f2", "f3", *POSTPONED), start=1):
            self.server.route(f"127.0.5.{number}", f"/f/{id}", Answer(body=document(id, 6), etag=f'"{id}6"'))


def document(id: str, items: int) -> bytes:
    """A document as the publisher of feed `id` serves it."""
    rows = "".join(
        f"<item><guid isPermaLink='false'>{id}-{n}</guid><title>T {id} {n}</title>"
        f"<link>http://example.com/{id}/{n}</link></item>"
        for n in range(items)
    )
    return f"<rss version='2.0'><channel><title>Feed {id}</title>{rows}</channel></rss>".encode()


@pytest.fixture
def old(tmp_path: Path, server: FeedServer) -> Iterator[Installation]:
    settings = Settings(
        home=tmp_path,
        feeds_file=tmp_path / "feeds.yaml",
        user_agent="rss_pipeline/test",
        host_delay_seconds=0.0,
        image_host_delay_seconds=0.0,
        parse_workers=1,
    )
    rows = files(__package__).joinpath("database_at_0031.sql").read_text("utf-8")
    database = connect(settings)
    make_oldest(database)
    with closing(sqlite3.connect(settings.database_path)) as written:
        written.executescript(rows.replace("PORT", str(server.port)))
        written.commit()
    assert migrate(database), "this code has a migration that the old database lacks"
    database.query("UPDATE leases SET expires_at = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '+1 hour')")
    yield Installation(settings, database, server)
    database.close()


@pytest.mark.slow
def test_the_feed_of_a_killed_run_is_visited_once_its_lease_has_lapsed(old: Installation) -> None:
    old.answer()
    assert "f1" not in old.poll()
    old.database.query("UPDATE leases SET expires_at = '2000-01-01T00:00:00Z'")
    assert not old.poll()["f1"].lost
    assert old.feed("f1")["unclosed_claims"] == 0
    assert old.feed("f1")["lease_token"] is None
    assert old.feed("f1")["last_etag"] == '"f16"'


def test_feeds_that_an_outage_postponed_are_not_counted_as_failing_while_it_goes_on(
    old: Installation,
) -> None:
    for feed in POSTPONED:
        # Of networks of their own, as they were, and out of reach: what is refused has reached somebody.
        old.database.query(
            "UPDATE feeds SET network = id, host = ?, url = ? WHERE id = ?",
            [f"{feed}.invalid", f"http://{feed}.invalid/f", feed],
        )
    with pytest.raises(NetworkUnavailable):
        old.poll()
    later = {old.feed(id)["next_fetch_at"] for id in POSTPONED}
    assert later == {"2026-11-22T03:48:00Z"}
    assert [old.feed(id)["consecutive_failures"] for id in POSTPONED] == [0, 0, 0]


def test_feeds_that_an_outage_postponed_are_counted_once_another_host_has_answered(
    old: Installation,
) -> None:
    old.database.query("UPDATE feeds SET last_fetched_at = '2026-11-22T03:42:30Z' WHERE id = 'bad'")
    old.poll()
    assert [old.feed(id)["consecutive_failures"] for id in POSTPONED] == [1, 1, 1]


def test_the_old_validators_are_sent_and_only_the_new_items_are_inserted(old: Installation) -> None:
    before = old.rows("SELECT * FROM items")
    old.answer()
    old.poll()
    (request,) = old.server.asked("127.0.5.4")
    assert request.headers["if-none-match"] == '"f45"'
    after = {row["id"]: row for row in old.rows("SELECT * FROM items WHERE feed_id = 'f4'")}
    assert [after[row["id"]] for row in before] == before, "what was stored is as it was"
    assert len(after) == 6
    (guid,) = (row["guid"] for row in after.values() if row["id"] == expected_id("f4", "f4-5"))
    assert guid == "f4-5"
    newest = max(row["arrived"] for row in before)
    assert all(row["arrived"] > newest for row in after.values() if row not in before)


def test_a_hold_that_a_host_requested_from_the_old_code_is_kept(old: Installation) -> None:
    old.database.query("UPDATE feeds SET next_fetch_at = '2026-11-22T03:40:00Z' WHERE id = 'later'")
    old.answer()
    assert "later" not in old.poll()
    assert "later" in old.poll(after=timedelta(minutes=41))


def test_an_image_that_failed_under_the_old_code_has_its_second_attempt_when_it_is_due(
    old: Installation,
) -> None:
    old.server.route("127.0.5.99", "/pic/f4-1.png", Answer(body=PNG))
    old.database.query("UPDATE feeds SET allow_private = 1, private_hosts = '[\"127.0.0.0/8\"]'")
    assert archived(old, at=RUN_ENDED) == 0
    assert archived(old, at=RUN_ENDED + timedelta(hours=1)) == 1
    tasks = old.rows("SELECT status, attempts, r2_key FROM image_tasks ORDER BY original_url")
    assert [task["status"] for task in tasks] == ["success", "success"]
    assert tasks[0]["r2_key"] == "images/f4/9ed00105/0.png"


def archived(old: Installation, *, at: datetime) -> int:
    """The number of images that a run at that moment archives."""
    old.now = at
    with old.session() as session:
        return download_images(
            run=session.run,
            lease_keeper=session.leases,
            politeness=session.image_politeness,
            spool=session.spool,
        ).archived


def expected_id(feed_id: str, guid: str) -> str:
    """An item's id, as it always was made."""
    return hashlib.sha256(f"{feed_id}\0{guid}".encode()).hexdigest()[:32]
