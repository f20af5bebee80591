"""Marks in the JSON API: what the client saw, and nothing else."""

import json
from typing import Any

import pytest

from rss_pipeline.api.routers.marks import MOST_IDS
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader, User

MARK = "/api/items/mark"


def feed(user: User) -> dict[str, Any]:
    (found,) = user.client.get("/api/feeds").json()["feeds"]
    assert isinstance(found, dict)
    return found


def items(user: User, **params: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = user.client.get("/api/items", params=params).json()["items"]
    return found


def test_a_feed_is_read_up_to_what_was_seen_and_what_came_since_is_unread(reader: Reader) -> None:
    user = ann(reader, a=3)
    seen = feed(user)["version"]
    arrive(reader.database, "a", "4")
    answer = user.client.post("/api/feeds/a/mark-read", json={"up_to": seen})
    assert answer.status_code == 200
    assert answer.json()["unread"] == 1
    assert [each["title"] for each in items(user, unread_only="true")] == ["Title 4"]
    again = user.client.post("/api/feeds/a/mark-read", json={"up_to": seen})
    assert again.json() == {**answer.json(), "undo": None}
    back = user.client.post("/api/feeds/a/mark-read", json={"up_to": 0})
    assert back.json()["unread"] == 1


def test_what_is_not_there_yet_is_not_read_by_a_number_from_the_future(reader: Reader) -> None:
    user = ann(reader, a=1)
    assert user.client.post("/api/feeds/a/mark-read", json={"up_to": 2**53 - 1}).json()["unread"] == 0
    arrive(reader.database, "a", "2")
    assert feed(user)["unread"] == 1


def test_items_are_marked_and_the_same_again_changes_nothing(reader: Reader) -> None:
    user = ann(reader, a=4)
    ids = [each["id"] for each in items(user)]
    for marks in ({"is_read": True}, {"is_starred": True}, {"is_read": False, "is_starred": False}):
        for _ in range(2):
            answer = user.client.post(MARK, json={"ids": [ids[0], ids[2], "x", ids[0]], **marks})
            assert answer.json() == {"marked": 2, "unknown": ["x"]}
            found = {each["id"]: each for each in items(user)}
            for id in (ids[0], ids[2]):
                assert {name: found[id][name] for name in marks} == marks
            assert not found[ids[1]]["is_read"]
            assert not found[ids[1]]["is_starred"]
            assert feed(user)["unread"] == sum(not each["is_read"] for each in found.values())


def test_marks_of_items_no_one_can_see_are_not_found(reader: Reader) -> None:
    user = ann(reader, a=1)
    answer = user.client.post(MARK, json={"ids": ["x", "0" * 32], "is_starred": True})
    assert answer.status_code == 404
    assert answer.json()["kind"] == "not_found"


@pytest.mark.parametrize(
    "marks",
    [
        {"ids": []},
        {"ids": "x", "is_read": True},
        {"ids": ["x"], "is_read": "yes"},
        {"ids": ["x"], "is_read": 1},
        {"ids": ["x" * 65], "is_read": True},
        {"ids": ["\ud800"], "is_read": True},
        {"ids": ["x"] * (MOST_IDS + 1), "is_read": True},
        {"ids": ["x"], "is_read": True, "is_dead": True},
    ],
)
def test_marks_that_cannot_be_made_are_refused(reader: Reader, marks: dict[str, Any]) -> None:
    answer = ann(reader, a=1).client.post(MARK, content=json.dumps(marks))
    assert answer.status_code == 422
    assert answer.json()["errors"]


@pytest.mark.parametrize("seen", [{}, {"up_to": -1}, {"up_to": 2**53}, {"up_to": "1"}, {"up_to": 1.5}, 5])
def test_a_number_that_is_none_marks_nothing(reader: Reader, seen: object) -> None:
    user = ann(reader, a=1)
    assert user.client.post("/api/feeds/a/mark-read", json=seen).status_code == 422
    assert feed(user)["unread"] == 1


def test_the_most_ids_are_marked_by_one_request(reader: Reader) -> None:
    user = ann(reader, a=1)
    ids = [items(user)[0]["id"], *(f"{n:032x}" for n in range(MOST_IDS - 1))]
    answer = user.client.post(MARK, json={"ids": ids, "is_read": True})
    assert answer.json()["marked"] == 1
    assert feed(user)["unread"] == 0


def test_a_mark_of_a_feed_a_folder_or_all_is_undone_and_what_was_read_before_or_since_is_not(
    reader: Reader,
) -> None:
    user = ann(reader, a=3, b=2)
    ids = {each["feed_id"] + each["title"][-1]: each["id"] for each in items(user)}
    user.client.patch("/api/feeds/b", json={"folder": "News"})
    up_to = max(each["cursor"] for each in items(user))
    for path, body, marked in (
        ("/api/feeds/a/mark-read", {}, 2),
        ("/api/mark-read", {"folder": "News"}, 2),
        ("/api/mark-read", {}, 4),
    ):
        user.client.post(MARK, json={"ids": [ids["a2"]], "is_read": True})
        answer = user.client.post(path, json={"up_to": up_to, **body})
        assert answer.status_code == 200
        undo = answer.json()["undo"]
        assert undo["items"] == marked
        assert user.client.get("/api/mark-read").json() == {"marks": [undo]}
        since = ids["b1"] if body else ids["a1"]
        user.client.post(MARK, json={"ids": [since], "is_read": True})
        undone = user.client.post(f"/api/mark-read/{undo['id']}/undo")
        assert undone.json() == {"items": marked - 1}
        read = {each["id"] for each in items(user) if each["is_read"]}
        assert read == {ids["a2"], since}
        assert user.client.post(f"/api/mark-read/{undo['id']}/undo").status_code == 404
        user.client.post(MARK, json={"ids": list(read), "is_read": False})


def test_a_mark_that_marks_nothing_leaves_nothing_to_undo(reader: Reader) -> None:
    user = ann(reader, a=1)
    assert user.client.post("/api/mark-read", json={"up_to": 0}).json() == {"undo": None}
    assert user.client.get("/api/mark-read").json() == {"marks": []}


def test_after_an_hour_a_mark_is_for_good(reader: Reader) -> None:
    user = ann(reader, a=1)
    undo = user.client.post("/api/mark-read", json={"up_to": 2**53 - 1}).json()["undo"]
    reader.clock.pass_(seconds=3_601)
    user = reader.signed_in(user.id)
    assert user.client.get("/api/mark-read").json() == {"marks": []}
    assert user.client.post(f"/api/mark-read/{undo['id']}/undo").status_code == 404
    assert feed(user)["unread"] == 0


def test_on_d1_a_mark_is_one_request(reader: Reader) -> None:
    user = ann(reader, a=3)
    id = items(user)[0]["id"]
    remote, database = as_on_d1(reader)
    client = remote.client(authorization=f"Bearer {user.token}")
    assert client.post("/api/feeds/a/mark-read", json={"up_to": feed(user)["version"]}).status_code == 200
    assert database.requests == 1
    assert client.post(MARK, json={"ids": [id], "is_read": False, "is_starred": True}).status_code == 200
    assert database.requests == 2
