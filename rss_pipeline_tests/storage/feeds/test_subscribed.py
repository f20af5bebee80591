"""Feeds that feeds.yaml lists, and feeds that users subscribe to: neither undoes what the other wants."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Access, FeedSpec, NextVisit
from rss_pipeline.errors import ForgetRefused
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import feeds, forget, registered
from rss_pipeline.storage.feeds.registered import registry_changes, registry_rows
from rss_pipeline.storage.feeds.subscribed import NewFeed, add_feeds, shown_url
from rss_pipeline.storage.reports.overview import feed_health, overview
from rss_pipeline.storage.subscriptions import subscriptions as subscribing
from rss_pipeline.storage.subscriptions.chosen import Chosen
from rss_pipeline.storage.subscriptions.item_states import mark_items, note_reading, star_items
from rss_pipeline.storage.subscriptions.subscriptions import Wanted, edit
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    claim,
    claim_one,
    feed_row,
    ids,
    item,
    register,
    spec,
    unchanged,
    visit,
)
from rss_pipeline_tests.support.examples import examples

LATER = NOW + HOUR
HIDDEN: dict[str, Any] = {"access": Access(password="x")}


def user(database: Database, *names: str) -> None:
    for name in names:
        database.query(
            "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, '', ?)",
            [name, name, instant(NOW)],
        )


def subscribe(database: Database, name: str, id: str, *, wish: int | None = None) -> None:
    new = NewFeed(id=id, url=f"https://{id}.example/{id}", host=f"{id}.example")
    wanted = [Wanted(feed_id=id, folder="Mine", wished_interval=wish)]
    database.batch([*add_feeds([new], now=NOW), *subscribing.subscribe(name, wanted, at=NOW)])


def leave(database: Database, name: str, id: str, *, now: timedelta = timedelta(0)) -> None:
    database.batch(subscribing.unsubscribe(name, [id], at=NOW + now))


def subscriptions(database: Database) -> set[tuple[str, str]]:
    rows = database.query("SELECT user_id, feed_id FROM subscriptions").rows
    return {(row["user_id"], row["feed_id"]) for row in rows}


def closing(database: Database, *specs: FeedSpec) -> tuple[str, ...]:
    """Make these the registry, where feeds that are not open have the public form `ID-public`."""
    rows = registry_rows(database)
    changes = registry_changes(specs, rows, path="feeds.yaml")
    closed = {
        id: NewFeed(id=f"{id}-public", url=f"https://{id}.example:443/{id}", host=f"{id}.example")
        for id in (*(spec.id for spec in (*changes.added, *changes.updated)), *changes.unregistered)
    }
    return registered.apply(database, changes, now=LATER, closed=closed)


def test_a_feed_that_somebody_subscribes_to_is_due_and_not_listed(database: Database) -> None:
    user(database, "ada")
    subscribe(database, "ada", "a", wish=1800)
    row = feed_row(database)
    assert (row["registered"], row["listed"], row["next_fetch_at"]) == (1, 0, instant(NOW))
    found = claim(database)
    assert ids(found) == ["a"]
    assert (found.feeds[0].wished_interval, found.feeds[0].auto_is_wished) == (timedelta(minutes=30), False)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.example/x", "https://a.example/x"),
        ("https://a.example:443/x?y=:443", "https://a.example/x?y=:443"),
        ("http://a.example:80", "http://a.example"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("http://[2001:db8::443]/", "http://[2001:db8::443]/"),
        ("HTTPS://a.example:8443/x", "https://a.example:8443/x"),
        ("https://a.example:80/x", "https://a.example:80/x"),
    ],
)
def test_users_see_a_url_without_its_default_port(url: str, shown: str) -> None:
    assert shown_url(url) == shown


def test_the_shortest_wish_counts_and_a_reader_without_one_leaves_it_to_auto(database: Database) -> None:
    user(database, "ada", "bob", "eve")
    subscribe(database, "ada", "a", wish=7200)
    subscribe(database, "bob", "a", wish=3600)
    assert feed_row(database)["wished_interval"] == 3600
    leave(database, "bob", "a")
    assert feed_row(database)["wished_interval"] == 7200
    assert not feeds.feeds_by_id(database, ["a"])["a"].auto_is_wished
    subscribe(database, "eve", "a")
    assert feeds.feeds_by_id(database, ["a"])["a"].auto_is_wished
    leave(database, "eve", "a")
    register(database, spec("a"))
    assert feeds.feeds_by_id(database, ["a"])["a"].auto_is_wished, "feeds.yaml says auto"
    leave(database, "ada", "a")
    found = feeds.feeds_by_id(database, ["a"])["a"]
    assert (found.wished_interval, found.auto_is_wished) == (None, False)


def test_a_wish_brings_the_next_visit_nearer_but_not_that_of_a_feed_that_fails(database: Database) -> None:
    user(database, "ada")
    for failures, due in ((0, NOW + timedelta(minutes=30)), (1, NOW + DAY)):
        subscribe(database, "ada", "a")
        database.query(
            "UPDATE feeds SET next_fetch_at = ?, consecutive_failures = ?", [instant(NOW + DAY), failures]
        )
        leave(database, "ada", "a")
        subscribe(database, "ada", "a", wish=1800)
        assert feed_row(database)["next_fetch_at"] == instant(due)
        leave(database, "ada", "a")


def test_the_reason_of_the_next_visit_follows_a_changed_wish(database: Database) -> None:
    user(database, "ada")

    def wish(interval: int | None) -> tuple[object, object]:
        database.batch(edit("ada", "a", {"wished_interval": interval}, at=NOW))
        row = feed_row(database)
        return row["next_fetch_at"], row["schedule_reason"]

    subscribe(database, "ada", "a")
    database.query(
        "UPDATE feeds SET next_fetch_at = ?, schedule_reason = 'every hour'", [instant(NOW + HOUR)]
    )
    assert wish(7200) == (instant(NOW + HOUR), "every hour")
    soon = instant(NOW + timedelta(minutes=15))
    assert wish(900) == (soon, "sooner than planned: wished by a subscriber")
    assert wish(None) == (soon, "planned before a subscriber's wish was changed")
    database.query("UPDATE feeds SET consecutive_failures = 1, schedule_reason = 'failed once'")
    assert wish(900) == (soon, "failed once")


def test_a_wish_brings_no_visit_that_the_publisher_does_not_want(database: Database) -> None:
    user(database, "ada", "bob")
    subscribe(database, "ada", "a")
    planned = NextVisit(at=NOW + DAY, reason="once a day", not_before=NOW + 2 * HOUR)
    unchanged(database, *claim_one(database), next=planned)
    subscribe(database, "bob", "a", wish=1800)
    assert feed_row(database)["next_fetch_at"] == instant(NOW + 2 * HOUR)


def test_who_leaves_and_comes_back_causes_no_visit(database: Database) -> None:
    user(database, "ada")
    subscribe(database, "ada", "a")
    visit(database, [item("1")])
    for _ in range(3):
        leave(database, "ada", "a")
        assert ids(claim(database, now=NOW + 2 * HOUR)) == []
        subscribe(database, "ada", "a")
    assert ids(claim(database, now=NOW)) == []
    assert feed_row(database)["next_fetch_at"] == instant(NOW + HOUR)


def test_a_feed_that_leaves_feeds_yaml_goes_on_for_its_subscribers_without_its_options(
    database: Database,
) -> None:
    user(database, "ada")
    mine = spec(
        "a",
        title="Mine",
        folder="News",
        interval=HOUR,
        key="link",
        keep_days=9,
        enabled=False,
    )
    register(database, mine, spec("b"))
    subscribe(database, "ada", "a")
    changes = registry_changes([], registry_rows(database), path="")
    assert registered.apply(database, changes, now=LATER) == ("a",)
    row = feed_row(database)
    assert (row["registered"], row["listed"], row["enabled"], row["next_fetch_at"]) == (
        1,
        0,
        1,
        instant(LATER),
    )
    assert [row[name] for name in ("interval", "registered_title", "folder")] == [None] * 3
    assert (row["item_key"], row["keep_days"], row["unused_since"]) == ("link", 9, None)
    assert feed_row(database, "b")["registered"] == 0
    assert registry_changes([], registry_rows(database), path="").is_empty
    whole = overview(database, now=NOW)
    assert (whole.registered, whole.subscribed, whole.unregistered, whole.unused) == (1, 1, 1, 0)


def test_a_feed_that_is_subscribed_first_and_listed_then_takes_the_files_options(database: Database) -> None:
    user(database, "ada")
    subscribe(database, "ada", "a")
    visit(database, [item("1")])
    changes = register(database, spec("a", title="Mine", interval=2 * HOUR))
    assert [one.id for one in changes.updated] == ["a"]
    row = feed_row(database)
    assert (row["listed"], row["title"], row["interval"]) == (1, "Mine", 7200)
    assert subscriptions(database) == {("ada", "a")}
    leave(database, "ada", "a")
    assert (feed_row(database)["registered"], feed_row(database)["unused_since"]) == (1, None)


def test_a_subscription_that_came_with_the_list_goes_with_it_unless_somebody_has_chosen_the_feed(
    database: Database,
) -> None:
    user(database, "ada", "bob")
    own = ("starred", "titled", "moved", "wished", "by address", "of bob", "of before")
    listed = {name: f"f{n}" for n, name in enumerate((*own, "read", "in its folder", "without a folder"))}
    specs = [spec(id, folder="News" if "folder" in name else None) for name, id in listed.items()]
    register(database, spec("stays"), *specs)
    rows = database.query("SELECT id, folder FROM feeds").rows
    came = [Wanted(feed_id=row["id"], folder=row["folder"], origin="list") for row in rows]
    for name in ("ada", "bob"):
        database.batch(subscribing.subscribe(name, came, at=NOW))
    for id in listed.values():
        visit(database, [item("1")], id=id)
    arrived = {row["feed_id"]: int(row["arrived"]) for row in database.query("SELECT * FROM items").rows}
    changes: dict[str, dict[str, object]] = {
        "titled": {"title": "x"},
        "moved": {"folder": "Mine"},
        "wished": {"wished_interval": 3600},
        "without a folder": {"folder": None},
        "read": {"position": 7},
    }
    for name, change in changes.items():
        database.batch(edit("ada", listed[name], change, at=NOW))
    for name, marks in (("starred", star_items), ("read", note_reading)):
        done = marks("ada", Chosen.by_numbers([arrived[listed[name]]]), at=NOW)
        database.batch(done if isinstance(done, list) else [done])
    database.batch(mark_items("ada", Chosen.by_numbers([arrived[listed["read"]]]), is_read=True))
    subscribe(database, "ada", listed["by address"])
    database.batch(subscribing.subscribe("bob", [Wanted(feed_id=listed["of bob"])], at=NOW))
    database.query("UPDATE subscriptions SET origin = NULL WHERE feed_id = ?", [listed["of before"]])
    before = {row["id"]: row["state_version"] for row in database.query("SELECT * FROM users").rows}

    registered.apply(database, registry_changes([spec("stays")], registry_rows(database), path=""), now=LATER)

    kept = {listed[name] for name in own}
    assert {feed for _, feed in subscriptions(database)} == {"stays", *kept}
    assert {name for name, feed in subscriptions(database) if feed in kept} == {"ada", "bob"}
    visited = {row["id"] for row in database.query("SELECT id FROM feeds WHERE registered = 1").rows}
    assert visited == {"stays", *kept}
    after = {row["id"]: row["state_version"] for row in database.query("SELECT * FROM users").rows}
    assert all(after[name] > before[name] for name in before), "clients see that feeds went"


def test_what_users_subscribe_to_is_not_lost_by_a_wrong_file(database: Database) -> None:
    user(database, "ada")
    for id in "abcdef":
        subscribe(database, "ada", id)
    register(database, spec("x"), spec("y"), spec("z"))
    changes = registry_changes([spec("x")], registry_rows(database), path="")
    assert (changes.registered_before, changes.unregistered, changes.is_suspicious) == (3, ("y", "z"), True)


@pytest.mark.parametrize("before", [{}, {**HIDDEN, "shared": True}])
def test_a_feed_that_is_closed_shows_its_subscribers_nothing_more_and_they_go_on_with_its_public_form(
    database: Database, before: dict[str, Any]
) -> None:
    """Somebody may have subscribed to an address without its password, before the file had that."""
    user(database, "ada", "bob")
    register(database, spec("a", **before))
    subscribe(database, "ada", "a", wish=3600)
    subscribe(database, "bob", "a")
    version = database.query("SELECT state_version FROM users WHERE id = 'ada'").rows[0]["state_version"]
    closing(database, spec("a", **HIDDEN))
    assert subscriptions(database) == {("ada", "a-public"), ("bob", "a-public")}
    public = feed_row(database, "a-public")
    assert (public["url"], public["needs_access"]) == ("https://a.example:443/a", 0)
    assert (public["registered"], public["listed"], public["wished_interval"]) == (1, 0, 3600)
    assert (feed_row(database)["registered"], feed_row(database)["wished_interval"]) == (1, None)
    kept = database.query("SELECT folder FROM subscriptions WHERE user_id = 'ada'").rows
    assert kept == [{"folder": "Mine"}]
    after = database.query("SELECT state_version FROM users WHERE id = 'ada'").rows[0]["state_version"]
    assert after == version + 1
    assert registry_changes([spec("a", **HIDDEN)], registry_rows(database), path="").is_empty


@pytest.mark.parametrize(
    "hidden",
    [HIDDEN, {"allow_private": True}, {"allow_private": True, "private_hosts": ("nas.lan",)}],
)
def test_a_shared_feed_that_leaves_feeds_yaml_is_requested_in_public_from_then_on(
    database: Database, hidden: dict[str, Any]
) -> None:
    user(database, "ada")
    shared = spec("a", **hidden, shared=True)
    closing(database, shared)
    subscribe(database, "ada", "a")
    closing(database, shared, spec("b"))
    assert subscriptions(database) == {("ada", "a")}
    assert closing(database, spec("b")) == ()
    assert subscriptions(database) == {("ada", "a-public")}
    row = feed_row(database)
    assert (row["registered"], row["unused_since"]) == (0, None), "it stays until it is forgotten"
    assert feed_row(database, "a-public")["allow_private"] == 0


def test_a_feed_that_somebody_subscribes_to_is_not_forgotten(database: Database) -> None:
    user(database, "ada")
    subscribe(database, "ada", "a")
    visit(database, [item("1")])
    with pytest.raises(ForgetRefused, match="subscribes"):
        forget.begin_forget(database, "a")
    assert overview(database, now=NOW).items == 1
    assert forget.unlisted(database) == []
    leave(database, "ada", "a")
    assert [row["id"] for row in forget.unlisted(database)] == ["a"]
    assert [row["health"] for row in feed_health(database)] == ["unused"]
    assert forget.begin_forget(database, "a")["items"] == 1
    assert forget.end_forget(database, "a") == 1


def test_an_empty_feed_that_was_left_keeps_its_back_off_until_its_time_is_over(database: Database) -> None:
    user(database, "ada")
    subscribe(database, "ada", "a")
    leave(database, "ada", "a")
    register(database, spec("b"))
    register(database)
    assert forget.empty(database) == ["b"]
    assert forget.due_unused_feeds(database, now=NOW + 7 * DAY - timedelta(seconds=1)) == []
    assert forget.due_unused_feeds(database, now=NOW + 7 * DAY) == ["a"]


@dataclass
class Expected:
    listed: set[str] = field(default_factory=set)
    hidden: set[str] = field(default_factory=set)
    wanted: set[tuple[str, str]] = field(default_factory=set)
    """User and address, whatever form it has."""


STEPS = st.one_of(
    st.tuples(
        st.just("sync"),
        st.dictionaries(st.sampled_from("abc"), st.sampled_from(["open", "hidden", "shared"])),
    ),
    st.tuples(
        st.sampled_from(["subscribe", "leave"]),
        st.tuples(st.sampled_from(["u", "v"]), st.sampled_from("abc")),
    ),
    st.tuples(st.sampled_from(["forget", "clean"]), st.sampled_from("abc")),
)


@pytest.mark.slow
@settings(
    max_examples=examples(150),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, max_size=12))
def test_in_whatever_order_they_come_the_file_and_the_users_have_what_they_want(
    sqlite: Database, steps: list[tuple[str, Any]]
) -> None:
    database = sqlite
    for table in ("subscriptions", "feeds", "users"):
        database.query(f"DELETE FROM {table}")
    user(database, "u", "v")
    expected = Expected()
    for days, (step, value) in enumerate(steps):
        _take(database, expected, step, value, now=timedelta(days=4 * days))
        _compare(database, expected)


def _take(database: Database, expected: Expected, step: str, value: Any, *, now: timedelta) -> None:
    if step == "sync":
        _sync(database, expected, value)
    elif step == "subscribe":
        name, id = value
        if id not in expected.hidden and not _has(database, name, id):
            # The public form is another feed while the address is closed.
            subscribe(database, name, id)
            expected.wanted.add((name, id))
    elif step == "leave":
        name, id = value
        for form in (id, f"{id}-public"):
            leave(database, name, form, now=now)
        expected.wanted.discard((name, id))
    else:
        for form in (value, f"{value}-public"):
            _remove(database, str(form), is_clean=step == "clean", now=now)


def _sync(database: Database, expected: Expected, listed: dict[str, str]) -> None:
    forgotten = [row["id"] for row in registry_rows(database) if row["forgotten"]]
    forget.end_forget(database, *forgotten)
    options: dict[str, dict[str, Any]] = {"open": {}, "hidden": HIDDEN, "shared": {**HIDDEN, "shared": True}}
    closing(database, *(spec(id, **options[kind]) for id, kind in listed.items()))
    expected.listed = set(listed)
    expected.hidden = {row["id"] for row in registry_rows(database) if row["needs_access"]}
    expected.hidden -= {id for id, kind in listed.items() if kind == "shared"}


def _remove(database: Database, id: str, *, is_clean: bool, now: timedelta) -> None:
    rows = {row["id"]: row for row in registry_rows(database)}
    if id not in rows or rows[id]["listed"]:
        return
    if is_clean and id not in forget.due_unused_feeds(database, now=NOW + now):
        return
    try:
        forget.begin_forget(database, id)
    except ForgetRefused:
        assert rows[id]["registered"]
    else:
        assert not rows[id]["registered"]


def _has(database: Database, name: str, id: str) -> bool:
    return bool({(name, id), (name, f"{id}-public")} & subscriptions(database))


def _compare(database: Database, expected: Expected) -> None:
    rows = {row["id"]: row for row in database.query("SELECT * FROM feeds").rows}
    current = subscriptions(database)
    assert {(name, id.removesuffix("-public")) for name, id in current} == expected.wanted
    assert {id for id, row in rows.items() if row["listed"]} == expected.listed
    for id, row in rows.items():
        has_subscriber = any(feed == id for _, feed in current)
        assert bool(row["registered"]) == bool(row["listed"] or has_subscriber)
        assert row["unused_since"] is None or not row["registered"]
        if has_subscriber:
            assert not row["needs_access"] or (row["listed"] and row["shared"])
