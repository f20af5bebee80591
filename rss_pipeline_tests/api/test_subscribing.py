"""Subscribing by an address, refresh now, and tasks, in the JSON API. The runs are tested in pipeline."""

from datetime import timedelta
from typing import Any

import httpx
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.storage.values import change, register, spec
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader

FEEDS = "/api/feeds"


def claimed(reader: Reader) -> list[str]:
    """Let a run take all that is requested."""
    now = reader.clock()
    found = open_requests.claim_requests(
        reader.database, run_id="run", token="t", lease_seconds=60, limit=9, now=now
    )
    return [each.id for each in found]


def task(client: httpx.Client, id: str) -> dict[str, Any]:
    answer = client.get(f"/api/tasks/{id}")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def test_a_known_feed_is_subscribed_at_once_with_title_and_folder(reader: Reader) -> None:
    ann(reader, a=2)
    bob = reader.user("bob")
    given = {"url": "https://a.example/a", "title": "Mine", "folder": "News", "interval": 900}
    for _ in range(2):
        answer = bob.client.post(FEEDS, json=given)
        assert answer.status_code == 200
        assert answer.json() == {
            "status": "known",
            "feed_id": "a",
            "task_id": None,
            "delay_seconds": 0,
            "held_until": None,
            "waiting": 0,
            "waits_until": None,
        }
    (feed,) = bob.client.get(FEEDS).json()["feeds"]
    assert [feed[name] for name in ("title", "folder", "interval", "unread")] == ["Mine", "News", 900, 2]


def test_a_new_address_is_queued_and_its_task_is_followed(reader: Reader) -> None:
    user = ann(reader)
    first = user.client.post(FEEDS, json={"url": "new.example/feed"})
    assert first.status_code == 202
    assert (first.json()["status"], first.json()["feed_id"]) == ("queued", None)
    id = first.json()["task_id"]
    assert user.client.post(FEEDS, json={"url": "new.example/feed"}).json()["task_id"] == id
    assert (task(user.client, id)["state"], task(user.client, id)["result"]) == ("queued", None)
    assert claimed(reader) == [id]
    assert task(user.client, id)["state"] == "running"
    running = user.client.post(FEEDS, json={"url": "https://new.example/feed"})
    assert running.status_code == 202
    assert running.json() == first.json() | {"status": "already_running", "delay_seconds": 0}
    reader.clock.pass_(seconds=3)
    failed = {"outcome": "failed", "error_kind": "not_a_feed", "error": "No feed.", "milliseconds": 3000}
    answer = open_requests.RequestResult(id=id, result=failed)
    open_requests.answer_requests(reader.database, "t", [answer], now=reader.clock())
    done = task(user.client, id)
    assert (done["kind"], done["state"], done["url"]) == ("find", "done", "https://new.example/feed")
    assert done["finished_at"] == instant(reader.clock())
    assert {name: done["result"][name] for name in failed} == failed
    assert done["result"]["what_to_do"]
    fresh = reader.signed_in(user.id).client
    assert task(fresh, id) == done
    reader.clock.pass_(hours=25)
    assert reader.signed_in(user.id).client.get(f"/api/tasks/{id}").status_code == 404


def test_a_known_feed_that_was_never_visited_is_queued_and_subscribed(reader: Reader) -> None:
    register(reader.database, spec("a"))
    change(reader.database, "UPDATE feeds SET listed = 0, registered = 0")
    user = reader.user("ann")
    answer = user.client.post(FEEDS, json={"url": "https://a.example/a"})
    assert answer.status_code == 202
    assert (answer.json()["status"], answer.json()["feed_id"]) == ("queued", "a")
    assert task(user.client, answer.json()["task_id"])["kind"] == "first"
    assert claimed(reader) == [answer.json()["task_id"]]
    running = reader.user("bob").client.post(FEEDS, json={"url": "https://a.example/a"})
    assert running.json() == answer.json() | {"status": "already_running", "delay_seconds": 0}
    assert [each["health"]["status"] for each in user.client.get(FEEDS).json()["feeds"]] == ["new"]


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("http://127.0.0.1/feed", "address_refused"),
        ("http://10.0.0.1/feed", "address_refused"),
        ("http://localhost/feed", "address_refused"),
        ("http://ada:secret@new.example/feed", "address_refused"),
        ("ftp://new.example/feed", "address_refused"),
        ("file:///etc/passwd", "address_refused"),
        ("https://new.example/\n", "invalid_request"),
        ("https://new.example/" + "x" * 10_000, "invalid_request"),
        ("", "invalid_request"),
        (None, "invalid_request"),
        (5, "invalid_request"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_once(reader: Reader, url: object, kind: str) -> None:
    user = ann(reader)
    answer = user.client.post(FEEDS, json={"url": url})
    assert answer.status_code == 422
    assert answer.json()["kind"] == kind
    assert "secret" not in answer.text
    assert user.client.get(FEEDS).json()["feeds"] == []
    assert claimed(reader) == []


def test_sixty_new_addresses_in_an_hour_are_searched_and_the_others_wait(reader: Reader) -> None:
    ann(reader)
    reader.clock.pass_(seconds=1)
    user = reader.user("bob")
    answers = [user.client.post(FEEDS, json={"url": f"new.example/{n}"}).json() for n in range(62)]
    turn = instant(reader.clock() + timedelta(hours=1))
    waits = {(each["waiting"], each["waits_until"], each["held_until"]) for each in answers}
    assert waits == {(0, None, None), (1, turn, turn), (2, turn, turn)}
    assert user.client.get(f"/api/tasks/{answers[-1]['task_id']}").json()["begins_at"] == turn


def test_a_refresh_is_queued_joined_and_running(reader: Reader) -> None:
    user = ann(reader, a=1)
    bob = reader.user("bob")
    subscribe(reader.database, bob.id, "a")
    first = user.client.post(f"{FEEDS}/a/refresh")
    assert first.status_code == 202
    assert first.json()["status"] == "queued"
    assert bob.client.post(f"{FEEDS}/a/refresh").json() == first.json()
    id = first.json()["task_id"]
    assert task(bob.client, id) == task(user.client, id)
    assert claimed(reader) == [id]
    again = user.client.post(f"{FEEDS}/a/refresh")
    assert again.json() == {"status": "already_running", "task_id": id, "delay_seconds": 0}
    assert task(user.client, id)["kind"] == "refresh"


def test_a_held_host_says_until_when(reader: Reader) -> None:
    user = ann(reader, a=1)
    until = reader.clock() + timedelta(minutes=10)
    reader.database.query(
        "INSERT INTO hosts (host, hold_until, reason) VALUES ('a.example', ?, '429')", [instant(until)]
    )
    answer = user.client.post(f"{FEEDS}/a/refresh")
    assert answer.status_code == 409
    problem = answer.json()
    assert (problem["kind"], problem["until"]) == ("feed_on_hold", instant(until))
    assert answer.headers["retry-after"] == "600"
    assert "a.example" in problem["detail"]


def test_a_feed_that_is_switched_off_cannot_be_refreshed(reader: Reader) -> None:
    user = ann(reader, a=1)
    reader.database.query("UPDATE feeds SET enabled = 0")
    answer = user.client.post(f"{FEEDS}/a/refresh")
    assert answer.status_code == 409
    assert answer.json()["kind"] == "conflict"


def test_on_d1_a_refresh_and_a_task_are_one_request_and_a_subscription_two(reader: Reader) -> None:
    user = ann(reader, a=1)
    remote, database = as_on_d1(reader)
    client = remote.client(authorization=f"Bearer {user.token}")
    answer = client.post(f"{FEEDS}/a/refresh").json()
    assert answer["delay_seconds"] == 30
    assert database.requests == 1
    assert client.get(f"/api/tasks/{answer['task_id']}").status_code == 200
    assert database.requests == 2
    assert client.post(FEEDS, json={"url": "https://a.example/a"}).json()["status"] == "known"
    assert database.requests == 4
