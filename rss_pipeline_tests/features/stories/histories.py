"""Random histories of stories, and the plain recount of what they should come to. No test is in here.

Items arrive and are decided, by the method or by another machine; they are edited, they expire, are replayed
and forgotten; the window is lost; the operator and two users say "the same" and "not the same"; users read in
pages and in apps, and change their feeds and their switches.
"""

import json
import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from rss_pipeline.api.google_reader.folded import NamedItems, as_entries, mark_entries
from rss_pipeline.api.google_reader.folded import mark_shown as mark_shown_in_app
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.stories import acts, moves, service, sql, views
from rss_pipeline.features.stories.lease import FULL_TEXT, hold
from rss_pipeline.features.stories.model import COPIES, Join
from rss_pipeline.features.stories.views import Placed
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.preferences import SomePreferences, change_preferences
from rss_pipeline.reader.edit import unsubscribe
from rss_pipeline.reader.failures import in_apps
from rss_pipeline.reader.feed_queries import hidden_unread, unread_counts
from rss_pipeline.reader.item_queries import (
    Filter,
    Fold,
    Order,
    Page,
    Scope,
    Shown,
    arrival_numbers,
    items,
    together,
)
from rss_pipeline.reader.mark import ItemMarks, mark_items, mark_shown
from rss_pipeline.reader.query import together as of_one_moment
from rss_pipeline.reader.subscribe import subscribe_named
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.forget import begin_forget, end_forget
from rss_pipeline.storage.items.stories import LATER, StoredJoin, stored_joins
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.stored import add_feeds, add_items, item

FEEDS = "abcde"
SCOPES = (Scope(), Scope(folder="one"), Scope(folder="two"))
FOLDERS = ("one", "two", None)
EVERY = Page(limit=500)
ORDERS: tuple[Order, ...] = get_args(Order)
PREFERENCES = '{"stories":true,"stories_in_apps":true}'


@dataclass
class Kept:
    """An item as the history made it."""

    id: str
    feed: str
    guid: str
    arrived: int
    created_at: str
    text: str
    article: str
    lead: int
    story: str | None = None
    joins: tuple[StoredJoin, ...] = ()
    ordinal: int = 0
    """Its place in the order of decisions; 0 for one that began a story, went, and came again."""
    is_moved: bool = False
    """An operator put it into its story."""
    is_said: bool = False
    """A user made it a story of one; no one has decided that."""

    @property
    def later(self) -> int:
        return 0 if len(self.text) >= FULL_TEXT else LATER


@dataclass
class Person:
    caller: Caller
    folders: dict[str, str | None]
    """By the feeds that they subscribe to."""
    has_stories: bool = True
    has_them_in_apps: bool = True
    leading: set[str] = field(default_factory=set)
    """Feeds with items that lead."""
    read: set[str] = field(default_factory=set)
    views: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By item, its story and its article, where an item of another feed ties what is a story of all."""
    chosen: dict[str, str] = field(default_factory=dict)
    before: list[dict[str, str]] = field(default_factory=list)
    app: NamedItems = field(default_factory=NamedItems)
    sent: dict[int, set[int]] = field(default_factory=dict)
    """By the number of an entry that the app has, the numbers that were named at its end."""

    @property
    def id(self) -> str:
        return self.caller.user_id

    @property
    def is_folded(self) -> bool:
        """True if their app gets entries of stories."""
        return self.has_stories and self.has_them_in_apps


@dataclass
class World:
    database: Database
    objects: FolderStore
    window: Path
    chance: random.Random
    people: list[Person]
    begin_number: int
    number: int
    items: dict[str, Kept] = field(default_factory=dict)
    ordinal: int = 0
    waiting: set[str] = field(default_factory=set)
    """Items that are not decided yet."""
    gone: list[Kept] = field(default_factory=list)
    decided: int = 0
    joined: int = 0
    """Items that the method decided, and those of them that it put into a story."""

    # Items

    def arrive(self) -> None:
        """An item comes in, with a text of its own or that of another one. It waits for the next poll, or
        was decided on another machine, like any item."""
        chance = self.chance
        nearest = chance.choice([*self.items.values()]) if self.items and chance.random() < 0.8 else None
        is_decided = chance.random() < 0.6
        if is_decided and self.waiting:
            self.poll()
        guid = str(self.number - self.begin_number + 1)
        text = f"Words of {guid} alone. " * chance.choice((3, 30))
        if nearest is not None and not is_decided:
            text = nearest.text
        # In its own feed, a text under another title would replace the older one.
        having = {each.feed for each in self.items.values() if each.text == text}
        feeds = [feed for feed in FEEDS if feed not in having]
        if not feeds:
            feeds, text = list(FEEDS), f"Words of {guid} alone. " * 30
        kept = self._come(chance.choice(feeds), guid, text)
        if is_decided:
            self._decide_elsewhere(kept, nearest)

    def _come(self, feed: str, guid: str, text: str, *, created_at: str | None = None) -> Kept:
        self.number += self.chance.randint(1_000, 1_000_000)
        at = created_at or instant(datetime.fromtimestamp(self.number / 1_000_000, UTC))
        row = {**item(feed, guid, at), "arrived": self.number, "content_html": f"<p>{text}</p>"}
        id = str(row["id"])
        add_items(self.database, [{**row, "title": f"Title {id}"}])
        self.database.query(
            "INSERT INTO sequences (name, value) VALUES ('items', CAST(? AS INTEGER))"
            " ON CONFLICT (name) DO UPDATE SET value = max(sequences.value, excluded.value)",
            [self.number],
        )
        kept = Kept(id, feed, guid, self.number, at, text, id, self.number)
        self.items[id] = kept
        self.waiting.add(id)
        return kept

    def _decide_elsewhere(self, kept: Kept, nearest: Kept | None) -> None:
        members = []
        if nearest is not None:
            kind = "text" if self.chance.random() < 0.4 else "event"
            article = kept.id if kind == "event" else nearest.article
            evidence = json.dumps({"kind": kind, "nearest": nearest.id})
            is_first = self.is_alone(nearest)
            self._join(kept, nearest, article, (StoredJoin(kind=kind, items=(nearest.id,)),))
            members += [_member(nearest)] if is_first else []
            joins = (Join(kind=kind, items=(nearest.id,)),)
            members.append(_member(kept, evidence=evidence, joins=joins))
        with hold(self.database, sql.ends(self.database)) as lease:
            lease.commit(members, arrived=kept.arrived)
        self.waiting.discard(kept.id)

    def is_alone(self, kept: Kept) -> bool:
        """True if it is in no story for all."""
        others = (each for each in self.items.values() if each is not kept and each.story == kept.story)
        return kept.story is None or (kept.is_said and not any(others))

    def begin(self, kept: Kept, *, is_back: bool = False) -> None:
        kept.story, kept.lead, kept.is_said = kept.id, kept.arrived + kept.later, False
        kept.joins, kept.ordinal, kept.is_moved = (), 0 if is_back else self._next(), False

    def _next(self) -> int:
        self.ordinal += 1
        return self.ordinal

    def _join(self, kept: Kept, nearest: Kept, article: str, joins: tuple[StoredJoin, ...]) -> None:
        if self.is_alone(nearest):
            self.begin(nearest)
        kept.is_said, kept.joins, kept.ordinal = False, joins, self._next()
        kept.story, kept.article, kept.lead = nearest.story, article, kept.arrived + kept.later
        for each in self.people:
            held = self.held(each, kept)
            if held is not None and held.items[0] in each.chosen:
                each.chosen.setdefault(kept.id, each.chosen[held.items[0]])
            if kept.feed in each.folders:
                self._see(each, kept, held)

    def _see(self, person: Person, kept: Kept, held: StoredJoin | None) -> None:
        assert kept.story is not None
        if held is not None:
            nearest = self.items[held.items[0]]
            story, article = person.views.get(nearest.id, (nearest.story, nearest.article))
            article = article if held.kind in COPIES else kept.id
        else:
            has_part = any(
                each.story == kept.story
                and not each.is_moved
                and (each.ordinal, each.arrived) < (kept.ordinal, kept.arrived)
                for each in self.mine(person, Scope())
            )
            story, article = f"{kept.id}-" if has_part else kept.story, kept.id
        assert story is not None
        if (story, article) != (kept.story, kept.article):
            person.views[kept.id] = story, article

    def _see_again(self, person: Person, stories: Iterable[str | None]) -> None:
        """The views of these stories are made anew, of what is there by now."""
        for story in {*stories} - {None}:
            members = [each for each in self.items.values() if each.story == story]
            placed = [
                Placed(
                    id=each.id,
                    feed=each.feed,
                    story=each.story or "",
                    joins=tuple(Join(kind=join.kind, items=join.items) for join in each.joins),
                    is_moved=each.is_moved,
                )
                for each in sorted(members, key=lambda each: (each.ordinal, each.arrived))
            ]
            for each in members:
                person.views.pop(each.id, None)
            for id, view in views.views(placed, {*person.folders}).items():
                if view != (self.items[id].story, self.items[id].article):
                    person.views[id] = view

    def held(self, person: Person, kept: Kept) -> StoredJoin | None:
        """The first join of an item that a person has."""

        def has(id: str) -> bool:
            found = self.items.get(id)
            return (
                found is not None
                and found.feed in person.folders
                and found.story == kept.story
                and (found.ordinal, found.arrived) < (kept.ordinal, kept.arrived)
            )

        return next((join for join in kept.joins if all(map(has, join.items))), None)

    def poll(self) -> None:
        """Decide what waits; what is stored is what was, and each new member follows the item that it is most
        like."""
        service.catch_up(self.database, self.objects, self.window)
        stored = {row["item_id"]: row for row in self.database.query("SELECT * FROM story_members").rows}
        waiting = (self.items[id] for id in self.waiting)
        for kept in sorted(waiting, key=lambda each: (each.created_at, each.feed, each.arrived)):
            self.decided += 1
            if kept.story is None and any(each.story == kept.id for each in self.items.values()):
                # It began a story that is still there, went, and came again.
                self.begin(kept, is_back=True)
            row = stored.get(kept.id)
            evidence = json.loads(row["evidence"] or "{}") if row else {}
            if row is not None and "nearest" in evidence:
                self.joined += 1
                nearest = self.items[evidence["nearest"]]
                assert row["article"] in (kept.id, nearest.article)
                self._join(kept, nearest, row["article"], stored_joins(row["joins"]))
        self.waiting.clear()
        assert {id: (row["story_id"], row["article"], row["lead"]) for id, row in stored.items()} == {
            each.id: (each.story, each.article, each.lead)
            for each in self.items.values()
            if each.story is not None
        }

    def lose_window(self) -> None:
        """The file is lost, or torn: the window is made again from what is stored."""
        self.window.write_bytes(self.window.read_bytes()[:-100] if self.window.exists() else b"none")
        if self.chance.random() < 0.5:
            self.window.unlink()

    def expire(self) -> None:
        if self.items:
            gone = self.items[self.chance.choice([*self.items])]
            self.database.query("DELETE FROM items WHERE id = ?", [gone.id])
            self._went(gone)

    def _went(self, gone: Kept) -> None:
        del self.items[gone.id]
        self.waiting.discard(gone.id)
        self.gone.append(gone)
        for each in self.people:
            each.read.discard(gone.id)
            each.views.pop(gone.id, None)
            for choices in (each.chosen, *each.before):
                choices.pop(gone.id, None)

    def replay(self) -> None:
        """An item that went comes back, under another number."""
        if self.gone:
            back = self.gone.pop(self.chance.randrange(len(self.gone)))
            self._come(back.feed, back.guid, back.text, created_at=back.created_at)

    def edit(self) -> None:
        """An item becomes another one, by its text; it stays where it is."""
        if self.items:
            edited, other = (self.chance.choice([*self.items.values()]) for _ in range(2))
            if edited.id not in self.waiting:
                edited.text = other.text
                self.database.query(
                    "UPDATE items SET content_html = ? WHERE id = ?", [f"<p>{other.text}</p>", edited.id]
                )

    def forget(self) -> None:
        """All leave a feed, the operator forgets it, and it comes again without its items."""
        feed = self.chance.choice(FEEDS)
        if all(len(each.folders.keys() - {feed}) for each in self.people):
            for each in self.people:
                self._leave(each, feed)
            begin_forget(self.database, feed)
            end_forget(self.database, feed)
            add_feeds(self.database, feed)
            for kept in [each for each in self.items.values() if each.feed == feed]:
                self._went(kept)

    # What users and the operator do

    def change_feeds(self, person: Person) -> None:
        """End a subscription, or begin one again: its items are unread then."""
        feed = self.chance.choice(FEEDS)
        if feed not in person.folders:
            found = subscribe_named(self.database, person.id, [feed], at=person.caller.clock())
            assert found == (1, 1)
            person.folders[feed] = None
            self._see_again(person, {each.story for each in self.items.values() if each.feed == feed})
        elif len(person.folders) > 1:
            self._leave(person, feed)

    def _leave(self, person: Person, feed: str) -> None:
        if feed in person.folders:
            assert unsubscribe(person.caller, [feed])
            del person.folders[feed]
            person.leading.discard(feed)
            self._see_again(person, {each.story for each in self.items.values() if each.feed == feed})
            person.read -= {each.id for each in self.items.values() if each.feed == feed}

    def switch(self, person: Person) -> None:
        person.has_stories = self.chance.random() < 0.7
        person.has_them_in_apps = self.chance.random() < 0.7
        change_preferences(
            person.caller,
            SomePreferences(stories=person.has_stories, stories_in_apps=person.has_them_in_apps),
        )

    def operate(self) -> None:
        """The operator says "not the same", or "the same", for all."""
        if len(self.items) < 2:
            return
        one, other = self.chance.sample([*self.items.values()], 2)
        if self.chance.random() < 0.5:
            members = [each for each in self.items.values() if each.story == one.story]
            is_done = moves.split(self.database, self.objects, self.window, one.id)
            assert is_done == (one.story is not None and len(members) > 1)
            if is_done:
                was, one.story, one.is_moved = one.story, f"{one.id}~", False
                for person in self.people:
                    self._see_again(person, (was, one.story))
            return
        story, theirs = one.story or one.id, other.story or other.id
        is_done = moves.join(self.database, self.objects, self.window, one.id, other.id)
        assert is_done == (story != theirs)
        if is_done:
            for each in (one, other):
                if self.is_alone(each):
                    self.begin(each)
            for each in self.items.values():
                if each.story == theirs:
                    each.story, each.is_moved = story, True
            for person in self.people:
                self._see_again(person, (story, theirs))

    def mine(self, person: Person, scope: Scope) -> list[Kept]:
        wanted = {
            feed for feed, folder in person.folders.items() if scope.folder is None or folder == scope.folder
        }
        return [
            each for each in self.items.values() if each.feed in wanted and scope.feed_id in (None, each.feed)
        ]

    def _mark(self, person: Person, numbers: Iterable[int]) -> None:
        """Note as read what has these numbers, in the feeds of a person."""
        known = set(numbers)
        person.read.update(each.id for each in self.mine(person, Scope()) if each.arrived in known)

    def story(self, person: Person, kept: Kept) -> str:
        return person.chosen.get(kept.id) or person.views.get(kept.id, (kept.story,))[0] or kept.id

    def article(self, person: Person, kept: Kept) -> str:
        return person.views.get(kept.id, ("", kept.article))[1]

    @staticmethod
    def paired(one: Kept, other: Kept) -> bool:
        """True if one of them has a join with the other one alone."""
        return any((join.items == (other.id,)) for join in one.joins) or any(
            (join.items == (one.id,)) for join in other.joins
        )

    def entries(
        self, person: Person, scope: Scope, *, unread: bool, folds: bool = True
    ) -> dict[int, list[Kept]]:
        """By the arrival number of the item that a list shows, the items of its story."""
        stories: dict[str, list[Kept]] = {}
        for each in self.mine(person, scope):
            # Until it is decided, one that came again is alone, whatever has its name.
            is_member = folds and (each.story is not None or each.id in person.chosen)
            stories.setdefault(self.story(person, each) if is_member else f"{each.id} alone", []).append(each)
        found = {}
        for members in stories.values():
            candidates = members
            if unread:
                # A copy of what was read before is no news.
                read = [each for each in members if each.id in person.read]
                candidates = [
                    each
                    for each in members
                    if each not in read
                    and not any(
                        self.article(person, one) == self.article(person, each)
                        and one.arrived < each.arrived
                        and self.paired(one, each)
                        for one in read
                    )
                ]
            if candidates:
                shown = min(candidates, key=lambda one: (one.feed not in person.leading, one.lead))
                found[shown.arrived] = members
        return found

    def check(self) -> None:
        self.poll()
        for person in self.people:
            self.check_app(person)
            ask, user = person.caller.ask, person.id
            hidden = ask(hidden_unread(user))
            counts = {each.feed_id: each.unread for each in ask(unread_counts(user))}
            assert counts == {
                feed: sum(each.feed == feed and each.id not in person.read for each in self.items.values())
                for feed in person.folders
            }
            for scope in SCOPES:
                wanted = self.entries(person, scope, unread=True, folds=person.has_stories)
                fold = Fold(scope=scope) if person.has_stories else None
                unread = ask(arrival_numbers(user, Filter(scope=scope, is_read=False, fold=fold), EVERY))
                assert set(unread.numbers) == set(wanted)
                of_scope = [feed for feed, folder in person.folders.items() if scope.folder in (None, folder)]
                less = hidden.of_all if scope.folder is None else hidden.of_folders.get(scope.folder, 0)
                assert sum(counts[feed] for feed in of_scope) - less == len(wanted)
                every = self.entries(person, scope, unread=False, folds=person.has_stories)
                page = Page(limit=500, order=self.chance.choice(ORDERS))
                rows = ask(items(user, Filter(scope=scope, fold=fold), page)).items
                assert {row.arrived for row in rows} == set(every)
                rows = ask(items(user, Filter(scope=scope, is_read=False, fold=fold), page)).items
                assert {row.arrived for row in rows} == set(wanted)
                if not person.has_stories:
                    continue
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
        user, folds = person.id, person.is_folded
        assert person.caller.ask(in_apps(user)).is_folded == folds
        news = self.entries(person, Scope(), unread=True, folds=folds)
        all_of_them = self.entries(person, Scope(), unread=False, folds=folds)
        every = {**news, **({} if is_read is False else all_of_them)}
        filter = Filter(scope=scope, is_read=is_read, fold=Fold(with_news=True) if folds else None)
        listed = person.caller.ask(items(user, filter, EVERY)).items
        wanted = {each.arrived for each in self.mine(person, scope) if each.arrived in every}
        assert {row.arrived for row in listed} == wanted
        assert set(person.caller.ask(arrival_numbers(user, filter, EVERY)).numbers) == wanted
        if not folds:
            return filter
        rows, ends = as_entries(person.caller, person.app, listed)
        for row in rows:
            assert row.is_read == (row.arrived not in news)
            named = {each.id: each.arrived for each in every[row.arrived] if each.id != row.id}
            assert (row.id in ends) == bool(named)
            for each in self.items.values():
                assert (f"Title {each.id}" in ends.get(row.id, b"").decode()) == (each.id in named)
            shown = next(each for each in self.items.values() if each.id == row.id)
            person.sent.setdefault(row.arrived, set()).update(
                number for id, number in named.items() if self.paired(shown, self.items[id])
            )
        return filter

    def check_app(self, person: Person) -> None:
        user = person.id
        counts, hidden = person.caller.ask(of_one_moment(unread_counts(user), hidden_unread(user)))
        for scope in (*SCOPES, *(Scope(feed_id=feed) for feed in person.folders)):
            self.in_app(person, scope, is_read=None)
            filter = self.in_app(person, scope, is_read=False)
            counted = sum(
                each.unread - (hidden.of_feeds.get(each.feed_id, 0) if person.is_folded else 0)
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
        if person.sent:
            number = chance.choice([*person.sent])
            mark_entries(person.caller, person.app, [number], ItemMarks(is_read=True))
            self._mark(person, {number, *(person.sent[number] if person.is_folded else ())})

    def read_all_in_app(self, person: Person) -> None:
        chance = self.chance
        scope = chance.choice((*SCOPES, Scope(feed_id=chance.choice([*person.folders]))))
        self.in_app(person, scope, is_read=False)
        seen = self.number
        if chance.random() < 0.5:
            self.arrive()
        mine = [
            each.arrived
            for each in self.mine(person, scope)
            if each.arrived <= seen and each.id not in person.read
        ]
        mark_shown_in_app(person.caller, person.app, Shown(scope=scope, up_to=seen))
        self._mark(person, mine)
        if person.is_folded:
            self._mark(person, {other for number in mine for other in person.sent.get(number, ())})

    def read_entry(self, person: Person) -> None:
        scope = self.chance.choice(SCOPES)
        wanted = self.entries(person, scope, unread=True, folds=person.has_stories)
        if wanted:
            number, members = self.chance.choice([*wanted.items()])
            shown = next(each for each in members if each.arrived == number)
            listed = [each.id for each in members if each is shown or self.paired(shown, each)]
            mark_items(person.caller, listed, ItemMarks(is_read=True))
            person.read.update(listed)

    def read_item(self, person: Person) -> None:
        mine, is_read = self.mine(person, Scope()), self.chance.random() < 0.5
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
                if one.story is None:
                    one.story, one.lead, one.is_said = one.id, one.arrived, True
        elif what < 0.7:
            story, theirs = self.story(person, one), self.story(person, other)
            is_done = acts.together(person.caller, one.id, other.id)
            assert is_done == (story != theirs)
            if is_done:
                for each in everything:
                    # One that came again and is not decided has the name of its story, and is not in it.
                    is_in = each in (one, other) or self._kept_story(person, each) is not None
                    if is_in and self.story(person, each) in (story, theirs):
                        person.chosen[each.id] = story
                        if each.story is None:
                            each.story, each.lead, each.is_said = each.id, each.arrived + each.later, True
                person.before.append(before)
        elif person.before:
            assert acts.undo(person.caller) is not None
            earlier = person.before.pop()
            person.chosen = self._stored_choices(person)
            for id, chosen in earlier.items():
                assert person.chosen.get(id) == chosen

    def _kept_story(self, person: Person, each: Kept) -> str | None:
        return self.story(person, each) if each.story is not None or each.id in person.chosen else None

    def _stored_choices(self, person: Person) -> dict[str, str]:
        rows = self.database.query(
            "SELECT item_id, story_id FROM story_choices WHERE user_id = ?", [person.id]
        ).rows
        return {row["item_id"]: row["story_id"] for row in rows}

    def step(self) -> None:
        """One event of the history."""
        chance = self.chance
        person = chance.choice(self.people)
        match chance.randrange(22):
            case 0 | 1 | 2 | 3:
                self.arrive()
            case 4:
                self.read_entry(person)
            case 5 | 6:
                self.read_item(person)
            case 7:
                self.read_all(person)
            case 8 | 9:
                self.say(person)
            case 10 | 11:
                self.read_in_app(person)
            case 12:
                self.read_all_in_app(person)
            case 13:
                self.prefer(person)
            case 14:
                self.expire()
            case 15:
                self.lose_window()
            case 16 | 17:
                self.operate()
            case 18:
                self.replay()
            case 19:
                self.edit()
            case 20:
                self.change_feeds(person)
            case _:
                chance.choice((self.forget, lambda: self.switch(person), self.poll))()


def world(database: Database, window: Path, seed: int) -> World:
    """The beginning of a history: two users with four feeds each, of five."""
    window.unlink(missing_ok=True)
    for table in ("story_members", "users", "items"):
        database.query(f"DELETE FROM {table}")
    database.query("DELETE FROM installation WHERE name = 'stories'")
    chance = random.Random(seed)
    people = []
    clock = Clock()
    for name in ("ada", "bob"):
        caller = signed_in(database, name, clock=clock)
        database.query("UPDATE users SET preferences = ? WHERE id = ?", [PREFERENCES, caller.user_id])
        feeds = chance.sample(FEEDS, 4)
        folders = {feed: chance.choice(FOLDERS) for feed in feeds}
        for feed, folder in folders.items():
            database.query(
                """INSERT INTO subscriptions (user_id, feed_id, folder, read_up_to, added_at)
                VALUES (?, ?, ?, 0, '2026-05-01T00:00:00Z')""",
                [caller.user_id, feed, folder],
            )
        people.append(Person(caller, folders))
    [row] = database.query("SELECT coalesce(max(value), 0) AS n FROM sequences WHERE name = 'items'").rows
    begin = max(int(row["n"]), int(time.time() - 86_400) * 1_000_000)
    return World(database, FolderStore(window.with_name("objects")), window, chance, people, begin, begin)


def _member(kept: Kept, *, evidence: str | None = None, joins: tuple[Join, ...] = ()) -> sql.Member:
    assert kept.story is not None
    return sql.Member(
        item_id=kept.id,
        story_id=kept.story,
        article=kept.article,
        later=kept.later,
        evidence=evidence,
        joins=joins,
    )
