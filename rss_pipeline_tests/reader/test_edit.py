"""Changes of a user to feeds and folders, on every database: their effect, and the rest."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.edit import (
    Direction,
    Edited,
    NotTheirs,
    OtherFeed,
    SubscriptionChanges,
    add_folders,
    edit_feed,
    edit_feeds,
    move_feed,
    moved,
    remove_folders,
    rename_folder,
    unsubscribe,
)
from rss_pipeline.reader.refresh import NotSubscribed, Queued
from rss_pipeline.reader.subscribe import AddressRefused
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions.item_states import star_items
from rss_pipeline.storage.subscriptions.listing import FeedRow, feed_rows, list_feeds
from rss_pipeline.storage.subscriptions.subscriptions import folder_names, list_folders
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions.readers import arrive, chosen, subscribe
from rss_pipeline_tests.storage.values import (
    NOW,
    change,
    claim_one,
    feed_row,
    item,
    register,
    spec,
    store,
)
from rss_pipeline_tests.support.pipeline import Clock

OLD = "https://a.example/a"
NEW = "https://new.example/feed"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="x")


@pytest.fixture
def ann(database: Database, clock: Clock) -> Caller:
    """Ann, who was first, and subscribes to a and b."""
    register(database, spec("a"), spec("b"))
    caller = signed_in(database, "ann", clock=clock)
    subscribe(database, caller.user_id, "a", "b")
    return caller


@pytest.fixture
def bob(ann: Caller, clock: Clock) -> Caller:
    """Bob, who came later and subscribes to a."""
    clock.turn(seconds=1)
    caller = signed_in(ann.database, "bob", clock=clock)
    subscribe(ann.database, caller.user_id, "a")
    return caller


def feeds(caller: Caller) -> list[FeedRow]:
    return feed_rows(caller.read(list_feeds(caller.user_id))[0])


def folders(caller: Caller) -> list[str]:
    return folder_names(caller.read(list_folders(caller.user_id))[0])


def test_an_edit_changes_what_it_names_and_nothing_of_another_user(
    ann: Caller, bob: Caller, settings: Settings
) -> None:
    edit_feed(bob, settings, "a", title="His")
    edit_feed(ann, settings, "a", title="Mine", folder="News")
    edited = edit_feed(ann, settings, "a", title=None, position=7, wished_interval=900)
    assert edited == Edited(feed=feeds(ann)[1])
    found = edited.feed
    assert (found.own_title, found.folder, found.position, found.wished_interval) == (None, "News", 7, 900)
    assert edit_feed(ann, settings, "a") == Edited(feed=found), "no change is none"
    [his] = feeds(bob)
    assert (his.title, his.own_title, his.position, his.wished_interval) == ("His", "His", 1, None)
    assert edit_feed(bob, settings, "b", title="Mine") == NotSubscribed()


def test_several_feeds_are_edited_at_once_and_others_are_left_out(ann: Caller, bob: Caller) -> None:
    edit_feeds(bob, {"a": SubscriptionChanges(folder="News"), "b": SubscriptionChanges(title="Mine")})
    assert [(each.feed_id, each.folder) for each in feeds(bob)] == [("a", "News")]
    edit_feeds(
        ann,
        {
            "a": SubscriptionChanges(folder="Fun"),
            "b": SubscriptionChanges(),
            "unknown": SubscriptionChanges(title="X"),
        },
    )
    assert [each.folder for each in feeds(ann)] == ["Fun", None]


def test_a_feed_is_unsubscribed_once(ann: Caller, bob: Caller) -> None:
    assert unsubscribe(ann, ["a", "unknown"]) == 1
    assert unsubscribe(ann, ["a"]) == 0
    assert unsubscribe(ann, []) == 0
    assert [[each.feed_id for each in feeds(who)] for who in (ann, bob)] == [["b"], ["a"]]


def test_a_folder_is_renamed_merged_and_removed_with_its_feeds_kept(ann: Caller, bob: Caller) -> None:
    def of_feeds() -> list[str | None]:
        return [each.folder for each in feeds(ann)]

    edit_feeds(ann, {"a": SubscriptionChanges(folder="News"), "b": SubscriptionChanges(folder="Fun")})
    edit_feeds(bob, {"a": SubscriptionChanges(folder="News")})
    add_folders(ann, ["Empty"])
    assert folders(ann) == ["Empty", "Fun", "News"]
    for _ in range(2):
        assert rename_folder(ann, "News", "Fun"), "again, there is the new one only"
        assert (folders(ann), of_feeds()) == (["Empty", "Fun"], ["Fun", "Fun"])
    assert rename_folder(ann, "Empty", "Later")
    assert rename_folder(ann, "Later", "Later")
    assert not rename_folder(ann, "News", "Nothing")
    remove_folders(ann, ["Fun", "unknown"])
    assert (folders(ann), of_feeds()) == (["Later"], [None, None])
    assert folders(bob) == ["News"]


def test_a_feed_moves_within_its_folder_and_another_s_order_stays(ann: Caller, bob: Caller) -> None:
    register(ann.database, spec("a"), spec("b"), spec("c"))
    subscribe(ann.database, ann.user_id, "c")
    subscribe(ann.database, bob.user_id, "c")
    edit_feeds(ann, {"a": SubscriptionChanges(folder="News"), "c": SubscriptionChanges(folder="News")})

    def after(id: str, direction: Direction) -> str:
        move_feed(ann, id, direction)
        return "".join(each.feed_id for each in feeds(ann))

    assert [after("c", "up"), after("c", "up"), after("x", "down"), after("c", "down")] == [
        *("cba", "cba", "cba", "abc")
    ]
    assert [each.feed_id for each in feeds(bob)] == ["a", "c"]


# The address of a feed: what stays, what is over, and who may change it.


def brought(database: Database, id: str = "a") -> None:
    """Let a feed be one of users, and not of feeds.yaml."""
    change(database, "UPDATE feeds SET listed = 0 WHERE id = ?", id)


def test_a_feed_with_another_address_keeps_what_is_its_users_and_is_due_at_once(
    ann: Caller, clock: Clock, settings: Settings
) -> None:
    database = ann.database
    brought(database)
    arrive(database, "a", "1", "2")
    database.batch(star_items(ann.user_id, chosen(database, "a", ["1"]), at=NOW))
    running, token = claim_one(database, "a")
    change(
        database,
        """UPDATE feeds SET consecutive_failures = 7, failing_since = ?, last_error_kind = 'gone',
          not_before = '2027-01-01T00:00:00Z', fetch_url = 'https://moved.example/', items_listed = 9,
          answered_url = 'https://moved.example/feed', cuts = 5, schedule_kind = 'our_outage'""",
        instant(clock()),
    )
    change(
        database,
        """INSERT INTO feed_holds (feed_id, host, hold_until, reason, url_hash)
        VALUES ('a', 'a.example', ?, '429', 'abc')""",
        "2027-01-01T00:00:00Z",
    )
    edited = edit_feed(ann, settings, "a", url="new.example/feed", folder="News")
    assert isinstance(edited, Edited)
    assert isinstance(edited.visit, Queued), "it is visited at once"
    found = edited.feed
    assert (found.feed_id, found.url, found.folder, found.unread) == ("a", NEW, "News", 2)
    assert found.health == "ok", "failures of the old address are not those of the new one"
    assert found.next_visit <= clock()
    row = feed_row(database)
    learned = ("fetch_url", "not_before", "items_listed", "answered_url", "cuts", "schedule_kind")
    assert [row[name] for name in ("host", *learned)] == ["new.example", None, None, None, None, 0, None]
    assert len(database.query("SELECT 1 FROM item_states WHERE starred_at IS NOT NULL").rows) == 1
    [held] = database.query("SELECT feed_id, url_hash FROM feed_holds").rows
    assert held["feed_id"] != "a"
    assert held["url_hash"] == "abc", "the old address is requested no sooner than it wanted"
    [request] = database.query("SELECT kind, state FROM refresh_requests").rows
    assert tuple(request.values()) == ("refresh", "queued")

    # The visit that was under way at the old address neither closes nor stores.
    assert store(database, running, token, [item("4")]) is None
    assert feed_row(database)["next_fetch_at"] <= instant(clock())
    claim_one(database, "a", now=clock())


def test_who_may_change_the_address_of_a_feed_and_to_which(
    ann: Caller, bob: Caller, clock: Clock, settings: Settings
) -> None:
    database = ann.database

    def refused(caller: Caller, url: str = NEW) -> object:
        answer = edit_feed(caller, settings, "a", url=url, title="Mine")
        assert feed_row(database)["url"] == OLD
        assert "Mine" not in [each.title for each in feeds(caller)], "nothing of a refused change is applied"
        return answer

    def reason(caller: Caller) -> str:
        answer = refused(caller)
        assert isinstance(answer, NotTheirs)
        return f"{answer.message} {answer.what_to_do}"

    # A feed of feeds.yaml: its owner learns what to write there, and no one else of the file.
    assert "`id: a`" in reason(ann)
    assert "feeds.yaml" not in reason(bob)
    brought(database)
    assert "owner of this server" in reason(bob), "others subscribe to it"
    for address in ("http://192.168.1.1/feed", "ftp://a.example/"):
        assert isinstance(refused(ann, address), AddressRefused)
    assert refused(ann, "https://b.example/b") == OtherFeed(feed_id="b", is_subscribed=True)
    unsubscribe(ann, ["a"])
    assert refused(ann) == NotSubscribed()
    assert refused(bob, "https://b.example/b") == OtherFeed(feed_id="b", is_subscribed=False)

    # The address that it has already, in whatever form, changes nothing.
    assert edit_feed(bob, settings, "a", url="HTTPS://a.example/a#x", title="My own") == Edited(
        feed=feeds(bob)[0]
    )
    assert feeds(bob)[0].title == "My own"
    # A feed that no one uses any more does not keep its address.
    brought(database, "b")
    unsubscribe(ann, ["b"])
    assert isinstance(edit_feed(bob, settings, "a", url="https://b.example/b"), Edited)
    assert feeds(bob)[0].url == "https://b.example/b"


# The order of feeds, feed by feed.


def row(id: str, folder: str | None, position: int) -> FeedRow:
    return FeedRow(
        feed_id=id,
        title=None,
        own_title=None,
        stored_url=f"https://{id}.example/",
        link=None,
        description=None,
        folder=folder,
        position=position,
        wished_interval=None,
        full_text=0,
        added=instant(NOW),
        read_at=None,
        unread=0,
        version=0,
        changed=None,
        health="ok",
        error_kind=None,
        error=None,
        fails_since=None,
        visit_at=instant(NOW),
        visit_reason=None,
        success_at=None,
    )


ROWS = [row("a", "News", 1), row("b", None, 5), row("c", "News", 7), row("d", None, 9)]


def test_a_feed_changes_places_with_its_neighbour_in_the_folder() -> None:
    assert moved(ROWS, "c", "up") == {"a": 7, "c": 1}
    assert moved(ROWS, "b", "down") == {"b": 9, "d": 5}


def test_the_first_and_the_last_of_a_folder_and_an_unknown_feed_stay() -> None:
    assert moved(ROWS, "a", "up") == moved(ROWS, "d", "down") == moved(ROWS, "x", "up") == {}


@given(
    st.lists(st.tuples(st.sampled_from(["News", None]), st.integers(0, 3)), min_size=1, max_size=8),
    st.integers(0, 7),
    st.sampled_from(["up", "down"]),
)
def test_whatever_the_places_were_only_the_two_have_changed_their_order(
    given: list[tuple[str | None, int]], number: int, direction: Direction
) -> None:
    ordered = sorted(enumerate(given), key=lambda each: (each[1][1], each[0]))
    rows = [row(str(id), folder, position) for id, (folder, position) in ordered]
    id = str(number % len(rows))
    new = moved(rows, id, direction)
    after = sorted(rows, key=lambda each: (new.get(each.feed_id, each.position), int(each.feed_id)))
    folder = next(each.folder for each in rows if each.feed_id == id)
    of_folder = [each.feed_id for each in rows if each.folder == folder]
    at = of_folder.index(id)
    other = at - 1 if direction == "up" else at + 1
    if 0 <= other < len(of_folder):
        of_folder[at], of_folder[other] = of_folder[other], of_folder[at]
    else:
        assert new == {}
    assert [each.feed_id for each in after if each.folder == folder] == of_folder
