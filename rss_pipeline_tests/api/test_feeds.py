"""The feeds of a user in the JSON API."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.storage.subscriptions.readers import arrive, subscribe
from rss_pipeline_tests.storage.values import NOW, change, claim_one, failed, feed_row, visit
from rss_pipeline_tests.support.counted import as_on_d1
from rss_pipeline_tests.support.reader import Reader, User

FEEDS = "/api/feeds"


def feed(user: User, id: str = "a") -> dict[str, Any]:
    feeds = {each["id"]: each for each in user.client.get(FEEDS).json()["feeds"]}
    found: dict[str, Any] = feeds[id]
    return found


def test_a_feed_is_listed_with_title_folder_unread_items_and_version(reader: Reader) -> None:
    user = ann(reader, a=3)
    subscribe(reader.database, reader.user("bob").id, "a")
    visit(reader.database, description="Of towns")
    found = feed(user)
    names = ("title", "description", "folder", "unread", "is_unread", "site_url", "last_read_at")
    assert {name: found[name] for name in names} == {
        "title": "A feed",
        "description": "Of towns",
        "last_read_at": None,
        "folder": None,
        "unread": 3,
        "is_unread": True,
        "site_url": "https://a.example/",
    }
    assert found["version"] == user.client.get(FEEDS).json()["version"] > 0
    assert found["health"]["status"] == "ok"
    assert found["health"]["reason"] is None
    assert found["next_visit"]["reason"] == "in an hour"


def test_of_a_feed_that_leads_into_a_private_network_no_one_learns_the_address(reader: Reader) -> None:
    """Its name may have been another's at first: users may not look names up in the operator's network."""
    user = ann(reader, a=1)
    task = user.client.post(f"{FEEDS}/a/refresh").json()["task_id"]
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    kind, error = "blocked_address", "intranet.example resolves to 10.1.2.3, a private address."
    change(reader.database, "UPDATE feeds SET last_error_kind = ?, last_error = ?", kind, error)
    change(
        reader.database,
        """UPDATE refresh_requests SET state = 'done', finished_at = requested_at, result = json_object(
          'outcome', 'failed', 'milliseconds', 5, 'error_kind', ?, 'error', ?)""",
        kind,
        error,
    )
    result = user.client.get(f"/api/tasks/{task}").json()["result"]
    health = feed(user)["health"]
    assert result["error_kind"] == health["error_kind"] == "blocked_address"
    assert result["error"] == health["reason"] == PRIVATE
    assert "10.1.2.3" not in user.client.get(FEEDS).text


def test_a_feed_that_fails_says_since_when_why_and_when_it_is_visited_next(reader: Reader) -> None:
    user = ann(reader, a=1)
    failed(reader.database, *claim_one(reader.database, "a"), now=NOW)
    health = feed(user)["health"]
    assert health["status"] == "failing"
    assert health["error_kind"] == "timeout"
    assert health["reason"] == "no answer within 30 s"
    assert health["failing_since"] == feed_row(reader.database)["failing_since"]
    assert health["summary"] == f"It fails since {health['failing_since']}: no answer within 30 s."
    visit = feed(user)["next_visit"]
    assert visit["summary"] == f"Next visit at {visit['at']}: in an hour."


def test_a_feed_that_is_not_visited_has_no_next_visit(reader: Reader) -> None:
    user = ann(reader, a=1)
    change(reader.database, "UPDATE feeds SET enabled = 0")
    assert feed(user)["health"]["status"] == "disabled"
    assert feed(user)["next_visit"] is None


def test_an_unchanged_list_is_answered_with_304_and_no_body(reader: Reader) -> None:
    user = ann(reader, a=1)
    first = user.client.get(FEEDS)
    assert first.headers["cache-control"] == "private, no-cache"
    again = user.client.get(FEEDS, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    changes: list[Callable[[], object]] = [
        lambda: arrive(reader.database, "a", "new"),
        lambda: user.client.post(f"{FEEDS}/a/mark-read", json={"up_to": feed(user)["version"]}),
        lambda: user.client.patch(f"{FEEDS}/a", json={"title": "Mine"}),
        lambda: failed(reader.database, *claim_one(reader.database, "a"), now=NOW),
    ]
    for happens in changes:
        tag = user.client.get(FEEDS).headers["etag"]
        happens()
        assert user.client.get(FEEDS, headers={"If-None-Match": tag}).status_code == 200


def test_updated_feeds_are_those_with_items_that_came_since(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)

    def updated(since: int) -> list[str]:
        found = user.client.get(f"{FEEDS}/updated", params={"since": since}).json()
        assert found["version"] >= since
        return [each["id"] for each in found["feeds"]]

    seen = user.client.get(FEEDS).json()["version"]
    assert updated(seen) == []
    assert updated(0) == ["a", "b"]
    arrive(reader.database, "b", "new")
    assert updated(seen) == ["b"]
    assert updated(feed(user, "b")["version"]) == []


def test_updated_feeds_without_a_version_are_those_with_unread_items_the_newest_first(reader: Reader) -> None:
    user = ann(reader, a=1, b=1, c=1)
    arrive(reader.database, "a", "new")

    def updated() -> list[str]:
        found = user.client.get(f"{FEEDS}/updated").json()
        assert found["version"] == user.client.get(FEEDS).json()["version"]
        return [each["id"] for each in found["feeds"]]

    assert updated() == ["a", "c", "b"]
    user.client.post(f"{FEEDS}/c/mark-read", json={"up_to": feed(user, "c")["version"]})
    assert updated() == ["a", "b"]
    user.client.post("/api/mark-read", json={"up_to": feed(user)["version"]})
    assert updated() == []


def test_a_feed_says_when_an_item_of_it_was_last_marked_read(reader: Reader) -> None:
    user = ann(reader, a=3, b=1)

    def last_read() -> tuple[str | None, str | None]:
        return feed(user)["last_read_at"], feed(user, "b")["last_read_at"]

    def marked(path: str, **values: object) -> str:
        reader.clock.pass_(minutes=1)
        user.client.post(path, json=values).raise_for_status()
        return instant(reader.clock())

    items = user.client.get(f"{FEEDS}/a/items").json()["items"]
    one = {"ids": [items[0]["id"]]}
    marked("/api/items/mark", **one, is_starred=True)
    marked("/api/items/mark", **one, is_read=False)
    assert last_read() == (None, None)
    by_item = marked("/api/items/mark", **one, is_read=True)
    marked("/api/items/mark", **one, is_read=True)
    assert last_read() == (by_item, None), "what was read is not read again"
    marked("/api/items/mark", **one, is_read=False)
    assert last_read() == (by_item, None)
    by_feed = marked(f"{FEEDS}/a/mark-read", up_to=feed(user)["version"])
    marked(f"{FEEDS}/a/mark-read", up_to=feed(user)["version"])
    assert last_read() == (by_feed, None)
    by_all = marked("/api/mark-read", up_to=feed(user, "b")["version"])
    assert last_read() == (by_feed, by_all)


def test_a_feed_gets_a_title_a_folder_a_place_and_an_interval_of_the_user(reader: Reader) -> None:
    user = ann(reader, a=1, b=1)
    answer = user.client.patch(
        f"{FEEDS}/a", json={"title": "Mine", "folder": "News", "position": 7, "interval": 900}
    )
    assert answer.status_code == 200
    assert answer.json() == feed(user)
    assert [feed(user)[name] for name in ("title", "own_title", "folder", "position", "interval")] == [
        "Mine",
        "Mine",
        "News",
        7,
        900,
    ]
    found = user.client.get(FEEDS).json()
    assert found["folders"] == ["News"]
    assert [each["id"] for each in found["feeds"]] == ["b", "a"]
    assert feed_row(reader.database)["wished_interval"] == 900
    assert user.client.patch(f"{FEEDS}/a", json={}).json()["title"] == "Mine"
    back = user.client.patch(f"{FEEDS}/a", json={"title": None, "folder": None, "interval": None}).json()
    assert [back[name] for name in ("title", "folder", "interval", "position")] == ["A feed", None, None, 7]


@pytest.mark.parametrize(
    "changes",
    [
        {"interval": 899},
        {"interval": 86_401},
        {"interval": 900.5},
        {"interval": "900"},
        {"title": ""},
        {"title": "a\nb"},
        {"title": "x" * 501},
        {"folder": "\ud800"},
        {"position": -1},
        {"position": None},
        {"name": "a"},
        [],
        None,
    ],
)
def test_a_change_that_cannot_be_made_is_refused_and_changes_nothing(reader: Reader, changes: object) -> None:
    user = ann(reader, a=1)
    before = user.client.get(FEEDS).content
    answer = user.client.patch(f"{FEEDS}/a", content=json.dumps(changes))
    assert answer.status_code == 422
    assert answer.json()["kind"] == "invalid_request"
    assert user.client.get(FEEDS).content == before


def test_an_unsubscribed_feed_is_gone_from_the_list_with_its_items(reader: Reader) -> None:
    user = ann(reader, a=2, b=1)
    assert user.client.delete(f"{FEEDS}/a").status_code == 204
    assert [each["id"] for each in user.client.get(FEEDS).json()["feeds"]] == ["b"]
    assert [each["feed_id"] for each in user.client.get("/api/items").json()["items"]] == ["b"]
    again = user.client.delete(f"{FEEDS}/a")
    assert again.status_code == 404
    assert again.json()["kind"] == "not_found"


def test_on_d1_the_list_of_feeds_is_one_request(reader: Reader) -> None:
    user = ann(reader, a=2, b=1)
    remote, database = as_on_d1(reader)
    client = remote.client(authorization=f"Bearer {user.token}")
    for path in (FEEDS, f"{FEEDS}/updated?since=5"):
        database.requests = 0
        assert len(client.get(path).json()["feeds"]) == 2
        assert database.requests == 1


def test_a_feed_on_hold_says_what_is_on_hold_and_when_the_hold_ends(reader: Reader) -> None:
    user = ann(reader, a=1)
    before = feed(user)["next_visit"]
    reader.database.query("UPDATE feeds SET next_fetch_at = '2026-01-01T00:00:00Z'")
    reader.database.query(
        "INSERT INTO hosts (host, hold_until, reason) SELECT host, '2099-01-01T00:00:00Z', '429' FROM feeds"
    )
    held = feed(user)["next_visit"]
    assert held["at"] == "2099-01-01T00:00:00Z" != before["at"]
    assert held["reason"] == "its host is on hold"
    why = "a user adds at most 60 new addresses an hour; this one has its turn then"
    reader.database.query(
        "INSERT INTO feed_holds (feed_id, host, hold_until, reason) SELECT id, '', '2099-01-02T00:00:00Z', ?"
        " FROM feeds",
        [why],
    )
    held = feed(user)["next_visit"]
    assert (held["at"], held["reason"]) == ("2099-01-02T00:00:00Z", why)
