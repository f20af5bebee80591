"""Random histories: what lists show and count is what a plain recount gives, to each user of their feeds."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from rss_pipeline.api.google_reader.folded import NamedItems, as_entries, mark_entries
from rss_pipeline.api.google_reader.folded import mark_shown as mark_shown_in_app
from rss_pipeline.features.stories import acts
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.feed_queries import hidden_unread, unread_counts
from rss_pipeline.reader.item_queries import (
    Filter,
    Fold,
    Page,
    Scope,
    Shown,
    arrival_numbers,
    items,
    together,
)
from rss_pipeline.reader.mark import ItemMarks, mark_items, mark_shown
from rss_pipeline.reader.query import together as of_one_moment
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.stories import LATER
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.stored import add_feeds, add_items, item

FEEDS = "abcde"
SCOPES = (Scope(), Scope(folder="one"), Scope(folder="two"))
EVERY = Page(limit=500)
PREFERENCES = '{"stories":true,"stories_in_apps":true}'


@dataclass
class Kept:
    """An item as the history made it."""

    id: str
    feed: str
    arrived: int
    story: str | None
    article: str
    lead: int


@dataclass
class Person:
    caller: Caller
    folders: dict[str, str | None]
    """By the feeds that they subscribe to."""
    leading: set[str] = field(default_factory=set)
    """Feeds with items that lead."""
    read: set[str] = field(default_factory=set)
    chosen: dict[str, str] = field(default_factory=dict)
    before: list[dict[str, str]] = field(default_factory=list)
    app: NamedItems = field(default_factory=NamedItems)
    sent: dict[int, set[str]] = field(default_factory=dict)
    """By the number of an entry that the app has, the items that were named at its end."""


@dataclass
class World:
    database: Database
    chance: random.Random
    people: list[Person]
    items: dict[str, Kept] = field(default_factory=dict)
    number: int = 1_780_000_000_000_000

    def arrive(self) -> None:
        chance = self.chance
        self.number += chance.randint(1, 1_000_000)
        feed, guid = chance.choice(FEEDS), str(self.number)
        row = {**item(feed, guid, "2026-05-28T00:00:00Z"), "arrived": self.number}
        row["title"] = f"Title {row['id']}"
        add_items(self.database, [row])
        kept = Kept(str(row["id"]), feed, self.number, None, str(row["id"]), self.number)
        nearest = chance.choice([*self.items.values()]) if self.items and chance.random() < 0.7 else None
        if nearest is not None:
            if nearest.story is None:
                nearest.story = nearest.id
                self._store(nearest)
            kept.story = nearest.story
            if chance.random() < 0.4:
                kept.article = nearest.article
            if chance.random() < 0.3:
                kept.lead += LATER
            self._store(kept)
            for each in self.people:
                if nearest.id in each.chosen:
                    each.chosen[kept.id] = each.chosen[nearest.id]
                    self.database.query(
                        """INSERT INTO story_choices (user_id, item_id, story_id, act)
                        SELECT user_id, ?, story_id, act FROM story_choices
                        WHERE item_id = ? AND user_id = ?""",
                        [kept.id, nearest.id, each.caller.user_id],
                    )
        self.items[kept.id] = kept

    def _store(self, kept: Kept) -> None:
        self.database.query(
            """INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
            VALUES (?, ?, ?, CAST(? AS INTEGER), ?, CAST(? AS INTEGER), '2026-05-28T00:00:00Z', 1)
            ON CONFLICT (item_id) DO NOTHING""",
            [kept.id, kept.story, kept.feed, kept.arrived, kept.article, kept.lead],
        )

    def expire(self) -> None:
        if self.items:
            gone = self.chance.choice([*self.items])
            self.database.query("DELETE FROM items WHERE id = ?", [gone])
            del self.items[gone]
            for each in self.people:
                each.chosen.pop(gone, None)

    def mine(self, person: Person, scope: Scope) -> list[Kept]:
        wanted = {
            feed for feed, folder in person.folders.items() if scope.folder is None or folder == scope.folder
        }
        return [each for each in self.items.values() if each.feed in wanted]

    def story(self, person: Person, kept: Kept) -> str:
        return person.chosen.get(kept.id) or kept.story or kept.id

    def entries(self, person: Person, scope: Scope, *, unread: bool) -> dict[int, list[Kept]]:
        """By the arrival number of the item that a list shows, the items of its story."""
        stories: dict[str, list[Kept]] = {}
        for each in self.mine(person, scope):
            stories.setdefault(self.story(person, each), []).append(each)
        found = {}
        for members in stories.values():
            first: dict[str, Kept] = {}
            for each in sorted(members, key=lambda one: one.arrived):
                first.setdefault(each.article, each)
            candidates = members
            if unread:
                candidates = [each for each in first.values() if each.id not in person.read]
            if candidates:
                shown = min(candidates, key=lambda one: (one.feed not in person.leading, one.lead))
                found[shown.arrived] = members
        return found

    def check(self) -> None:
        for person in self.people:
            self.check_app(person)
            ask = person.caller.ask
            user = person.caller.user_id
            hidden = ask(hidden_unread(user))
            counts = {each.feed_id: each.unread for each in ask(unread_counts(user))}
            assert counts == {
                feed: sum(each.feed == feed and each.id not in person.read for each in self.items.values())
                for feed in person.folders
            }
            for scope in SCOPES:
                wanted = self.entries(person, scope, unread=True)
                fold = Fold(scope=scope)
                unread = ask(arrival_numbers(user, Filter(scope=scope, is_read=False, fold=fold), EVERY))
                assert set(unread.numbers) == set(wanted)
                of_scope = [feed for feed, folder in person.folders.items() if scope.folder in (None, folder)]
                less = hidden.of_all if scope.folder is None else hidden.of_folders.get(scope.folder, 0)
                assert sum(counts[feed] for feed in of_scope) - less == len(wanted)
                every = self.entries(person, scope, unread=False)
                for order in ("arrived", "placed", "published"):
                    page = Page(limit=500, order=order)
                    rows = ask(items(user, Filter(scope=scope, fold=fold), page)).items
                    assert {row.arrived for row in rows} == set(every)
                    rows = ask(items(user, Filter(scope=scope, is_read=False, fold=fold), page)).items
                    assert {row.arrived for row in rows} == set(wanted)
                named = ask(together(user, scope, [row.id for row in rows]))
                for row in rows:
                    mine = [each.id for each in named.get(row.id, ())]
                    told = {each.id for each in wanted[row.arrived]}
                    assert set(mine) == told or (not mine and told == {row.id})
                    assert len(mine) == len(set(mine))
                    assert {each.feed_id for each in named.get(row.id, ())} <= set(person.folders)

    def in_app(self, person: Person, scope: Scope, *, is_read: bool | None) -> Filter:
        """A list of an app, and that it is what a plain recount gives: in each stream the entries of all
        feeds that are items of this part of them, of which those are unread that a list of all shows so."""
        user, news = person.caller.user_id, self.entries(person, Scope(), unread=True)
        every = {**news, **({} if is_read is False else self.entries(person, Scope(), unread=False))}
        filter = Filter(scope=scope, is_read=is_read, fold=Fold(with_news=True))
        listed = person.caller.ask(items(user, filter, EVERY)).items
        wanted = {
            each.arrived
            for each in self.items.values()
            if each.arrived in every
            and scope.feed_id in (None, each.feed)
            and each.feed in person.folders
            and scope.folder in (None, person.folders[each.feed])
        }
        assert {row.arrived for row in listed} == wanted
        assert set(person.caller.ask(arrival_numbers(user, filter, EVERY)).numbers) == wanted
        rows, ends = as_entries(person.caller, person.app, listed)
        for row in rows:
            assert row.is_read == (row.arrived not in news)
            named = {each.id for each in every[row.arrived]} - {row.id}
            assert (row.id in ends) == bool(named)
            for each in self.items.values():
                assert (f"Title {each.id}" in ends.get(row.id, b"").decode()) == (each.id in named)
            person.sent.setdefault(row.arrived, set()).update(named)
        return filter

    def check_app(self, person: Person) -> None:
        user = person.caller.user_id
        counts, hidden = person.caller.ask(of_one_moment(unread_counts(user), hidden_unread(user)))
        for scope in (*SCOPES, *(Scope(feed_id=feed) for feed in person.folders)):
            self.in_app(person, scope, is_read=None)
            filter = self.in_app(person, scope, is_read=False)
            counted = sum(
                each.unread - hidden.of_feeds.get(each.feed_id, 0)
                for each in counts
                if scope.feed_id in (None, each.feed_id) and scope.folder in (None, each.folder)
            )
            assert counted == len(person.caller.ask(arrival_numbers(user, filter, EVERY)).numbers)

    def read_in_app(self, person: Person) -> None:
        """An app loads a stream, and marks later one of the entries that it ever had."""
        chance = self.chance
        scope = chance.choice((*SCOPES, Scope(feed_id=chance.choice([*person.folders]))))
        self.in_app(person, scope, is_read=chance.choice((None, False)))
        if chance.random() < 0.5:
            self.arrive()
        known = [
            number for number in person.sent if any(number == each.arrived for each in self.items.values())
        ]
        if known:
            number = chance.choice(known)
            mark_entries(person.caller, person.app, [number], ItemMarks(is_read=True))
            [own] = [each.id for each in self.items.values() if each.arrived == number]
            person.read.update({own, *person.sent[number]})

    def read_all_in_app(self, person: Person) -> None:
        chance = self.chance
        scope = chance.choice((*SCOPES, Scope(feed_id=chance.choice([*person.folders]))))
        self.in_app(person, scope, is_read=False)
        seen = self.number
        if chance.random() < 0.5:
            self.arrive()
        mine = [
            each
            for each in self.mine(person, scope)
            if each.arrived <= seen and scope.feed_id in (None, each.feed) and each.id not in person.read
        ]
        mark_shown_in_app(person.caller, person.app, Shown(scope=scope, up_to=seen))
        for each in mine:
            person.read.update({each.id, *person.sent.get(each.arrived, ())})

    def read_entry(self, person: Person) -> None:
        scope = self.chance.choice(SCOPES)
        wanted = self.entries(person, scope, unread=True)
        if wanted:
            members = self.chance.choice([*wanted.values()])
            listed = [each.id for each in members]
            mark_items(person.caller, listed, ItemMarks(is_read=True))
            person.read.update(listed)

    def read_item(self, person: Person, *, is_read: bool) -> None:
        mine = self.mine(person, Scope())
        if mine:
            one = self.chance.choice(mine).id
            mark_items(person.caller, [one], ItemMarks(is_read=is_read))
            (person.read.add if is_read else person.read.discard)(one)

    def read_all(self, person: Person) -> None:
        scope = self.chance.choice(SCOPES)
        seen = self.number
        if self.chance.random() < 0.5:
            # What comes between the look and the click was never seen.
            self.arrive()
        mark_shown(person.caller, Shown(scope=scope, up_to=seen))
        person.read.update(each.id for each in self.mine(person, scope) if each.arrived <= seen)

    def prefer(self, person: Person) -> None:
        feed = self.chance.choice([*person.folders])
        person.leading ^= {feed}
        assert acts.lead(person.caller, feed, leads=feed in person.leading)
        assert not acts.lead(person.caller, "nobody's", leads=True)

    def say(self, person: Person) -> None:
        mine = self.mine(person, Scope())
        if len(mine) < 2:
            return
        one, other = self.chance.sample(mine, 2)
        what = self.chance.random()
        before = dict(person.chosen)
        everything = list(self.items.values())
        if what < 0.35:
            story = self.story(person, one)
            members = [each for each in everything if self._kept_story(person, each) == story]
            assert acts.apart(person.caller, one.id)
            if len(members) > 1:
                person.chosen[one.id] = f"{one.id}~"
                person.before.append(before)
        elif what < 0.7:
            story, theirs = self.story(person, one), self.story(person, other)
            is_done = acts.together(person.caller, one.id, other.id)
            assert is_done == (story != theirs)
            if is_done:
                for each in everything:
                    if self.story(person, each) in (story, theirs):
                        person.chosen[each.id] = story
                        if each.story is None:
                            each.story = each.id
                person.before.append(before)
        elif person.before:
            assert acts.undo(person.caller) is not None
            earlier = person.before.pop()
            person.chosen = self._stored_choices(person)
            for id, chosen in earlier.items():
                assert id not in self.items or person.chosen.get(id) == chosen

    def _kept_story(self, person: Person, each: Kept) -> str | None:
        return self.story(person, each) if each.story is not None or each.id in person.chosen else None

    def _stored_choices(self, person: Person) -> dict[str, str]:
        rows = self.database.query(
            "SELECT item_id, story_id FROM story_choices WHERE user_id = ?", [person.caller.user_id]
        ).rows
        return {row["item_id"]: row["story_id"] for row in rows}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    database = migrated(tmp_path_factory.mktemp("stories") / "rss.sqlite")
    add_feeds(database, *FEEDS)
    yield database
    database.close()


def world(database: Database, seed: int) -> World:
    for table in ("story_members", "users", "items"):
        database.query(f"DELETE FROM {table}")
    chance = random.Random(seed)
    people = []
    clock = Clock()
    for name in ("ada", "bob"):
        caller = signed_in(database, name, clock=clock)
        database.query("UPDATE users SET preferences = ? WHERE id = ?", [PREFERENCES, caller.user_id])
        feeds = chance.sample(FEEDS, 4)
        folders = {feed: chance.choice(("one", "two", None)) for feed in feeds}
        for feed, folder in folders.items():
            database.query(
                """INSERT INTO subscriptions (user_id, feed_id, folder, read_up_to, added_at)
                VALUES (?, ?, ?, 0, '2026-05-01T00:00:00Z')""",
                [caller.user_id, feed, folder],
            )
        people.append(Person(caller, folders))
    return World(database, chance, people)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 1_000), marks=pytest.mark.soak)], ids=["100", "1000"]
)
def test_lists_and_counts_are_those_of_a_plain_recount(kept: Database, seeds: range) -> None:
    for seed in seeds:
        history = world(kept, seed)
        for _ in range(4):
            history.arrive()
        for _ in range(12):
            person = history.chance.choice(history.people)
            match history.chance.randrange(13):
                case 0 | 1 | 2:
                    history.arrive()
                case 3:
                    history.read_entry(person)
                case 4:
                    history.read_item(person, is_read=True)
                case 5:
                    history.read_item(person, is_read=False)
                case 6:
                    history.read_all(person)
                case 7:
                    history.say(person)
                case 8 | 9:
                    history.read_in_app(person)
                case 10:
                    history.read_all_in_app(person)
                case 11:
                    history.prefer(person)
                case _:
                    history.expire()
        history.check()
