"""The items that are read for a topic: few, and the choice is the one among all rows."""

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Member
from rss_pipeline.features.topics.candidates import read_chosen, with_texts
from rss_pipeline.features.topics.choice import TopicItem, choose
from rss_pipeline.features.topics.model import Candidate, SourceFeed, TopicSpec
from rss_pipeline.storage.database import Database, Result, Row, Statement, Value
from rss_pipeline_tests.features.topics.stored import topic
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item

START = datetime.fromisoformat(FIRST)


class Counting:
    """A Database that keeps the rows which were read."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.rows: list[tuple[str, Row]] = []
        self.queries: list[str] = []

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        results = self._database.batch(statements)
        self.queries += [statement.name for statement in statements]
        for statement, result in zip(statements, results, strict=True):
            self.rows += [(statement.name, row) for row in result.rows]
        return results

    def close(self) -> None: ...

    def asked(self, name: str) -> int:
        return self.queries.count(name)

    def read(self, name: str) -> int:
        return sum(each == name for each, _ in self.rows)


def read(database: Database, spec: TopicSpec) -> list[TopicItem]:
    """The items of a topic, with their texts."""
    return list(with_texts(database, spec, read_chosen(database, spec)))


def at(hours: float) -> str:
    return instant(START + timedelta(hours=hours))


def all_candidates(database: Database, spec: TopicSpec) -> list[Candidate]:
    """Each row of each member, read without any limit."""
    found = []
    for number, member in enumerate(spec.of):
        rows = database.query(
            "SELECT * FROM items WHERE feed_id = ? AND (? = '' OR EXISTS (SELECT 1 FROM item_streams AS s"
            " WHERE s.item_id = items.id AND s.stream = ?))",
            [member.feed_id, member.stream or "", member.stream or ""],
        ).rows
        source = SourceFeed(id=member.feed_id, url=f"https://{member.feed_id}.example/feed.xml")
        found += [
            Candidate(
                member=number,
                feed=source,
                item_id=row["id"],
                guid=row["guid"],
                link=row["link"],
                pub_date=datetime.fromisoformat(row["pub_date"]),
                created_at=datetime.fromisoformat(row["created_at"]),
                is_dated=row["pub_date_source"] == "feed",
                is_of_first_document=row["created_at"] <= FIRST,
            )
            for row in rows
        ]
    return found


def shown(spec: TopicSpec, candidates: Sequence[Candidate]) -> list[tuple[str, int, list[int]]]:
    return outline(choose(spec, candidates))


def outline(chosen: Sequence[TopicItem]) -> list[tuple[str, int, list[int]]]:
    return [
        (each.candidate.item_id, each.candidate.member, [copy.member for copy in each.also_in])
        for each in chosen
    ]


def random_items(chance: random.Random, feed_id: str) -> list[Row]:
    """Documents of a feed: some items without date, some of the future, some that other feeds have too."""
    found = []
    hours = 0.0
    for document in range(chance.randint(0, 12)):
        for number in range(chance.choice([1, 1, 2, 30 if document == 0 else 4])):
            guid = f"{document}-{number}"
            published = hours - chance.choice([0, 0.5, 3, 100, -500])
            shared = f"https://shared.example/{chance.randint(0, 8)}"
            found.append(
                item(
                    feed_id,
                    guid,
                    at(hours),
                    pub_date=at(published),
                    pub_date_source=chance.choice(["feed", "feed", "fetched"]),
                    link=shared if chance.random() < 0.3 else f"https://{feed_id}.example/{guid}",
                )
            )
        hours += chance.choice([1, 24, 300])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_choice_is_that_among_all_rows(pipeline: Pipeline, seed: int) -> None:
    chance = random.Random(seed)
    ids = [f"f{number}" for number in range(6)]
    add_feeds(pipeline.database, *ids)
    for id in ids:
        rows = random_items(chance, id)
        some = [row for row in rows if chance.random() < 0.4]
        others = [row for row in rows if row not in some]
        for chosen, streams in ((some, ["s"]), (others, [])):
            if chosen:
                add_items(pipeline.database, chosen, streams=streams)
    members = [*ids, "f0/s", "f1/s", "f2/s", "f3/none"]
    for _ in range(12):
        of = chance.sample(members, chance.randint(1, 8))
        spec = topic("t", *of, each=chance.choice([None, None, 1, 3]), items=chance.choice([1, 3, 10, 50]))
        read = read_chosen(pipeline.database, spec)
        assert outline(read) == shown(spec, all_candidates(pipeline.database, spec)), spec


def test_of_many_items_few_are_read(pipeline: Pipeline) -> None:
    """Twenty feeds with a year of items, of which one is busy: the rest of the year is not looked at."""
    ids = [f"f{number}" for number in range(20)]
    add_feeds(pipeline.database, *ids)
    add_items(
        pipeline.database,
        (
            item(id, f"{n}", at(6_000 - n * (1 if id == "f0" else 20) + k / 100))
            for k, id in enumerate(ids)
            for n in range(300)
        ),
    )
    database = Counting(pipeline.database)
    spec = topic("t", *ids)
    assert len(read(database, spec)) == 50
    assert database.read("find the newest items") <= 300
    assert database.asked("find the newest items") == 2, "the second time of the busy feed only"
    assert database.read("read items of a topic") == 50
    latest = Counting(pipeline.database)
    spec = topic("t", *ids, each=1)
    assert len(read_chosen(latest, spec)) == 20
    assert latest.read("find the newest items") <= 20 * 11


def test_an_index_leads_to_the_newest_items(pipeline: Pipeline) -> None:
    from rss_pipeline.features.topics.candidates import WantedMember, places

    wanted = [WantedMember(index=n, member=Member.of(of)) for n, of in enumerate(("a", "a/s"))]
    for statement, index in zip(places(wanted, 10), ("items_age", "PRIMARY KEY"), strict=True):
        plan = pipeline.database.query(f"EXPLAIN QUERY PLAN {statement.sql}", statement.params).rows
        steps = [row["detail"] for row in plan]
        assert not [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step], steps
        assert any(index in step for step in steps), steps
    # The order of the index is the order wanted.
    [of_feed, _] = places(wanted, 10)
    plan = pipeline.database.query(f"EXPLAIN QUERY PLAN {of_feed.sql}", of_feed.params).rows
    assert not [row for row in plan if "TEMP B-TREE" in row["detail"]]


@pytest.mark.parametrize("private", [{"needs_access": 1}, {"allow_private": 1}])
def test_a_feed_that_became_private_has_no_items_in_a_topic_that_is_not_public(
    pipeline: Pipeline, private: dict[str, Any]
) -> None:
    add_feeds(pipeline.database, "a", **private)
    add_feeds(pipeline.database, "b")
    add_items(pipeline.database, [item("a", "1", at(1)), item("b", "1", at(2))])
    spec = topic("t", "a", "b")
    assert [each.candidate.feed.id for each in read_chosen(pipeline.database, spec)] == ["b"]
    public = topic("t", "a", "b", public=True)
    assert {each.candidate.feed.id for each in read_chosen(pipeline.database, public)} == {"a", "b"}


def test_the_items_shown_have_their_texts(pipeline: Pipeline) -> None:
    add_feeds(pipeline.database, "a")
    add_items(
        pipeline.database,
        [item("a", f"{n}", at(n), authors='["Ann", "Bob"]', categories='["c"]') for n in range(1, 5)],
    )
    newest, _ = (each.candidate for each in read(pipeline.database, topic("t", "a", items=2)))
    assert (newest.title, newest.authors, newest.categories) == ("Item 4 of a", ("Ann", "Bob"), ("c",))
    assert newest.content_html == "<p>Text of 4</p>"


def test_of_a_text_no_more_is_read_than_can_be_published(pipeline: Pipeline) -> None:
    add_feeds(pipeline.database, "a")
    add_items(pipeline.database, [item("a", "1", at(1), content_html="x" * 1_500_000, summary="y" * 30_000)])
    [full] = (each.candidate for each in read(pipeline.database, topic("t", "a")))
    summaries = topic("t", "a", content="summary")
    [short] = (each.candidate for each in read(pipeline.database, summaries))
    assert (len(full.content_html or ""), len(full.summary or "")) == (1_000_001, 30_000)
    assert (len(short.content_html or ""), len(short.summary or "")) == (20_000, 20_000)


def test_long_items_are_read_when_they_are_reached_and_few_at_once(pipeline: Pipeline) -> None:
    add_feeds(pipeline.database, "a")
    lengths = {1: 400_000, 2: 5, 3: 200_000, 4: 200_000, 5: 100_000, 6: 5}
    for n, length in lengths.items():
        add_items(pipeline.database, [item("a", f"{n}", at(n), content_html=f"{n}" * length)])
    database = Counting(pipeline.database)
    spec = topic("t", "a")
    texts = with_texts(database, spec, read_chosen(database, spec))
    asked = []
    for n, each in zip((6, 5, 4, 3, 2, 1), texts, strict=True):
        assert each.candidate.content_html == f"{n}" * lengths[n]
        asked.append(database.asked("read long items of a topic"))
    assert asked == [0, 1, 1, 1, 1, 2], "half a million characters at once, as they are reached"
