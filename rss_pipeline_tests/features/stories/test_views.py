"""The stories of users: the statements store what the plain function says, and nothing where that is the
story of all."""

import random
from dataclasses import dataclass, field
from itertools import count

from rss_pipeline.features.stories import sql, views
from rss_pipeline.features.stories.lease import hold
from rss_pipeline.features.stories.model import COPIES, Join
from rss_pipeline.features.stories.views import Placed
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.features.stories.stored import arrive
from rss_pipeline_tests.storage.subscriptions.readers import add_user
from rss_pipeline_tests.support.stored import add_feeds

FEEDS = "abcde"
KINDS = (*COPIES, "event")


def test_an_item_is_of_the_story_of_the_first_of_its_joins_that_a_person_has() -> None:
    """A hostile feed h ties two items that share nothing."""
    first = Placed(id="1", feed="a", story="1")
    tie = Placed(id="2", feed="h", story="1", joins=(Join(kind="event", items=("1",)),))
    last = Placed(id="3", feed="b", story="1", joins=(Join(kind="text", items=("2",)),))
    assert views.views([first, tie, last], {"a", "b"}) == {"1": ("1", "1"), "3": ("3-", "3")}
    assert views.views([first, tie, last], {"a", "b", "h"}) == {
        "1": ("1", "1"),
        "2": ("1", "2"),
        "3": ("1", "2"),
    }
    assert views.views([first, tie, last], {"h", "b"}) == {"2": ("1", "2"), "3": ("1", "2")}
    # Of several that only together are a reason, all are needed.
    joint = Placed(id="4", feed="a", story="1", joins=(Join(kind="event", items=("1", "2")),))
    assert views.views([first, tie, joint], {"a"})["4"] == ("4-", "4")
    assert views.views([first, tie, joint], {"a", "h"})["4"] == ("1", "4")
    # An operator's word is for everybody.
    moved = Placed(id="5", feed="b", story="1", is_moved=True)
    assert views.views([first, moved], {"a", "b"})["5"] == ("1", "5")


@dataclass
class World:
    database: Database
    chance: random.Random
    minutes: "count[int]"
    members: list[Placed] = field(default_factory=list)
    """In the order of the decisions."""
    feeds: dict[str, set[str]] = field(default_factory=dict)
    """By user."""

    def decide(self) -> None:
        """Some items come in, and each joins some of the earlier ones, or begins a story."""
        new = []
        for _ in range(self.chance.randint(1, 4)):
            feed, place = self.chance.choice(FEEDS), next(self.minutes)
            id = arrive(self.database, feed, str(place), ("A title", "A text"), minutes=place / 100)
            placed = Placed(id=id, feed=feed, story=id)
            if self.members and self.chance.random() < 0.8:
                story = self.chance.choice(self.members).story
                others = [each.id for each in self.members if each.story == story]
                some = self.chance.sample(others, min(len(others), self.chance.randint(1, 3)))
                joins = tuple(Join(kind=self.chance.choice(KINDS), items=(each,)) for each in some)
                if len(some) > 1 and self.chance.random() < 0.2:
                    joins = (Join(kind="event", items=tuple(some)),)
                joins = tuple(sorted(joins, key=lambda join: join.kind not in COPIES))
                placed = Placed(id=id, feed=feed, story=story, joins=joins)
            self.members.append(placed)
            new.append(placed)
        articles = {id: article for id, (_, article) in views.views(self.members, {*FEEDS}).items()}
        members = [
            sql.Member(
                item_id=each.id,
                story_id=each.story,
                article=articles[each.id],
                later=0,
                evidence=None,
                joins=each.joins,
            )
            for each in new
        ]
        with hold(self.database, sql.ends(self.database)) as lease:
            lease.commit(members)

    def move(self) -> None:
        """An operator puts a story, or one item, into another one."""
        if len(self.members) < 2:
            return
        one, other = self.chance.sample(self.members, 2)
        if one.story == other.story:
            moved = {one.id: Placed(id=one.id, feed=one.feed, story=f"{one.id}~", joins=one.joins)}
            kind = "first"
        else:
            kind = "operator"
            moved = {
                each.id: Placed(
                    id=each.id, feed=each.feed, story=other.story, joins=each.joins, is_moved=True
                )
                for each in self.members
                if each.story == one.story
            }
        was = one.story
        self.members = [moved.get(each.id, each) for each in self.members]
        with hold(self.database, sql.ends(self.database)) as lease:
            evidence = f'{{"kind":"{kind}"}}'
            lease.commit(
                moved=[
                    sql.Moved(item_id=each.id, story_id=each.story, was=was, evidence=evidence)
                    for each in moved.values()
                ]
            )

    def lose(self) -> None:
        """An item goes."""
        if self.members:
            gone = self.chance.choice(self.members)
            self.members.remove(gone)
            self.database.query("DELETE FROM items WHERE id = ?", [gone.id])
            self.database.batch(views.of_stories([gone.story]))

    def subscribe(self) -> None:
        user, some = self.chance.choice([*self.feeds]), self.chance.sample(FEEDS, 2)
        for feed in some:
            if feed in self.feeds[user]:
                self.database.query(
                    "DELETE FROM subscriptions WHERE user_id = ? AND feed_id = ?", [user, feed]
                )
            else:
                self.begin(user, feed)
            self.feeds[user] ^= {feed}
        self.database.batch(views.of_feeds(some, user if self.chance.random() < 0.5 else None))

    def begin(self, user: str, feed: str) -> None:
        self.database.query(
            "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) VALUES (?, ?, 0, 'now')",
            [user, feed],
        )

    def check(self) -> None:
        rows = self.database.query("SELECT item_id, story_id, article FROM story_members").rows
        of_all = {row["item_id"]: (row["story_id"], row["article"]) for row in rows}
        for user, feeds in self.feeds.items():
            rows = self.database.query("SELECT * FROM story_views WHERE user_id = ?", [user]).rows
            stored = {row["item_id"]: (row["story_id"], row["article"]) for row in rows}
            wanted = views.views(self.members, feeds)
            assert stored == {id: view for id, view in wanted.items() if view != of_all[id]}


def test_the_statements_store_what_the_function_says(database: Database) -> None:
    add_feeds(database, *FEEDS)
    for user in ("ann", "bob", "all"):
        add_user(database, user)
    for seed in range(10 if isinstance(database, SqliteDatabase) else 1):
        for table in ("story_members", "subscriptions", "items"):
            database.query(f"DELETE FROM {table}")
        chance = random.Random(seed)
        world = World(database, chance, count(seed * 1000))
        for user in ("ann", "bob", "all"):
            world.feeds[user] = {*FEEDS} if user == "all" else {*chance.sample(FEEDS, 3)}
            for feed in world.feeds[user]:
                world.begin(user, feed)
        for _ in range(8):
            world.decide()
            assert database.query("SELECT * FROM story_views WHERE user_id = 'all'").rows == []
            world.check()
        for _ in range(16):
            chance.choice((world.decide, world.decide, world.move, world.lose, world.subscribe))()
            world.check()
