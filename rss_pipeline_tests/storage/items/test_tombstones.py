"""Tombstones: how long what was retired stays away, and how they go."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.items import tombstones
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.storage.values import NOW, change, register, spec

DAY = timedelta(days=1)
RETIRED = NOW - 200 * DAY


@pytest.fixture
def held(database: Database) -> Database:
    """A feed that is held by the token `mine`, with three retired items, and another feed with one."""
    register(database, spec("a"), spec("b"))
    change(database, "UPDATE feeds SET lease_token = 'mine'")
    rows = compact([["a", "1"], ["a", "2"], ["a", "3"], ["b", "1"]])
    database.query(
        """INSERT INTO expired_items (feed_id, guid, expired_at)
        SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), ? FROM json_each(?) WHERE true""",
        [instant(RETIRED), rows],
    )
    return database


def note(
    database: Database,
    guids: Sequence[str],
    now: datetime,
    *,
    token: str = "mine",
    backup_days: int = 30,
    is_first_today: bool = True,
) -> int:
    """A document that lists these guids; the number of rows that it wrote."""
    statements: list[Statement] = tombstones.note_listed(
        "a", token, guids, now=now, backup_days=backup_days, is_first_today=is_first_today
    )
    return sum(result.changes for result in database.batch(statements)) if statements else 0


def left(database: Database) -> list[str]:
    rows = database.query("SELECT feed_id || guid AS id FROM expired_items ORDER BY 1").rows
    return [row["id"] for row in rows]


def test_a_tombstone_goes_after_sixty_days_in_three_documents_without_its_item(held: Database) -> None:
    for days in (0, 1):
        assert note(held, ["1", "x"], NOW + days * DAY) == 2, "two are not listed"
    assert note(held, ["1"], NOW + 100 * DAY) == 4, "the third document notes it, and drops both"
    assert left(held) == ["a1", "b1"]


def test_three_documents_within_sixty_days_are_not_enough(held: Database) -> None:
    for days in (0, 1, 2, 30, 59.9):
        note(held, ["1"], NOW + days * DAY)
    assert left(held) == ["a1", "a2", "a3", "b1"]
    note(held, ["1"], NOW + 60 * DAY)
    assert left(held) == ["a1", "b1"]


def test_an_empty_document_proves_nothing_however_many_come(held: Database) -> None:
    for days in range(0, 400, 10):
        assert note(held, [], NOW + days * DAY) == 0
    assert len(left(held)) == 4


def test_two_short_documents_are_not_enough_however_long_ago(held: Database) -> None:
    for days in (0, 300):
        note(held, ["x"], NOW + days * DAY)
    assert len(left(held)) == 4


def test_an_item_that_is_listed_again_in_between_starts_anew(held: Database) -> None:
    for days in (0, 1, 50):
        note(held, ["x"], NOW + days * DAY)
    assert note(held, ["1", "2", "3"], NOW + 59 * DAY, is_first_today=False) == 3
    for days in (100, 101, 102):
        note(held, ["x"], NOW + days * DAY)
    assert len(left(held)) == 4
    note(held, ["x"], NOW + 160 * DAY)
    assert left(held) == ["b1"]


def test_documents_of_one_day_count_once(held: Database) -> None:
    note(held, ["x"], NOW)
    for _ in range(5):
        assert note(held, ["x"], NOW + 100 * DAY, is_first_today=False) == 0
    assert len(left(held)) == 4


def test_documents_that_go_on_listing_what_was_retired_write_no_row(held: Database) -> None:
    for days in range(100):
        assert note(held, ["1", "2", "3"], NOW + days * DAY) == 0


def test_a_replay_can_bring_back_what_is_in_backups_so_its_tombstone_stays(held: Database) -> None:
    for days in (0, 1, 100):
        note(held, ["x"], NOW + days * DAY, backup_days=301)
    assert len(left(held)) == 4
    note(held, ["x"], NOW + 102 * DAY, backup_days=301)
    assert left(held) == ["b1"]


def test_only_the_run_that_holds_the_feed_writes_tombstones(held: Database) -> None:
    for token in ("another", ""):
        for days in (0, 1, 100):
            assert note(held, ["x"], NOW + days * DAY, token=token) == 0
    assert len(left(held)) == 4
