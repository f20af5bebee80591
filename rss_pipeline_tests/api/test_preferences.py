"""Preferences over the API. Their values and defaults are tested in pipeline/accounts."""

import pytest

from rss_pipeline_tests.support.reader import Reader

PREFERENCES = "/api/user/preferences"


def test_preferences_are_each_user_s_own_and_those_that_are_not_given_stay(reader: Reader) -> None:
    ada, eve = reader.user("ada").client, reader.user("eve").client
    first = ada.get(PREFERENCES)
    assert first.json()["theme"] == "auto"
    changed = ada.put(PREFERENCES, json={"theme": "dark", "entries_per_page": 100})
    assert changed.status_code == 200
    assert changed.json() == {**first.json(), "theme": "dark", "entries_per_page": 100}
    assert ada.get(PREFERENCES).json() == changed.json()
    assert eve.get(PREFERENCES).json() == first.json()
    for method, given in (("PUT", {"density": "compact"}), ("PATCH", {"show_read": True}), ("PUT", {})):
        before = ada.get(PREFERENCES).json()
        assert ada.request(method, PREFERENCES, json=given).json() == {**before, **given}


def test_preferences_that_have_not_changed_are_not_sent_again(reader: Reader) -> None:
    client = reader.user("ada").client
    tag = client.get(PREFERENCES).headers["etag"]
    assert client.get(PREFERENCES, headers={"If-None-Match": tag}).status_code == 304
    client.put(PREFERENCES, json={"theme": "dark"})
    assert client.get(PREFERENCES, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"theme": "pink"}, "theme"),
        ({"theme": None}, "theme"),
        ({"show_read": None}, "show_read"),
        ({"entries_per_page": None}, "entries_per_page"),
        ({"theme": "dark", "colour": "dark"}, "colour"),
        ({"entries_per_page": 10_000}, "entries_per_page"),
        ({"entries_per_page": "50"}, "entries_per_page"),
        ([], ""),
        (None, ""),
    ],
    ids=str,
)
def test_a_preference_that_is_none_is_a_problem_that_names_it_and_changes_nothing(
    reader: Reader, body: object, named: str
) -> None:
    client = reader.user("ada").client
    before = client.get(PREFERENCES).json()
    for method in ("PUT", "PATCH"):
        answer = client.request(method, PREFERENCES, json=body)
        assert (answer.status_code, answer.json()["kind"]) == (422, "invalid_request")
        assert named in answer.text
    assert client.get(PREFERENCES).json() == before


def test_no_one_else_reads_or_writes_them(reader: Reader) -> None:
    for method in ("GET", "PUT", "PATCH"):
        json: dict[str, str] | None = None if method == "GET" else {}
        assert reader.client().request(method, PREFERENCES, json=json).status_code == 401
    allow = reader.user("ada").client.delete(PREFERENCES).headers["allow"]
    assert set(allow.split(", ")) == {"GET", "HEAD", "PATCH", "PUT"}
