"""The first user: one of all that are wanted at once, with all subscriptions or none."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from rss_pipeline.errors import CodeRefused, PasswordRefused, UserRefused
from rss_pipeline.reader.accounts.users import add_user
from rss_pipeline.reader.first_user import add_first_user, check_code, code_of_first_user, has_users
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.reader.accounts.conftest import (
    Time,
    database,
    empty_d1,
    migrated_d1,
    migrated_schema,
    shared_d1,
    sqlite,
    time,
)
from rss_pipeline_tests.storage.values import register, spec

__all__ = ["database", "empty_d1", "migrated_d1", "migrated_schema", "shared_d1", "sqlite", "time"]

PASSWORD = "correct horse"


def add(
    database: Database, time: Time, name: str = "ada", *, password: str = PASSWORD, with_listed: bool = True
) -> str | None:
    return add_first_user(database, name=name, password=password, with_listed=with_listed, clock=time)


def found(database: Database, sql: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in database.query(sql, name="look").rows]


def names(database: Database) -> list[tuple[object, ...]]:
    return found(database, "SELECT name FROM users")


def subscriptions(database: Database) -> list[tuple[object, ...]]:
    return found(
        database,
        "SELECT u.name, s.feed_id FROM subscriptions AS s JOIN users AS u ON u.id = s.user_id ORDER BY 1, 2",
    )


def test_the_first_user_subscribes_the_feeds_of_the_file(database: Database, time: Time) -> None:
    register(database, spec("one"), spec("two"), now=time())
    assert not has_users(database)
    assert add(database, time, " Ada ") == "ada"
    assert has_users(database)
    assert subscriptions(database) == [("ada", "one"), ("ada", "two")]


def test_the_first_user_is_not_too_fast_for_the_list_of_feeds(
    sqlite: Database, time: Time, tmp_path: Path
) -> None:
    (tmp_path / "feeds.yaml").write_text("feeds: [{url: https://a.example/, id: a}]\n")
    settings = Settings.from_environ({}, cwd=tmp_path)
    add_first_user(sqlite, name="ada", password=PASSWORD, with_listed=True, clock=time, settings=settings)
    assert subscriptions(sqlite) == [("ada", "a")]
    assert found(sqlite, "SELECT origin FROM subscriptions") == [("list",)]


def test_the_first_user_may_begin_with_no_feed(database: Database, time: Time) -> None:
    register(database, spec("one"), now=time())
    code = code_of_first_user(database)
    assert code is not None
    with pytest.raises(CodeRefused):
        check_code(database, "WRONG-23", now=time())
    check_code(database, code, now=time())
    assert add(database, time, with_listed=False) == "ada"
    assert subscriptions(database) == []
    assert code_of_first_user(database) is None


@pytest.mark.slow
@pytest.mark.parametrize("listed", [0, 2])
def test_of_many_first_users_at_once_one_is_added_and_subscribed(
    database: Database, time: Time, listed: int
) -> None:
    register(database, *(spec(f"feed{number}") for number in range(listed)), now=time())
    together = Barrier(6)

    def first(number: int) -> str | None:
        together.wait()
        return add(database, time, f"user{number}")

    with ThreadPoolExecutor(6) as threads:
        added = [name for name in threads.map(first, range(6)) if name is not None]
    assert len(added) == 1
    assert names(database) == [(added[0],)]
    assert subscriptions(database) == [(added[0], f"feed{number}") for number in range(listed)]


def test_where_there_is_a_user_no_other_is_added(database: Database, time: Time) -> None:
    register(database, spec("one"), now=time())
    add_user(database, name="ben", password=PASSWORD, clock=time)
    assert add(database, time) is None
    assert add(database, time, "ben", password="another horse") is None
    assert names(database) == [("ben",)]
    assert subscriptions(database) == []


def test_what_can_be_no_name_and_no_password_adds_no_user(database: Database, time: Time) -> None:
    for name in ("", "a b", "a" * 65, "\N{KELVIN SIGN}im"):
        with pytest.raises(UserRefused):
            add(database, time, name)
    for password in ("", "seven77", "x" * 1_025):
        with pytest.raises(PasswordRefused):
            add(database, time, password=password)
    assert not has_users(database)
