"""Users as an operator keeps them: what a removal takes along, and what it leaves to others.

What it does to sessions is in test_login.py.
"""

from pathlib import Path

import pytest

from rss_pipeline.errors import UserRefused
from rss_pipeline.reader.accounts.users import add_user, find_user, remove_user
from rss_pipeline.storage.accounts.user_rows import look_for_owner
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.subscriptions import Wanted, subscribe
from rss_pipeline_tests.reader.accounts.conftest import Time
from rss_pipeline_tests.reader.accounts.signed_in import add_user as with_sessions_only
from rss_pipeline_tests.storage.values import register, spec


def test_a_removal_takes_subscriptions_along_and_leaves_what_others_read(
    database: Database, time: Time, tmp_path: Path
) -> None:
    register(database, spec("listed"), spec("shared"), spec("alone"), now=time())
    database.query("UPDATE feeds SET listed = 0, registered = 0 WHERE id <> 'listed'", name="unlist feeds")
    ada, ben = (with_sessions_only(database, name, clock=time) for name in ("ada", "ben"))
    for user_id, feed_ids in ((ada, ("listed", "shared", "alone")), (ben, ("shared",))):
        wanted = [Wanted(feed_id=feed_id) for feed_id in feed_ids]
        database.batch(subscribe(user_id, wanted, at=time()))

    def registered() -> dict[str, int]:
        rows = database.query("SELECT id, registered FROM feeds", name="read feeds").rows
        return {row["id"]: int(row["registered"]) for row in rows}

    assert registered() == {"listed": 1, "shared": 1, "alone": 1}
    remove_user(database, FolderStore(tmp_path / "objects"), name="Ada", clock=time)
    assert registered() == {"listed": 1, "shared": 1, "alone": 0}
    rows = database.query("SELECT user_id, feed_id FROM subscriptions", name="read subscriptions").rows
    assert [(row["user_id"], row["feed_id"]) for row in rows] == [(ben, "shared")]
    with pytest.raises(UserRefused):
        find_user(database, "ada")
    with pytest.raises(UserRefused):
        remove_user(database, FolderStore(tmp_path / "objects"), name="ada", clock=time)


def test_the_owner_is_the_user_who_was_made_first_of_those_that_are_left(
    database: Database, time: Time, tmp_path: Path
) -> None:
    made = {}
    for name in ("zoe", "ada", "ben"):
        made[name] = with_sessions_only(database, name, clock=time)
        time.passes(seconds=1)

    def owners() -> list[str]:
        return [name for name, id in made.items() if database.batch([look_for_owner(id)])[0].rows]

    assert owners() == ["zoe"]
    remove_user(database, FolderStore(tmp_path / "objects"), name="zoe", clock=time)
    assert owners() == ["ada"]


def test_a_name_is_one_user_s_however_it_is_written(database: Database, time: Time) -> None:
    assert add_user(database, name=" Ada@Example.org ", password="correct horse", clock=time) == (
        "ada@example.org"
    )
    for taken in ("ada@example.org", "ADA@EXAMPLE.ORG"):
        with pytest.raises(UserRefused, match="there is a user"):
            add_user(database, name=taken, password="correct horse", clock=time)
    with pytest.raises(UserRefused, match="cannot be a user's name"):
        add_user(database, name="\N{KELVIN SIGN}im", password="correct horse", clock=time)
    assert find_user(database, "Ada@example.org")
