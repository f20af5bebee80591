"""Random histories with a hostile feed. Its items repeat the texts of others, to tie different ones:
it hides no unread item, and none is read that was not opened."""

import random
from pathlib import Path

import pytest

from rss_pipeline.features.stories import service
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.edit import unsubscribe
from rss_pipeline.reader.item_queries import Filter, Fold, Page, Scope, items, read_with, together
from rss_pipeline.reader.mark import ItemMarks, mark_items
from rss_pipeline.reader.subscribe import subscribe_named
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.stories import JOINS, stored_joins
from rss_pipeline_tests.features.stories.stored import arrive
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.pipeline import Clock
from rss_pipeline_tests.support.stored import add_feeds

PLACES = ("Ravensdale", "Tarnwick", "Brattholm", "Vardhavn", "Ostermoor", "Kielgate")
THINGS = (
    (
        "Landslide blocks road into {0}",
        "A landslide blocked the only road into {0} on Tuesday; {1} people wait.",
    ),
    (
        "Museum of {0} opens after nine years",
        "The museum of {0} showed {1} paintings to its first guests today.",
    ),
    (
        "Bakers of {0} win a prize",
        "Bakers of {0} took first place with {1} kinds of bread, judges of the fair said.",
    ),
    (
        "Ferry of {0} stopped",
        "The ferry of {0} does not run, and {1} cars wait; its engine failed in the night.",
    ),
)
HOSTILE = "h"
FEEDS = ("a", "b", "c", HOSTILE)


class History:
    """Items of honest feeds and of a hostile one, and two people who read, leave and subscribe."""

    def __init__(self, database: Database, folder: Path, seed: int) -> None:
        self.database, self.window = database, folder / "stories.window"
        self.objects = FolderStore(folder / "objects")
        self.chance = random.Random(seed)
        self.window.unlink(missing_ok=True)
        for table in ("story_members", "users", "items"):
            database.query(f"DELETE FROM {table}")
        database.query("DELETE FROM installation WHERE name = 'stories'")
        database.query("DELETE FROM sequences WHERE name = 'items'")
        self.texts: list[tuple[str, str]] = []
        self.minutes = -500.0
        self.opened: dict[str, set[str]] = {}
        self.people = [signed_in(database, name, clock=Clock()) for name in ("ada", "bob")]
        for each, feeds in zip(self.people, (FEEDS[:3], FEEDS), strict=True):
            database.query(
                """UPDATE users SET preferences = '{"stories":true,"stories_in_apps":true}' WHERE id = ?""",
                [each.user_id],
            )
            self.opened[each.user_id] = set()
            subscribe_named(database, each.user_id, feeds, at=each.clock())

    def arrive(self) -> None:
        """An item comes in: news, a copy of some, or a hostile one with the texts of several."""
        self.minutes += self.chance.random() * 5
        feed = self.chance.choice(FEEDS)
        if feed == HOSTILE and len(self.texts) > 1:
            one, other = self.chance.sample(self.texts, 2)
            text = self.chance.choice((one, other, (one[0], other[1]), (one[0], f"{one[1]} {other[1]}")))
        elif self.texts and self.chance.random() < 0.4:
            text = self.chance.choice(self.texts)
        else:
            title, body = self.chance.choice(THINGS)
            place, many = self.chance.choice(PLACES), self.chance.randint(12, 90)
            text = title.format(place), f"<p>{body.format(place, many)}</p>"
            self.texts.append(text)
        arrive(self.database, feed, str(self.minutes), text, minutes=self.minutes)

    def poll(self) -> None:
        service.catch_up(self.database, self.objects, self.window)

    def open(self, person: Caller) -> None:
        """Open an entry of Unread: it is read with what the page marks beside it."""
        unread = Filter(is_read=False, fold=Fold())
        rows = person.ask(items(person.user_id, unread, Page(limit=100))).items
        if rows:
            id = self.chance.choice(rows).id
            beside = person.ask(together(person.user_id, Scope(), [id])).get(id, ())
            self.opened[person.user_id].add(id)
            mark_items(person, [id, *(each.id for each in read_with(beside, id))], ItemMarks(is_read=True))

    def change_feeds(self, person: Caller) -> None:
        feed = self.chance.choice(FEEDS)
        if not unsubscribe(person, [feed]):
            subscribe_named(self.database, person.user_id, [feed], at=person.clock())

    def check(self) -> None:
        self.poll()
        rows = self.database.query(
            f"SELECT m.item_id, {JOINS.format('m')} AS joins FROM story_members AS m"
        ).rows
        pairs = {
            frozenset((row["item_id"], *join.items))
            for row in rows
            for join in stored_joins(row["joins"])
            if len(join.items) == 1
        }
        for person in self.people:
            user, opened = person.user_id, self.opened[person.user_id]
            every = person.ask(items(user, Filter(), Page(limit=500))).items
            shown = person.ask(items(user, Filter(is_read=False, fold=Fold()), Page(limit=500))).items
            entries = person.ask(together(user, Scope(), [row.id for row in shown]))
            listed = {row.id for row in shown} | {each.id for some in entries.values() for each in some}
            read = {row.id for row in every if row.is_read}
            for row in every:
                is_tied_to = {id for pair in pairs if row.id in pair for id in pair} - {row.id}
                assert row.is_read or row.id in listed or is_tied_to & read, "hidden"
                assert not row.is_read or row.id in opened or is_tied_to & opened, "read"


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 1_050), marks=pytest.mark.soak)], ids=["50", "1000"]
)
def test_a_hostile_feed_hides_and_reads_nothing(tmp_path: Path, seeds: range) -> None:
    database = migrated(tmp_path / "rss.sqlite")
    add_feeds(database, *FEEDS)
    for seed in seeds:
        history = History(database, tmp_path, seed)
        for _ in range(18):
            history.arrive()
            person = history.chance.choice(history.people)
            match history.chance.randrange(6):
                case 0 | 1:
                    history.poll()
                case 2 | 3:
                    history.open(person)
                case 4:
                    history.change_feeds(person)
        history.check()
    database.close()


ONE = (
    "Landslide blocks road into Ravensdale",
    "<p>" + "A landslide has blocked the road into Ravensdale. " * 4,
)
OTHER = (
    "Museum of Tarnwick opens",
    "<p>" + "The museum of Tarnwick showed its paintings to the first guests. " * 4,
)
TIE = (ONE[0], f"{ONE[1]} {OTHER[1]}")


@pytest.mark.parametrize("first", [ONE, OTHER])
@pytest.mark.parametrize("has_hostile", [False, True])
def test_what_a_hostile_item_ties_is_unread_until_it_is_opened(
    database: Database, objects: FolderStore, window: Path, first: tuple[str, str], has_hostile: bool
) -> None:
    """In both orders; with a person who has the hostile feed, leaves it, and subscribes to it again."""
    add_feeds(database, *FEEDS)
    ada = signed_in(database, "ada", clock=Clock())
    database.query("""UPDATE users SET preferences = '{"stories":true}'""")
    subscribe_named(database, ada.user_id, ["a", "b", *([HOSTILE] if has_hostile else [])], at=ada.clock())
    a = arrive(database, "a", "1", first, minutes=-30)
    arrive(database, HOSTILE, "1", TIE, minutes=-20)
    b = arrive(database, "b", "1", OTHER if first == ONE else ONE, minutes=-10)
    service.catch_up(database, objects, window)

    def unread() -> set[str]:
        rows = ada.ask(items(ada.user_id, Filter(is_read=False, fold=Fold()), Page(limit=9))).items
        found = ada.ask(together(ada.user_id, Scope(), [row.id for row in rows]))
        return {row.id for row in rows} | {each.id for some in found.values() for each in some if each.unread}

    assert {a, b} <= unread()
    beside = ada.ask(together(ada.user_id, Scope(), [a])).get(a, ())
    mark_items(ada, [a, *(each.id for each in read_with(beside, a))], ItemMarks(is_read=True))
    assert b in unread()
    for _ in range(2):
        if not unsubscribe(ada, [HOSTILE]):
            subscribe_named(database, ada.user_id, [HOSTILE], at=ada.clock())
        assert b in unread()
