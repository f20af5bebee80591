"""All of it against a naive model: sets of read and of starred items for each user and feed."""

import itertools
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rss_pipeline.storage.subscriptions.chosen import EVERYTHING, Chosen, Filter, Page, Scope, Shown
from rss_pipeline.storage.subscriptions.item_lists import list_numbers, numbers_of
from rss_pipeline.storage.subscriptions.item_states import (
    mark_items,
    mark_shown,
    star_items,
    unstar_items,
)
from rss_pipeline.storage.subscriptions.subscriptions import edit, unsubscribe
from rss_pipeline.storage.subscriptions.undo import keep_read, list_undoable, remember, undo, undoable_marks
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.storage.values import HOUR, NOW, change, register, retire, spec
from rss_pipeline_tests.support.databases import migrated

USERS = ("ann", "bob")
FEEDS = ("a", "b", "c")
FOLDERS = (None, "News", "Fun")

users = st.sampled_from(USERS)
feeds = st.sampled_from(FEEDS)
folders = st.sampled_from(FOLDERS)
# Few, so that the same items are marked again and again.
picks = st.sets(st.integers(0, 11), min_size=1, max_size=6)


@dataclass
class Stored:
    """An item, as the model knows it."""

    guid: str
    feed: str
    number: int
    id: str


@dataclass
class Mine:
    """A subscription, as the model knows it."""

    folder: str | None
    read: set[str] = field(default_factory=set)
    starred: set[str] = field(default_factory=set)


class Reading(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.database = migrated(Path(self.folder.name, "rss.sqlite"))
        for user in USERS:
            readers.add_user(self.database, user)
        register(self.database, *map(spec, FEEDS))
        change(self.database, "UPDATE feeds SET listed = 0, registered = 0")
        self.items: dict[str, Stored] = {}
        self.mine: dict[tuple[str, str], Mine] = {}
        self.undoable: dict[tuple[str, str], set[str]] = {}
        self.feed_of: dict[str, str] = {}
        self.fresh = itertools.count()
        for user, feed in (("ann", "a"), ("ann", "b"), ("bob", "a"), ("bob", "b")):
            self.subscribe(user, feed, None)
        for feed in ("a", "b"):
            self.items_arrive(feed, 4)

    def teardown(self) -> None:
        self.database.close()
        self.folder.cleanup()

    def picked(self, picks: set[int]) -> list[Stored]:
        """Some items, of all feeds."""
        items = list(self.items.values())
        return [items[n] for n in sorted({pick % len(items) for pick in picks})] if items else []

    def of(self, user: str, **scope: Any) -> list[Mine]:
        return [
            mine
            for (other, feed), mine in self.mine.items()
            if other == user
            and scope.get("feed_id") in (None, feed)
            and scope.get("folder") in (None, mine.folder)
        ]

    @rule(feed=feeds, count=st.integers(1, 3))
    def items_arrive(self, feed: str, count: int) -> None:
        guids = [f"g{next(self.fresh)}" for _ in range(count)]
        if not self.database.query("SELECT registered FROM feeds WHERE id = ?", [feed]).rows[0]["registered"]:
            return
        readers.arrive(self.database, feed, *guids)
        self.feed_of |= dict.fromkeys(guids, feed)
        rows = self.database.query("SELECT id, guid, arrived FROM items WHERE feed_id = ?", [feed]).rows
        for row in rows:
            if row["guid"] in guids:
                self.items[row["guid"]] = Stored(row["guid"], feed, int(row["arrived"]), row["id"])

    @rule(user=users, feed=feeds, folder=folders)
    def subscribe(self, user: str, feed: str, folder: str | None) -> None:
        fields = {} if folder is None else {"folder": folder}
        readers.subscribe(self.database, user, feed, **fields)
        self.mine.setdefault((user, feed), Mine(folder))

    @rule(user=users, feed=feeds)
    def unsubscribe(self, user: str, feed: str) -> None:
        self.database.batch(unsubscribe(user, [feed], at=NOW))
        self.mine.pop((user, feed), None)
        self.nothing_undoes(user, {guid for guid, other in self.feed_of.items() if other == feed})

    @rule(user=users, feed=feeds, folder=folders)
    def move(self, user: str, feed: str, folder: str | None) -> None:
        self.database.batch(edit(user, feed, {"folder": folder}, at=NOW))
        if (user, feed) in self.mine:
            self.mine[user, feed].folder = folder

    @rule(user=users, picks=picks, is_read=st.booleans(), by_ids=st.booleans(), times=st.integers(1, 2))
    def mark(self, user: str, picks: set[int], is_read: bool, by_ids: bool, times: int) -> None:
        chosen = self.chosen(picks, by_ids)
        for _ in range(times):
            kept = [keep_read(user, chosen)] if is_read else []
            self.database.batch([*mark_items(user, chosen, is_read=is_read), *kept])
        if is_read:
            self.nothing_undoes(user, {one.guid for one in self.picked(picks)})
        for one in self.picked(picks):
            if mine := self.mine.get((user, one.feed)):
                (mine.read.add if is_read else mine.read.discard)(one.guid)

    @rule(user=users, picks=picks, is_starred=st.booleans(), by_ids=st.booleans())
    def star(self, user: str, picks: set[int], is_starred: bool, by_ids: bool) -> None:
        chosen = self.chosen(picks, by_ids)
        self.database.batch(star_items(user, chosen, at=NOW) if is_starred else unstar_items(user, chosen))
        for one in self.picked(picks):
            if mine := self.mine.get((user, one.feed)):
                (mine.starred.add if is_starred else mine.starred.discard)(one.guid)

    def chosen(self, picks: set[int], by_ids: bool) -> Chosen:
        picked = self.picked(picks)
        if by_ids:
            return Chosen.by_ids([one.id for one in picked])
        return Chosen.by_numbers([one.number for one in picked])

    @rule(
        user=users,
        scope=st.one_of(
            st.just({}),
            st.builds(lambda feed: {"feed_id": feed}, feeds),
            st.builds(lambda folder: {"folder": folder}, st.sampled_from(FOLDERS[1:])),
        ),
        pick=st.integers(0, 15),
        off=st.sampled_from((0, 0, -1, 1)),
        everything=st.booleans(),
        own=st.one_of(st.none(), st.tuples(feeds, st.integers(0, 15))),
    )
    def mark_up_to(
        self,
        user: str,
        scope: dict[str, str],
        pick: int,
        off: int,
        everything: bool,
        own: tuple[str, int] | None,
    ) -> None:
        numbers = sorted(one.number for one in self.items.values())
        of_feeds = {own[0]: numbers[own[1] % len(numbers)]} if own and numbers else {}
        up_to = EVERYTHING if everything or not numbers else numbers[pick % len(numbers)] + off
        shown = Shown(scope=Scope(**scope), up_to=up_to, of_feeds=of_feeds)
        id = f"m{next(self.fresh)}"
        self.database.batch([*remember(user, id, shown, until=NOW + HOUR, now=NOW), *mark_shown(user, shown)])
        marked: set[str] = set()
        for mine in self.of(user, **scope):
            feed = next(feed for (_, feed), other in self.mine.items() if other is mine)
            end = of_feeds.get(feed, up_to)
            listed = {one.guid for one in self.items.values() if one.feed == feed and one.number <= end}
            marked |= listed - mine.read
            mine.read |= listed
        self.nothing_undoes(user, marked)
        self.undoable[user, id] = marked

    def nothing_undoes(self, user: str, guids: set[str]) -> None:
        for (other, _), marked in self.undoable.items():
            if other == user:
                marked -= guids

    @rule(pick=st.integers(0, 5), by_another=st.booleans())
    def undo(self, pick: int, by_another: bool) -> None:
        """Marked items are unread again, and nothing else; another's mark cannot be undone."""
        if not self.undoable:
            return
        user, id = list(self.undoable)[-1 - pick % len(self.undoable)]
        if by_another:
            self.database.batch(undo("bob" if user == "ann" else "ann", id, now=NOW))
            return
        marked = {guid for guid in self.undoable.pop((user, id)) if guid in self.items}
        self.database.batch(undo(user, id, now=NOW))
        for guid in marked:
            self.mine[user, self.items[guid].feed].read.discard(guid)

    @rule(picks=picks)
    def items_retire(self, picks: set[int]) -> None:
        """Starred items stay."""
        picked = self.picked(picks)
        starred = {guid for mine in self.mine.values() for guid in mine.starred}
        gone = [one for one in picked if one.guid not in starred]
        retire(self.database, *(one.id for one in gone))
        for one in gone:
            del self.items[one.guid]
            for mine in self.mine.values():
                mine.read.discard(one.guid)

    @invariant()
    def a_feed_is_visited_while_somebody_subscribes_it(self) -> None:
        rows = self.database.query("SELECT id, registered FROM feeds").rows
        subscribed = {feed for _, feed in self.mine}
        assert {row["id"] for row in rows if row["registered"]} == subscribed

    @invariant()
    def counts_are_exact(self) -> None:
        for user in USERS:
            expected = {
                feed: sum(one.feed == feed and one.guid not in mine.read for one in self.items.values())
                for (other, feed), mine in self.mine.items()
                if other == user
            }
            assert readers.unread(self.database, user) == expected

    @invariant()
    def no_state_says_what_the_number_says(self) -> None:
        said = self.database.query(
            """SELECT t.* FROM item_states AS t JOIN subscriptions AS s USING (user_id, feed_id)
            WHERE t.is_read = (t.arrived <= s.read_up_to) OR t.is_read IS NULL AND t.starred_at IS NULL"""
        ).rows
        assert said == []

    @invariant()
    def what_is_unread_and_what_is_starred_is_exact(self) -> None:
        """In one page: any_list_is_exact turns pages."""
        for user in USERS:
            for is_read, is_starred in ((False, None), (None, True)):
                page, filter = Page(limit=1_000), Filter(is_read=is_read, is_starred=is_starred)
                found = self.database.batch([list_numbers(user, filter, page)])[0]
                expected = self.expected(user, is_read, is_starred)
                assert numbers_of(found, page).numbers == tuple(one.number for one in expected)

    @invariant()
    def what_can_be_undone_is_exact(self) -> None:
        for user in USERS:
            found = undoable_marks(self.database.batch([list_undoable(user, now=NOW)])[0])
            expected = {id: len(marked) for (other, id), marked in self.undoable.items() if other == user}
            assert {one.id: one.items for one in found} == {id: n for id, n in expected.items() if n}

    @rule(
        user=users,
        is_read=st.sampled_from((None, True, False)),
        is_starred=st.sampled_from((None, True, False)),
        folder=folders,
        feed=st.one_of(st.none(), feeds),
        size=st.integers(1, 4),
        oldest=st.booleans(),
        picks=st.tuples(st.integers(-1, 40), st.integers(-1, 40)),
    )
    def any_list_is_exact(
        self,
        user: str,
        is_read: bool | None,
        is_starred: bool | None,
        folder: str | None,
        feed: str | None,
        size: int,
        oldest: bool,
        picks: tuple[int, int],
    ) -> None:
        numbers = sorted(one.number for one in self.items.values())
        since, until = (numbers[pick % len(numbers)] if numbers and pick >= 0 else None for pick in picks)
        expected = [
            one.guid
            for one in self.expected(user, is_read, is_starred, folder, feed)
            if (since is None or one.number >= since) and (until is None or one.number <= until)
        ]
        filter = Filter(
            scope=Scope(feed_id=feed, folder=folder),
            is_read=is_read,
            is_starred=is_starred,
            since=since,
            until=until,
        )
        found = readers.guids(self.database, user, filter, size=size, oldest=oldest)
        assert found == (expected[::-1] if oldest else expected)

    def expected(
        self,
        user: str,
        is_read: bool | None = None,
        is_starred: bool | None = None,
        folder: str | None = None,
        feed: str | None = None,
    ) -> list[Stored]:
        """The newest first."""
        return [
            one
            for one in sorted(self.items.values(), key=lambda one: -one.number)
            if (mine := self.mine.get((user, one.feed))) is not None
            and feed in (None, one.feed)
            and folder in (None, mine.folder)
            and is_read in (None, one.guid in mine.read)
            and is_starred in (None, one.guid in mine.starred)
        ]


class LongReading(Reading):
    """The same, longer."""


Reading.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
LongReading.TestCase.settings = settings(max_examples=2_000, stateful_step_count=50, deadline=None)
TestReading = pytest.mark.slow(Reading.TestCase)
TestLongReading = pytest.mark.soak(LongReading.TestCase)
