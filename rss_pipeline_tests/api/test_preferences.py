"""Preferences over the API. Their values and defaults are tested in pipeline/accounts."""

import pytest

from rss_pipeline_tests.support.reader import Reader

PREFERENCES = "/api/user/preferences"


def test_preferences_are_each_user_s_own_and_replaced_whole(reader: Reader) -> None:
    ada, eve = reader.user("ada").client, reader.user("eve").client
    first = ada.get(PREFERENCES)
    assert first.json()["theme"] == "auto"
    changed = ada.put(PREFERENCES, json={"theme": "dark", "entries_per_page": 100})
    assert changed.status_code == 200
    assert changed.json() == {**first.json(), "theme": "dark", "entries_per_page": 100, "stories": False}
    assert ada.get(PREFERENCES).json() == changed.json()
    assert eve.get(PREFERENCES).json() == first.json()
    assert ada.put(PREFERENCES, json={"density": "compact"}).json()["theme"] == "auto"


def test_one_preference_is_set_and_the_others_stay(reader: Reader) -> None:
    ada, eve = reader.user("ada").client, reader.user("eve").client
    before = ada.put(PREFERENCES, json={"theme": "dark", "show_read": True}).json()
    changed = ada.patch(PREFERENCES, json={"show_failing_feed": True, "theme": "auto"})
    assert changed.status_code == 200
    assert changed.json() == {**before, "show_failing_feed": True, "theme": "auto"}
    assert ada.get(PREFERENCES).json() == changed.json()
    assert ada.patch(PREFERENCES, json={}).json() == changed.json()
    assert not eve.get(PREFERENCES).json()["show_failing_feed"]


def test_preferences_that_have_not_changed_are_not_sent_again(reader: Reader) -> None:
    client = reader.user("ada").client
    tag = client.get(PREFERENCES).headers["etag"]
    assert client.get(PREFERENCES, headers={"If-None-Match": tag}).status_code == 304
    client.put(PREFERENCES, json={"theme": "dark"})
    assert client.get(PREFERENCES, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {"theme": "pink"},
        {"theme": None},
        {"colour": "dark"},
        {"entries_per_page": 10_000},
        {"entries_per_page": "50"},
        [],
    ],
)
def test_a_preference_that_is_none_is_a_problem_and_changes_nothing(reader: Reader, body: object) -> None:
    client = reader.user("ada").client
    before = client.get(PREFERENCES).json()
    for method in ("PUT", "PATCH"):
        answer = client.request(method, PREFERENCES, json=body)
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid_request")
    assert client.get(PREFERENCES).json() == before


def test_no_one_else_reads_or_writes_them(reader: Reader) -> None:
    for method in ("GET", "PUT", "PATCH"):
        json: dict[str, str] | None = None if method == "GET" else {}
        assert reader.client().request(method, PREFERENCES, json=json).status_code == 401
    allow = reader.user("ada").client.delete(PREFERENCES).headers["allow"]
    assert set(allow.split(", ")) == {"GET", "HEAD", "PATCH", "PUT"}
