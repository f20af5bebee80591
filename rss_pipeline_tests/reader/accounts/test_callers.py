"""Each act of a request happens only while its session is alive, and in the same batch."""

import contextlib
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from rss_pipeline.errors import NoSession, StorageRejected
from rss_pipeline.reader.accounts.callers import Caller, SessionKey
from rss_pipeline.storage.accounts import sessions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline_tests.reader.accounts.conftest import Time
from rss_pipeline_tests.reader.accounts.signed_in import add_user, begin, signed_in

READ = Statement("SELECT 7 AS n", name="read a number")


def note(database: Database) -> str | None:
    """The value that `write_note` wrote, which is no one's: no row of a user's takes it with it."""
    rows = database.query("SELECT value FROM installation WHERE name = 'note'", name="read the note").rows
    return str(rows[0]["value"]) if rows else None


def write_note(text: str) -> Statement:
    return Statement(
        "INSERT INTO installation (name, value) VALUES ('note', ?)"
        " ON CONFLICT (name) DO UPDATE SET value = ?",
        [text, text],
        name="write the note",
    )


def version(database: Database, user_id: str) -> int:
    [row] = database.batch([users.preferences(user_id)])[0].rows
    return int(row["state_version"])


def refused(caller: Caller) -> bool:
    """True if neither a read nor a write of the caller is done."""
    before = note(caller.database)
    with pytest.raises(NoSession):
        caller.read(READ)
    with pytest.raises(NoSession):
        caller.write(write_note(secrets.token_hex(4)))
    return note(caller.database) == before


def test_a_read_brings_the_results_of_its_own_statements(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    first, second = caller.read(READ, users.preferences(caller.user_id))
    assert first.rows == [{"n": 7}]
    assert second.rows == [{"preferences": '{"order":"published","stories":true}', "state_version": 0}]
    assert caller.read() == []


def test_a_write_raises_its_user_s_version_by_one_and_no_one_else_s(database: Database, time: Time) -> None:
    ada, ben = (signed_in(database, name, clock=time) for name in ("ada", "ben"))
    [result] = ada.write(write_note("a"))
    assert result.changes == 1
    assert ada.write() == []
    assert (version(database, ada.user_id), version(database, ben.user_id)) == (2, 0)


def test_a_refused_write_leaves_the_version(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    wrong = Statement("INSERT INTO installation (name, value) VALUES ('a', NULL)", name="write nothing")
    with pytest.raises(StorageRejected):
        caller.write(write_note("a"), wrong)
    assert (note(database), version(database, caller.user_id)) == (None, 0)


def test_a_session_that_has_ended_opens_nothing(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    caller.write(write_note("before"))
    database.batch([sessions.end(caller.key.session_id)])
    assert refused(caller)
    assert (note(database), version(database, caller.user_id)) == ("before", 1)


def test_a_removed_user_s_session_opens_nothing(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    database.batch([users.remove(caller.user_id)])
    assert refused(caller)


def test_a_session_opens_only_what_is_its_user_s_and_of_its_kind(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    other = add_user(database, "ben", clock=time)
    for foreign in (
        replace(caller.key, user_id=other),
        replace(caller.key, user_id="0" * 32),
        replace(caller.key, purpose="google_reader"),
        replace(caller.key, session_id="0" * 64),
        SessionKey("", "", "login"),
    ):
        assert refused(Caller(foreign, database, time))
    assert (version(database, caller.user_id), version(database, other)) == (0, 0)


def test_a_session_ends_thirty_days_after_its_last_use(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    time.passes(days=29)
    caller.write()
    time.passes(days=29)
    caller.read(READ)
    assert caller.touch_is_due
    caller.touch()
    assert not caller.touch_is_due
    time.passes(days=29)
    caller.read(READ)
    time.passes(days=1)
    assert refused(caller)
    caller.touch()
    assert refused(caller)


def test_the_last_use_is_written_every_ten_minutes_at_most(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)

    def last_use() -> str:
        [row] = database.query("SELECT last_used_at FROM sessions", name="read last use").rows
        return str(row["last_used_at"])

    time.passes(minutes=9)
    caller.read(READ)
    assert not caller.touch_is_due
    caller.write()
    caller.touch()
    assert last_use() == "2026-02-18T08:30:00Z"
    time.passes(minutes=1)
    caller.read(READ)
    assert caller.touch_is_due
    caller.write()
    assert last_use() == "2026-02-18T08:40:00Z"
    caller.read(READ)
    assert not caller.touch_is_due


@pytest.mark.slow
def test_what_is_written_while_its_session_ends_is_written_before_or_not_at_all(
    sqlite: SqliteDatabase, time: Time
) -> None:
    """Four processes' connections write; the session ends somewhere among them."""
    caller = signed_in(sqlite, "ada", clock=time)
    begun = threading.Barrier(5)

    def write(number: int) -> int:
        with contextlib.closing(SqliteDatabase(sqlite.path)) as connection:
            mine, done = Caller(caller.key, connection, time), 0
            begun.wait(30)
            with contextlib.suppress(NoSession):
                for done in range(10_000):
                    mine.write(write_note(f"{number} {done}"))
                pytest.fail("the session did not end")
        return done

    def end() -> None:
        begun.wait(30)
        while version(sqlite, caller.user_id) < 20:
            pass
        sqlite.batch([sessions.end(caller.key.session_id)])

    with ThreadPoolExecutor(5) as pool:
        writers = [pool.submit(write, number) for number in range(4)]
        pool.submit(end).result(60)
        done = [writer.result(60) for writer in writers]
    assert version(sqlite, caller.user_id) == sum(done) >= 20


def test_of_too_many_sessions_those_unused_for_longest_end(database: Database, time: Time) -> None:
    caller = signed_in(database, "ada", clock=time)
    other = signed_in(database, "ben", clock=time)
    for _ in range(sessions.MOST_OF_A_KIND - 1):
        time.passes(seconds=1)
        begin(database, caller.user_id, clock=time)
    time.passes(minutes=15)
    caller.touch()
    newest = begin(database, caller.user_id, clock=time)
    [tidied] = database.batch([sessions.tidy(newest.session_id, now=time())])
    assert tidied.changes == 1
    caller.read(READ)
    Caller(newest, database, time).read(READ)
    other.read(READ)
