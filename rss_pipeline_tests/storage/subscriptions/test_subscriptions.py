"""Subscribing and leaving: what is unread at first, who may, and what becomes of the feed."""

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import listing
from rss_pipeline.storage.subscriptions.chosen import EVERYTHING, Filter, Scope, Shown
from rss_pipeline.storage.subscriptions.item_states import mark_shown, star_items
from rss_pipeline.storage.subscriptions.subscriptions import (
    Wanted,
    edit,
    subscribe,
    unsubscribe,
    unsubscribe_all,
)
from rss_pipeline_tests.storage.subscriptions.readers import (
    arrive,
    chosen,
    guids,
    unread,
)
from rss_pipeline_tests.storage.subscriptions.readers import subscribe as subscribed
from rss_pipeline_tests.storage.values import DAY, NOW, change, feed_row, item, visit

UNREAD = Filter(is_read=False)


def test_of_a_known_feed_the_newest_fifty_items_are_unread(two: Database) -> None:
    """Items of the document that has the fifty-first are chosen by their dates: its newest came in first."""
    dated = [item(f"old{n}", pub_date=NOW - n * DAY) for n in range(70)]
    visit(two, dated, id="a")
    arrive(two, "a", "new1", "new2")
    subscribed(two, "ann", "a")
    assert set(guids(two, "ann", UNREAD)) == {"new1", "new2", *(f"old{n}" for n in range(48))}
    assert unread(two, "ann") == {"a": 50}
    assert len(guids(two, "ann", Filter())) == 72


def test_of_a_small_feed_all_items_are_unread(two: Database) -> None:
    arrive(two, "a", *(str(n) for n in range(50)))
    subscribed(two, "ann", "a")
    assert unread(two, "ann") == {"a": 50}


def test_to_subscribe_again_changes_nothing(two: Database) -> None:
    arrive(two, "a", *(str(n) for n in range(60)))
    subscribed(two, "ann", "a", title="Mine")
    two.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING)))
    subscribed(two, "ann", "a", title="Other")
    assert unread(two, "ann") == {"a": 0}
    (row,) = listing.feed_rows(two.batch([listing.list_feeds("ann")])[0])
    assert (row.title, row.position) == ("Mine", 1)


@pytest.mark.parametrize(
    ("state", "may"),
    [
        ("needs_access = 1", False),
        ("allow_private = 1", False),
        ("needs_access = 1, listed = 1, shared = 1", True),
        ("needs_access = 1, listed = 0, shared = 1", False),
        ("forgotten = 1", False),
    ],
)
def test_a_private_feed_is_subscribed_only_where_the_registry_shares_it(
    two: Database, state: str, may: bool
) -> None:
    change(two, f"UPDATE feeds SET {state} WHERE id = 'a'")
    subscribed(two, "ann", "a", "b", "unknown")
    assert unread(two, "ann") == ({"a": 0, "b": 0} if may else {"b": 0})


def test_no_user_has_more_feeds_than_the_limit(two: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    from rss_pipeline.storage.subscriptions import subscriptions

    limited = subscriptions._SUBSCRIBE.replace("<= 3000", "<= 1")
    assert limited != subscriptions._SUBSCRIBE
    monkeypatch.setattr(subscriptions, "_SUBSCRIBE", limited)
    subscribed(two, "ann", "b", "a")
    assert unread(two, "ann") == {"b": 0}
    subscribed(two, "bob", "a", "b")
    assert unread(two, "bob") == {"a": 0}


def test_a_feed_that_is_not_listed_is_visited_while_somebody_subscribes_it(two: Database) -> None:
    change(two, "UPDATE feeds SET listed = 0, registered = 0, enabled = 0, interval = 60 WHERE id = 'a'")
    change(two, "UPDATE feeds SET next_fetch_at = '2030-01-01T00:00:00Z' WHERE id = 'a'")
    subscribed(two, "ann", "a")
    subscribed(two, "bob", "a")
    row = feed_row(two)
    assert (row["registered"], row["enabled"], row["interval"]) == (1, 1, None)
    assert row["next_fetch_at"] == "2026-02-18T08:30:00Z"
    two.batch(unsubscribe("ann", ["a"], at=NOW))
    assert feed_row(two)["unused_since"] is None
    for later in (NOW, NOW + DAY):
        two.batch(unsubscribe("bob", ["a"], at=later))
        assert (feed_row(two)["registered"], feed_row(two)["unused_since"]) == (0, "2026-02-18T08:30:00Z")
    subscribed(two, "bob", "a")
    assert (feed_row(two)["registered"], feed_row(two)["unused_since"]) == (1, None)


def test_a_listed_feed_stays_when_its_last_subscriber_leaves(two: Database) -> None:
    change(two, "UPDATE feeds SET listed = 1")
    subscribed(two, "ann", "a")
    two.batch(unsubscribe("ann", ["a"], at=NOW))
    assert (feed_row(two)["registered"], feed_row(two)["unused_since"]) == (1, None)


def test_a_feed_that_no_one_could_subscribe_does_not_become_unused(two: Database) -> None:
    change(two, "UPDATE feeds SET listed = 0, registered = 0, needs_access = 1 WHERE id = 'a'")
    subscribed(two, "ann", "a")
    assert feed_row(two)["unused_since"] is None


def test_the_shortest_wished_interval_counts(two: Database) -> None:
    change(two, "UPDATE feeds SET listed = 1, next_fetch_at = '2026-02-19T08:30:00Z'")
    for user, seconds in (("ann", 7200), ("bob", 3600)):
        two.batch(subscribe(user, [Wanted(feed_id="a", wished_interval=seconds)], at=NOW))
    assert feed_row(two)["wished_interval"] == 3600
    assert feed_row(two)["next_fetch_at"] == "2026-02-18T09:30:00Z"
    two.batch(edit("bob", "a", {"wished_interval": None}, at=NOW))
    assert feed_row(two)["wished_interval"] == 7200
    two.batch(unsubscribe("ann", ["a"], at=NOW))
    assert feed_row(two)["wished_interval"] is None


def test_a_user_who_goes_leaves_no_feed_in_use(two: Database) -> None:
    change(two, "UPDATE feeds SET listed = 0")
    subscribed(two, "ann", "a", "b")
    subscribed(two, "bob", "b")
    arrive(two, "a", "1")
    two.batch(star_items("ann", chosen(two, "a", ["1"]), at=NOW))
    two.batch(unsubscribe_all("ann", at=NOW))
    assert [feed_row(two, id)["registered"] for id in ("a", "b")] == [0, 1]
    assert unread(two, "ann") == {}
    assert unread(two, "bob") == {"b": 0}
    assert two.query("SELECT * FROM item_states").rows == []


def test_states_and_stars_go_with_the_subscription(two: Database) -> None:
    subscribed(two, "ann", "a")
    arrive(two, "a", "1", "2")
    two.batch(star_items("ann", chosen(two, "a", ["1"]), at=NOW))
    two.batch(mark_shown("ann", Shown(scope=Scope(feed_id="a"), up_to=EVERYTHING)))
    two.batch(unsubscribe("ann", ["a"], at=NOW))
    assert guids(two, "ann", Filter(is_starred=True)) == []
    subscribed(two, "ann", "a")
    assert guids(two, "ann", Filter(is_starred=True)) == []
    assert unread(two, "ann") == {"a": 2}
