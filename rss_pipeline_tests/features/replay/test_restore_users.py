"""The users' part comes back with a lost database: feeds, folders, read states, stars; no more than that."""

import gzip
import json
import os
import random
import signal
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.replay.restore import plan_subscriptions
from rss_pipeline.reader.accounts.users import remove_user
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.backups.user_states import KeptSubscription, user_key
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.subscriptions.chosen import EVERYTHING, Chosen, Shown
from rss_pipeline.storage.subscriptions.item_states import mark_items, mark_shown, star_items
from rss_pipeline.storage.subscriptions.subscriptions import change_address
from rss_pipeline_tests.features.replay.replays import drop_database, restored
from rss_pipeline_tests.reader.kept_users import (
    FEEDS,
    MANY,
    USERS,
    act,
    add_subscribed,
    back_up,
    change,
    item_ids,
    seen,
    serve,
    subscribe_feeds,
)
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer

pytestmark = pytest.mark.slow


@EVERYWHERE
def test_each_user_has_the_same_lists_counts_and_stars_after_the_database_was_lost(
    place: Pipeline, server: FeedServer
) -> None:
    serve(place, server)
    chance = random.Random(16)
    met: dict[str, set[object]] = {
        name: set()
        for name in (
            "is_read",
            "starred_at",
            "folder",
            "wished_interval",
            "full_text",
            "last_read_at",
            "leads",
        )
    }
    for _ in range(6 if place.settings.database.is_here else 2):
        for _ in range(25):
            act(place, chance.choice(USERS), chance)
        before = seen(place)
        back_up(place)
        drop_database(place)

        result = restored(place)

        assert result.is_whole, result
        assert (result.users.users, result.users.stars_lost) == (len(USERS), 0)
        assert seen(place) == before
        for name, values in met.items():
            rows = before["items" if name in before["items"][0] else "subscriptions"]
            values |= {row[name] for row in rows}
    assert all(len(values) > 1 for values in met.values()), met


def test_items_of_documents_after_the_backup_are_unread(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    change(pipeline, "ada", *mark_shown("ada", Shown(up_to=EVERYTHING)))
    some = mark_items("ben", Chosen.by_ids(item_ids(pipeline)[:3]), is_read=True)
    change(pipeline, "ben", *some)
    back_up(pipeline)
    before = {user: readers.unread(pipeline.database, user) for user in USERS}
    assert before["ada"] == dict.fromkeys(FEEDS, 0)
    server.route("127.0.0.3", "/feed", Answer(body=rss("e", "new")))
    pipeline.poll(all_feeds=True)
    drop_database(pipeline)

    assert restored(pipeline).is_whole

    for user in USERS:
        expected = before[user] | {"listed": before[user]["listed"] + 1}
        assert readers.unread(pipeline.database, user) == expected


def test_what_was_read_stays_read_when_only_a_later_document_has_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    change(pipeline, "ada", *mark_shown("ada", Shown(up_to=EVERYTHING)))
    back_up(pipeline)
    before = seen(pipeline)
    [*old, newest] = pipeline.backups("large")
    pipeline.objects.delete_many(old)
    drop_database(pipeline)

    assert restored(pipeline).is_whole
    mine = {row["id"]: row["is_read"] for row in before["items"] if row["user_id"] == "ada"}
    found = {row["id"]: row["is_read"] for row in seen(pipeline)["items"] if row["user_id"] == "ada"}
    assert len(mine) > len(found) > len(MANY) / 2, newest
    assert set(found.values()) == {1}


def test_a_feed_that_only_users_know_is_visited_again(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    url = server.route("127.0.0.9", "/feed", Answer(body=rss("first")))
    add_subscribed(pipeline, "never-visited", url)
    subscribe_feeds(pipeline, "ada", "never-visited")
    back_up(pipeline)
    pipeline.feeds.clear()
    pipeline.write_registry()
    drop_database(pipeline)
    result = restored(pipeline)
    assert (result.is_whole, result.users.new_feeds) == (True, ["never-visited"])
    pipeline.clock.turn(hours=3)
    server.requests.clear()

    pipeline.poll()

    assert {request.host for request in server.requests} == {f"127.0.0.{n}" for n in (2, 3, 4, 9)}
    assert readers.unread(pipeline.database, "ada")["never-visited"] == 1


def test_a_feed_has_the_address_that_a_user_gave_it_last(pipeline: Pipeline, server: FeedServer) -> None:
    """Once no document came from there yet, so that its user's backup alone knows it; once that is older."""
    serve(pipeline, server)
    new = [server.route(f"127.0.0.{n}", "/new", Answer(body=rss(f"new-{n}"))) for n in (8, 9)]

    def move(url: str) -> None:
        host = urlsplit(url).hostname or ""
        changing = change_address("ada", "alone", url=url, host=host, now=pipeline.clock())
        change(pipeline, "ada", *changing)
        assert pipeline.feed("alone")["url"] == url

    move(new[0])
    back_up(pipeline)
    before = seen(pipeline)
    drop_database(pipeline)
    assert restored(pipeline).is_whole
    assert pipeline.feed("alone")["url"] == new[0]
    assert seen(pipeline) == before
    pipeline.poll()
    assert "new-8" in pipeline.guids("alone")

    move(new[1])
    pipeline.poll()
    assert "new-9" in pipeline.guids("alone")
    drop_database(pipeline)
    assert restored(pipeline).is_whole
    assert pipeline.feed("alone")["url"] == new[1]


def test_a_restored_user_logs_in_once_a_password_is_set(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    pipeline.database.query("UPDATE users SET password_hash = 'a hash of a secret' WHERE id = 'ada'")
    back_up(pipeline)
    drop_database(pipeline)
    version = pipeline.rows("SELECT state_version FROM users WHERE id = 'ada'")
    assert version == []
    restored(pipeline)
    [row] = pipeline.rows("SELECT password_hash, state_version FROM users WHERE id = 'ada'")
    assert row["password_hash"] == users.NO_PASSWORD
    assert row["state_version"] > 1_000, "an answer that a client has kept must not pass for a new one"
    [backup] = pipeline.objects.list("state/users/ada")
    body = pipeline.objects.get(backup.key)
    assert body is not None
    assert b"hash" not in gzip.decompress(body[0])


def test_users_that_the_database_has_stay_as_they_are(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    change(pipeline, "ada", *mark_shown("ada", Shown(up_to=EVERYTHING)))
    before = seen(pipeline), pipeline.rows("SELECT * FROM users ORDER BY id")
    for _ in range(2):
        result = restored(pipeline)
        assert (result.is_whole, result.users.users, result.users.known) == (True, 0, 3)
        assert (seen(pipeline), pipeline.rows("SELECT * FROM users ORDER BY id")) == before


def test_who_was_added_again_under_the_name_is_not_mixed_with_the_one_before(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    before = seen(pipeline)
    drop_database(pipeline)
    users.insert(pipeline.database, id="other", name="ada", password_hash="x", now=pipeline.clock())
    result = restored(pipeline)
    [(key, reason)] = result.users.problems
    assert (result.is_whole, key) == (False, user_key("ada"))
    assert "rss-pipeline user remove ada" in reason
    assert readers.unread(pipeline.database, "other") == {}

    remove_user(pipeline.database, pipeline.objects, name="ada", clock=pipeline.clock)
    assert restored(pipeline).is_whole
    assert seen(pipeline) == before


BROKEN = {
    "empty": b"",
    "no-gzip": b"state",
    "cut-off": gzip.compress(b'{"format":"rss_pipeline user"}\n' * 99)[:-9],
    "foreign": gzip.compress(b'{"format":"another"}\n'),
    "no-json": gzip.compress(b"\xff\n"),
    "deep": gzip.compress(b"[" * 99_999 + b"\n"),
    "bomb": gzip.compress(b"0" * 30_000_000),
    "empty-inside": gzip.compress(b""),
}


def test_a_broken_or_foreign_object_is_one_problem_and_harms_no_other_user(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    before = seen(pipeline)
    for name, broken in BROKEN.items():
        pipeline.objects.put(user_key(name), broken, content_type="application/gzip")
    drop_database(pipeline)
    result = restored(pipeline)
    assert sorted(key for key, _ in result.users.problems) == sorted(map(user_key, BROKEN))
    assert (result.is_whole, result.users.users) == (False, 3)
    assert seen(pipeline) == before


def test_a_state_that_is_wrong_near_its_end_is_not_used_at_all(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    body = pipeline.objects.get(user_key("ben"))
    assert body is not None
    lines = gzip.decompress(body[0]).splitlines()
    mistakes = {
        user_key("ben"): [*lines, b'{"unread":[7]}'],
        user_key("dan"): lines,
        "state/users/else.txt": lines,
    }
    for key, wrong in mistakes.items():
        packed = gzip.compress(b"\n".join(wrong) + b"\n")
        pipeline.objects.put(key, packed, content_type="application/gzip")
    drop_database(pipeline)
    result = restored(pipeline)
    assert sorted(key for key, _ in result.users.problems) == sorted(mistakes)
    assert [row["id"] for row in pipeline.rows("SELECT id FROM users ORDER BY id")] == ["ada", "cyd"]


def test_a_backup_opens_no_feed_that_its_owner_closed_meanwhile(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    for feed in pipeline.feeds:
        feed["shared"] = feed["id"] == "large"
    pipeline.write_registry()
    drop_database(pipeline)
    result = restored(pipeline)
    assert {reason.split()[0] for _, reason in result.users.problems} == {"listed"}
    assert set(readers.unread(pipeline.database, "ada")) == {"large", "alone"}


def test_stars_of_items_that_no_backup_has_are_counted(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    [old] = pipeline.rows("SELECT id FROM items WHERE guid = 'a'")
    change(pipeline, "ada", *star_items("ada", Chosen.by_ids([old["id"]]), at=pipeline.clock()))
    back_up(pipeline)
    pipeline.objects.delete_many(pipeline.backups("listed")[:-1])
    drop_database(pipeline)
    result = restored(pipeline)
    assert (result.is_whole, result.users.stars, result.users.stars_lost) == (True, 0, 1)


def test_a_restore_that_was_killed_goes_on_with_its_users(
    pipeline: Pipeline, server: FeedServer, prepared: Prepared
) -> None:
    serve(pipeline, server)
    chance = random.Random(16)
    for user in USERS * 8:
        act(pipeline, user, chance)
    back_up(pipeline)
    before = seen(pipeline)
    drop_database(pipeline)
    module = "rss_pipeline_tests.features.replay.dying_restore"
    later = {**os.environ, "RESTORE_HOURS": "9"}
    died = prepared.start(module, str(pipeline.settings.home), "users", "1", environment=later)
    assert died.wait() == -signal.SIGKILL
    known = len(pipeline.rows("SELECT id FROM users"))
    # One that was left half-way.
    [half] = users_left(pipeline, known)
    pipeline.database.query(
        "INSERT INTO users (id, name, password_hash, created_at, backed_up_version) VALUES (?, ?, '', ?, -1)",
        [half, half, instant(pipeline.clock())],
    )
    assert half not in users.to_back_up(pipeline.database, all_users=True), "it would replace what is whole"
    result = restored(pipeline)
    assert (result.is_whole, result.users.known, result.users.users) == (True, known, 3 - known)
    after = seen(pipeline)
    assert {**after, "users": []} == {**before, "users": []}


def users_left(pipeline: Pipeline, known: int) -> list[str]:
    there = {row["id"] for row in pipeline.rows("SELECT id FROM users")}
    return sorted(set(USERS) - there)[:1]


def test_a_removed_user_does_not_come_back(pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server)
    back_up(pipeline)
    remove_user(pipeline.database, pipeline.objects, name="ben", clock=pipeline.clock)
    assert [info.key for info in pipeline.objects.list("state/")] == [user_key("ada"), user_key("cyd")]
    drop_database(pipeline)
    restored(pipeline)
    assert [row["id"] for row in pipeline.rows("SELECT id FROM users ORDER BY id")] == ["ada", "cyd"]


KEPT = KeptSubscription(
    feed_id="one",
    url="https://a.example/feed",
    title=None,
    folder=None,
    position=1,
    wished_interval=None,
    added_at="2026-03-02T12:00:00Z",
    known_until="",
    rest_is_read=True,
)


TAKEN = "2026-02-02T00:00:00Z"


def row(id: str, url: str, *, open: bool = True, visited: str = "2026-02-01T00:00:00Z") -> dict[str, object]:
    return {"id": id, "url": url, "open": int(open), "is_idle": 1, "last_visited_at": visited}


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([], ["one"]),
        ([row("one", "https://moved.example/feed")], ["one"]),
        ([row("now", "https://a.example/feed")], ["now"]),
        ([row("one", "https://a.example/feed#one"), row("now", "https://a.example/feed")], ["now"]),
        ([row("one", "https://a.example/feed", open=False)], []),
        ([row("now", "https://a.example/feed", open=False)], []),
    ],
)
def test_a_subscription_is_of_its_feed_or_of_the_one_that_has_its_url(
    stored: list[dict[str, object]], expected: list[str]
) -> None:
    plan = plan_subscriptions([KEPT], stored, taken_at=TAKEN)
    assert [each.feed_id for each in plan.subscriptions] == expected
    assert len(plan.refused) == 1 - len(expected)
    assert [feed.id for feed in plan.new] == ([] if stored else ["one"])


def test_a_changed_address_is_that_of_the_newer_backup_and_a_redirect_is_no_change() -> None:
    """`one` has the address of its last document; that of its user's backup is another one."""
    moved = replace(KEPT, requested_url=KEPT.url)
    elsewhere = row("one", "https://before.example/feed")
    later = row("one", "https://after.example/feed", visited="2026-02-03T00:00:00Z")
    in_use = {**elsewhere, "is_idle": 0}
    followed = replace(KEPT, requested_url="https://before.example/feed")
    cases = [
        (moved, elsewhere, [KEPT.url]),
        (moved, later, []),
        (moved, in_use, []),
        (followed, elsewhere, []),
        (KEPT, elsewhere, []),
    ]
    for kept, stored, expected in cases:
        plan = plan_subscriptions([kept], [stored], taken_at=TAKEN)
        assert [feed.url for feed in plan.changed] == expected
        assert [each.feed_id for each in plan.subscriptions] == ["one"]


@pytest.mark.parametrize("url", ["https://u:p@a.example/feed", "file:///etc/passwd", "https://a.example/#x"])
def test_no_backup_names_an_address_that_a_user_may_not(url: str) -> None:
    plan = plan_subscriptions([replace(KEPT, url=url), replace(KEPT, feed_id="two")], [], taken_at=TAKEN)
    assert [feed.id for feed in plan.new] == ["two"]
    assert len(plan.refused) == 1


def test_two_new_feeds_of_one_url_are_one_subscription() -> None:
    plan = plan_subscriptions([KEPT, replace(KEPT, feed_id="two")], [], taken_at=TAKEN)
    assert [feed.id for feed in plan.new] == [each.feed_id for each in plan.subscriptions] == ["one"]


def test_a_state_names_the_unread_items_or_the_read_ones_whichever_are_fewer(
    pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server)
    change(pipeline, "ada", *mark_shown("ada", Shown(up_to=EVERYTHING)))
    change(pipeline, "ben", *mark_items("ben", Chosen.by_ids(item_ids(pipeline)[:2]), is_read=True))
    back_up(pipeline)
    named = {}
    for user in ("ada", "ben"):
        found = pipeline.objects.get(user_key(user))
        assert found is not None
        lines = [json.loads(line) for line in gzip.decompress(found[0]).splitlines()]
        named[user] = sum(len(line.get("read", line.get("unread", ()))) for line in lines)
    assert named["ada"] == 0
    assert named["ben"] < 20


@pytest.mark.parametrize(
    ("kept", "expected"),
    [("{}", "newest"), ('{"order":"published"}', "published"), ('{"order":"oldest"}', "oldest")],
)
def test_a_backup_from_before_there_were_two_orders_keeps_the_one_by_arrival(
    pipeline: Pipeline, server: FeedServer, kept: str, expected: str
) -> None:
    serve(pipeline, server)
    change(pipeline, "ada", Statement("UPDATE users SET preferences = ? WHERE id = 'ada'", [kept]))
    back_up(pipeline)
    drop_database(pipeline)
    assert restored(pipeline).is_whole
    [row] = pipeline.database.query("SELECT preferences FROM users WHERE id = 'ada'").rows
    assert json.loads(row["preferences"])["order"] == expected
