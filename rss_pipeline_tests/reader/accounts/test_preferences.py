"""Preferences: each with a default, none that is unknown, and none lost to another version."""

import json

import pytest
from pydantic import ValidationError

from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.login import log_out
from rss_pipeline.reader.accounts.preferences import (
    Preferences,
    SomePreferences,
    change_preferences,
    own_preferences,
    stored_preferences,
)
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.reader.accounts.conftest import Time
from rss_pipeline_tests.reader.accounts.signed_in import signed_in


def test_preferences_are_as_they_were_written_and_each_user_s_own(database: Database, time: Time) -> None:
    ada, ben = (signed_in(database, name, clock=time) for name in ("ada", "ben"))
    assert ada.ask(own_preferences(ada.user_id)) == Preferences(stories=True)
    assert not Preferences().show_failing_feed
    wanted = SomePreferences(theme="dark", entries_per_page=10, show_failing_feed=True)
    has = change_preferences(ada, wanted)
    assert has == Preferences(**wanted.model_dump(exclude_unset=True), stories=True)
    assert ada.ask(own_preferences(ada.user_id)) == has
    assert ben.ask(own_preferences(ben.user_id)) == Preferences(stories=True)
    [row] = ada.read(users.preferences(ada.user_id))[0].rows
    assert int(row["state_version"]) == 1
    log_out(database, ada.key.session_id)
    with pytest.raises(NoSession):
        ada.ask(own_preferences(ada.user_id))
    with pytest.raises(NoSession):
        change_preferences(ada, wanted)


def test_what_is_not_given_stays_also_what_is_beside_the_preferences(database: Database, time: Time) -> None:
    ada = signed_in(database, "ada", clock=time)
    change_preferences(ada, SomePreferences(theme="dark", order="oldest"))
    ada.write(users.put_read_failures(ada.user_id, [7, 8]))
    assert change_preferences(ada, SomePreferences(theme="light")) == Preferences(
        theme="light", order="oldest", stories=True
    )
    assert beside(ada) == [7, 8]


def beside(caller: Caller) -> object:
    [row] = caller.read(users.preferences(caller.user_id))[0].rows
    return json.loads(row["preferences"])[users.READ_FAILURES]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"theme": "pink"}, {"colour": "red"}, {"entries_per_page": 9}, {"entries_per_page": 201}),
        *({"entries_per_page": "50"}, {"entries_per_page": True}, {"show_read": "yes"}, {"order": None}),
    ],
    ids=str,
)
def test_what_no_preference_can_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Preferences.model_validate(wrong)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert Preferences.model_validate({"entries_per_page": 50.0}) == Preferences(entries_per_page=50)
    with pytest.raises(ValidationError):
        Preferences.model_validate({"entries_per_page": 50.5})


def test_what_a_newer_version_wrote_reads_as_the_default() -> None:
    text = '{"theme": "sepia", "order": "oldest", "entries_per_page": 1000, "font": "large"}'
    assert stored_preferences(text) == Preferences(order="oldest")
    assert stored_preferences("{}") == Preferences()
