"""Streams in the database: members with the items, the state that documents leave, and a changed selector."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import FeedHeader, Item, item_id
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.collector.models.stream import FieldSelector, StreamSpec
from rss_pipeline.collector.models.topic import Member, TopicSpec
from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.pipeline.streams.refresh import Refreshed, refresh
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.database import MAX_REQUEST_BYTES, Database, Result, Statement, as_json, as_request
from rss_pipeline.storage.items import members, streams, unjudged
from rss_pipeline.storage.topics import topics
from rss_pipeline_tests.storage.values import (
    DAY,
    HOUR,
    NOW,
    change,
    claim_one,
    closing,
    inserts,
    item,
    register,
    response,
    spec,
    visit,
)

JANE = FieldSelector(author=("Jane",))


def by(author: str) -> FieldSelector:
    return FieldSelector(author=(author,))


def stream_specs(**selectors: FieldSelector | str) -> tuple[StreamSpec, ...]:
    return tuple(StreamSpec(name=name, selector=selector) for name, selector in selectors.items())


def parsed(
    some: Sequence[Item], members: Mapping[str, Iterable[str]], *, at: datetime = NOW, **fields: Any
) -> Parsed:
    """A document of the feed `a` with these items; `members` are guids by the name of the stream."""
    return Parsed(
        document=Document(response=response(at=at), path=Path("body"), body_bytes=9, content_hash="hash"),
        path=Path("rows"),
        header=FeedHeader(format="rss20", title=None, link=None, charset="utf-8", charset_rule="utf-8"),
        items_seen=len(some),
        duplicate_guids=0,
        dropped_items=0,
        bad_dates=(),
        **{
            "stream_members": {
                name: tuple(item_id("a", guid) for guid in guids) for name, guids in members.items()
            },
            **fields,
        },
    )


def store(
    database: Database,
    some: Sequence[Item],
    members: Mapping[str, Iterable[str]],
    *,
    at: datetime = NOW,
    claimed: tuple[Feed, str] | None = None,
    **fields: Any,
) -> None:
    """Visit the feed `a`: the statements of the op store, in one batch."""
    feed, token = claimed or claim_one(database, now=at)
    document = parsed(some, members, at=at, **fields)
    judgement = streams.judgement_of(feed, document, token=token)
    ids = [item_id("a", each.guid) for each in some]
    groups = [statement for group in judgement.groups(ids) for statement in group]
    note = streams.note_document(feed, token, document)
    database.batch([*inserts(feed, token, some, at=at), *groups, *note, closing(feed, token, some, at=at)])


def rows(database: Database) -> dict[str, list[str]]:
    """The guids of the members of each stream."""
    found: dict[str, list[str]] = {}
    for row in database.query(
        """SELECT stream, guid FROM item_streams JOIN items ON items.id = item_id
        AND items.feed_id = item_streams.feed_id ORDER BY stream, guid"""
    ).rows:
        found.setdefault(row["stream"], []).append(row["guid"])
    return found


def state(database: Database, name: str = "jane") -> streams.StreamState:
    return {each.name: each for each in streams.stream_states(database, "a")}[name]


def with_topic(database: Database, *of: str) -> None:
    topic = TopicSpec(id="t", of=tuple(map(Member.of, of)))
    topics.apply(database, topics.topic_changes([topic], database.batch([topics.STORED_TOPICS])[0].rows))
    published(database)


def published(database: Database) -> None:
    database.query("UPDATE topics SET stale = 0")


def is_stale(database: Database) -> bool:
    [row] = database.query("SELECT stale FROM topics").rows
    published(database)
    return bool(row["stale"])


def test_members_come_with_their_items_and_go_when_they_no_longer_match(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE, rest="//item")))
    listed = [item("1"), item("2"), item("3")]
    store(database, listed, {"jane": ["1", "3"], "rest": ["1"]})
    assert rows(database) == {"jane": ["1", "3"], "rest": ["1"]}
    store(database, [*listed, item("4")], {"jane": ["3", "4"], "rest": ["1"]}, at=NOW + HOUR)
    assert rows(database) == {"jane": ["3", "4"], "rest": ["1"]}
    store(database, [item("4")], {"jane": [], "rest": []}, at=NOW + 2 * HOUR)
    assert rows(database) == {"jane": ["3"], "rest": ["1"]}, "what is not listed is not judged"


def test_a_stream_that_could_not_be_judged_keeps_its_members(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE, slow="//item")))
    store(database, [item("1")], {"jane": ["1"], "slow": ["1"]})
    store(
        database,
        [item("1"), item("2")],
        {"jane": []},
        at=NOW + HOUR,
        stream_errors={"slow": "The XPath of a/slow took longer than 2 s."},
    )
    assert rows(database) == {"slow": ["1"]}
    assert state(database, "slow").warning == "The XPath of a/slow took longer than 2 s."
    store(database, [item("1")], {"jane": [], "slow": ["1"]}, at=NOW + 2 * HOUR)
    assert state(database, "slow").warning is None


def test_a_retired_item_is_no_member_though_it_is_listed(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE)))
    change(database, "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '1', '2026')")
    with_topic(database, "a")
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]})
    assert rows(database) == {"jane": ["2"]}
    assert is_stale(database)
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]}, at=NOW + HOUR)
    assert not is_stale(database)


def test_an_item_that_goes_takes_its_memberships_with_it(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE)))
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]})
    change(database, "DELETE FROM items WHERE guid = '1'")
    assert database.query("SELECT count(*) AS n FROM item_streams").rows[0]["n"] == 1


def test_a_visit_that_lost_its_lease_judges_nothing(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE)))
    store(database, [item("1")], {"jane": ["1"]})
    lost = claim_one(database, now=NOW + HOUR)
    change(database, "UPDATE feeds SET lease_token = 'another'")
    store(database, [item("1")], {"jane": []}, claimed=lost, at=NOW + HOUR)
    assert rows(database) == {"jane": ["1"]}
    assert state(database).unmatched_documents == 0


def test_a_feed_without_streams_costs_no_statement(database: Database) -> None:
    register(database, spec("a"))
    feed, token = claim_one(database)
    document = parsed([item("1")], {})
    assert list(streams.judgement_of(feed, document, token=token).groups([item_id("a", "1")])) == []
    assert streams.note_document(feed, token, document) == []


def test_topics_are_stale_where_members_changed_and_not_else(database: Database) -> None:
    register(database, spec("a", streams=stream_specs(jane=JANE)), spec("b"))
    with_topic(database, "a/jane")
    store(database, [item("1")], {"jane": ["1"]})
    assert is_stale(database)
    store(database, [item("1")], {"jane": ["1"]}, at=NOW + HOUR)
    assert not is_stale(database)
    store(database, [item("1")], {"jane": []}, at=NOW + 2 * HOUR)
    assert is_stale(database)
    store(database, [item("1")], {"jane": ["1"]}, at=NOW + 3 * HOUR)
    assert is_stale(database)
    visit(database, [item("5")], id="b")
    assert not is_stale(database), "a feed of no topic"


@pytest.mark.slow
def test_many_members_fit_into_batches_of_d1(sqlite: SqliteDatabase) -> None:
    """200 streams that all match the 3,000 items of a megabyte of rows."""
    many = {f"s{'x' * 20}{n}": by("*") for n in range(200)}
    register(sqlite, spec("a", streams=stream_specs(**many)))
    feed, token = claim_one(sqlite)
    ids = [item_id("a", str(n)) for n in range(3_000)]
    document = replace(parsed([], {}), stream_members=dict.fromkeys(many, tuple(ids)))
    groups = list(streams.judgement_of(feed, document, token=token).groups(ids))
    largest = max(len(as_json([as_request(each) for each in group])) for group in groups)
    assert largest + 1_100_000 < MAX_REQUEST_BYTES


class TestState:
    """What documents leave in `streams`."""

    @pytest.fixture
    def known(self, database: Database) -> Database:
        register(database, spec("a", streams=stream_specs(jane=JANE, path="//item")))
        return database

    def show(self, database: Database, hours: int, *guids: str, **fields: Any) -> None:
        some = [item(guid) for guid in ("1", "2")]
        store(database, some, {"jane": guids, "path": ["1"]}, at=NOW + hours * HOUR, **fields)

    def test_a_stream_that_matches_says_when(self, known: Database) -> None:
        self.show(known, 0, "1", "2")
        found = state(known)
        assert (found.members, found.matched_at, found.newest_at) == (2, NOW, NOW)
        assert (found.unmatched_documents, found.values_seen, found.warning) == (0, (), None)
        self.show(known, 5, "1")
        assert (state(known).members, state(known).matched_at) == (1, NOW + 5 * HOUR)

    def test_matched_at_is_written_once_an_hour(self, known: Database) -> None:
        self.show(known, 0, "1")
        feed, token = claim_one(known, now=NOW + HOUR)
        for minutes, changes in ((59, 0), (60, 2)):
            at = NOW + timedelta(minutes=minutes)
            document = parsed([item("1")], {"jane": ["1"], "path": ["1"]}, at=at)
            [result] = known.batch(streams.note_document(feed, token, document))
            assert result.changes == changes

    def test_three_documents_without_a_match_are_a_warning_with_the_values_seen(
        self, known: Database
    ) -> None:
        self.show(known, 0, "1")
        for hours, authors in ((1, ("Ann", "Bob")), (2, ("Bob", "Cid")), (3, ("Dan",)), (4, ("Eve",))):
            assert state(known).warning is None
            if hours < 4:
                self.show(known, hours, stream_values={"author": authors})
                assert state(known).unmatched_documents == hours
                if hours == 3:
                    break
        found = state(known)
        assert found.values_seen == ("Ann", "Bob", "Cid", "Dan")
        assert found.warning == (
            "matched nothing in the last 3 documents that had items; author was: Ann, Bob, Cid, Dan"
        )
        assert found.matched_at == NOW
        self.show(known, 4, "2")
        assert (state(known).unmatched_documents, state(known).warning) == (0, None)
        assert state(known).values_seen == ()

    def test_documents_beyond_the_third_without_a_match_cost_no_row(self, known: Database) -> None:
        for hours in range(3):
            self.show(known, hours, stream_values={"author": ("Ann",)})
        feed, token = claim_one(known, now=NOW + 3 * HOUR)
        document = parsed([item("1")], {"jane": [], "path": []}, at=NOW + 3 * HOUR)
        [result] = known.batch(
            streams.note_document(feed, token, replace(document, stream_members={"jane": ()}))
        )
        assert result.changes == 1, "of the XPath alone"

    def test_at_most_twenty_values_are_kept(self, known: Database) -> None:
        for hours in range(3):
            values = tuple(f"{hours}-{n}" for n in range(15))
            self.show(known, hours, stream_values={"author": values})
        assert state(known).values_seen == (*(f"0-{n}" for n in range(15)), *(f"1-{n}" for n in range(5)))

    def test_empty_and_cut_documents_do_not_count(self, known: Database) -> None:
        self.show(known, 0, "1")
        store(known, [], {"jane": [], "path": []}, at=NOW + HOUR)
        self.show(known, 2, cut_off=True)
        assert state(known).unmatched_documents == 0


class TestRefresh:
    """Stored items judged anew by a changed selector."""

    @pytest.fixture
    def known(self, database: Database) -> Database:
        """Items of several authors, stored before the feed had streams, one as rows from before authors."""
        register(database, spec("a"), spec("b"))
        some = [
            item("1", author="Jane", authors=("Jane",)),
            item("2", author="x@y.example (JANE)", authors=("x@y.example (JANE)",)),
            item("3", author="Bob", authors=("Bob", "Jane")),
            item("4", author="Bob", authors=("Bob",), categories=("News",)),
            item("5"),
        ]
        visit(database, some[:3])
        visit(database, some[3:], at=NOW + HOUR)
        visit(database, [item("6", author="Jane", authors=("Jane",))], id="b")
        change(database, "UPDATE items SET authors = NULL WHERE guid = '1'")
        return database

    def register(self, database: Database, **selectors: FieldSelector | str) -> None:
        register(database, spec("a", streams=stream_specs(**selectors)), spec("b"), now=NOW + DAY)

    def test_a_new_stream_has_all_stored_items_that_match(self, known: Database) -> None:
        self.register(known, jane=JANE, bob=by("bob"), news=FieldSelector(category=("new*",)), nobody=by("x"))
        assert not state(known).is_judged
        assert refresh(known) == Refreshed(keys=("a/jane", "a/bob", "a/news", "a/nobody"), items=5)
        assert rows(known) == {"jane": ["1", "2", "3"], "bob": ["3", "4"], "news": ["4"]}
        assert (state(known).is_judged, state(known).matched_at) == (True, NOW)
        assert state(known, "news").matched_at == NOW + HOUR
        assert state(known, "nobody").matched_at is None
        assert refresh(known) == Refreshed()

    def test_a_changed_selector_loses_what_it_no_longer_matches(self, known: Database) -> None:
        self.register(known, one=JANE, other=by("bob"))
        refresh(known)
        self.register(known, one=by("bob"), other=by("bob"))
        assert [each.is_judged for each in streams.stream_states(known)] == [False, True]
        assert refresh(known) == Refreshed(keys=("a/one",), items=5)
        assert rows(known) == {"one": ["3", "4"], "other": ["3", "4"]}

    def test_only_these_feeds_if_some_are_named(self, known: Database) -> None:
        jane = stream_specs(jane=JANE)
        register(known, spec("a", streams=jane), spec("b", streams=jane))
        assert refresh(known, ["b", "no-such-feed"]) == Refreshed(keys=("b/jane",), items=1)
        assert refresh(known, []) == Refreshed()
        assert refresh(known) == Refreshed(keys=("a/jane",), items=5)

    def test_a_stream_that_left_the_registry_leaves_no_rows(self, known: Database) -> None:
        self.register(known, jane=JANE, bob=by("bob"))
        refresh(known)
        self.register(known, bob=by("bob"))
        assert refresh(known) == Refreshed(gone=1)
        self.register(known)
        assert refresh(known) == Refreshed(gone=1)
        assert rows(known) == {}
        assert known.query("SELECT * FROM streams").rows == []

    def test_a_stream_that_is_back_has_what_came_in_meanwhile(self, known: Database) -> None:
        self.register(known, jane=JANE)
        refresh(known)
        self.register(known)
        visit(known, [item("7", author="Jane", authors=("Jane",))], at=NOW + 2 * DAY)
        self.register(known, jane=JANE)
        refresh(known)
        assert rows(known) == {"jane": ["1", "2", "3", "7"]}

    def test_a_selector_that_changes_back_has_what_came_in_meanwhile(self, known: Database) -> None:
        self.register(known, one=JANE)
        refresh(known)
        self.register(known, one=by("bob"))
        store(known, [item("7", author="Jane", authors=("Jane",))], {"one": []}, at=NOW + 2 * DAY)
        self.register(known, one=JANE)
        refresh(known)
        assert rows(known) == {"one": ["1", "2", "3", "7"]}

    def test_members_by_a_changed_xpath_stay_until_a_document_shows_others(self, known: Database) -> None:
        self.register(known, one=JANE)
        refresh(known)
        self.register(known, one="//item[enclosure]")
        assert refresh(known) == Refreshed()
        assert rows(known) == {"one": ["1", "2", "3"]}
        assert state(known, "one").note == (
            "selector changed; run `rss-pipeline replay a` to judge stored items"
        )
        store(known, [item("1"), item("4")], {"one": ["4"]}, at=NOW + 2 * DAY)
        assert rows(known) == {"one": ["2", "3", "4"]}
        assert state(known, "one").note is not None, "2 and 3 are not judged by it"
        self.register(known, one=by("bob"))
        assert refresh(known) == Refreshed(keys=("a/one",), items=5)
        assert rows(known) == {"one": ["3", "4"]}
        assert state(known, "one").note is None

    def test_a_topic_is_stale_only_if_members_changed(self, known: Database) -> None:
        self.register(known, jane=JANE)
        refresh(known)
        with_topic(known, "a/jane")
        self.register(known, jane=by("JANE"))
        published(known)
        refresh(known)
        assert not is_stale(known)
        self.register(known, jane=by("bob"))
        published(known)
        refresh(known)
        assert is_stale(known)

    def test_a_first_document_judges_all_there_is(self, database: Database) -> None:
        register(database, spec("a", streams=stream_specs(jane=JANE, path="//item", slow="//x")))
        store(database, [item("1")], {"jane": ["1"], "path": []}, stream_errors={"slow": "slow"})
        assert [each.is_judged for each in streams.stream_states(database)] == [True, True, False]
        assert refresh(database) == Refreshed()

    def test_many_items_are_judged_in_pages(self, known: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(unjudged, "_PAGE_ITEMS", 2)
        monkeypatch.setattr(members, "_PIECE_BYTES", 50)
        change(known, "UPDATE items SET title = ? WHERE guid = '2'", "x" * 1_200_000)
        self.register(known, jane=JANE)
        assert refresh(known) == Refreshed(keys=("a/jane",), items=5)
        assert rows(known) == {"jane": ["1", "2", "3"]}

    def test_killed_anywhere_it_is_done_again(self, known: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(unjudged, "_PAGE_ITEMS", 2)
        self.register(known, jane=by("x*"), gone=JANE)
        refresh(known)
        self.register(known, jane=JANE)
        tried = 0
        for most in range(100):
            try:
                refresh(Dying(known, most))
            except DatabaseUnavailable:
                tried += 1
            else:
                break
        assert tried > 5
        assert rows(known) == {"jane": ["1", "2", "3"]}
        assert state(known).is_judged

    @pytest.mark.parametrize("is_done_by_another", [True, False])
    def test_a_refresh_by_a_selector_that_changes_under_it_writes_nothing_more(
        self, known: Database, monkeypatch: pytest.MonkeyPatch, is_done_by_another: bool
    ) -> None:
        monkeypatch.setattr(unjudged, "_PAGE_ITEMS", 1)
        self.register(known, one=JANE)

        def change_it() -> None:
            self.register(known, one=by("bob"))
            if is_done_by_another:
                refresh(known)

        refresh(Interrupted(known, 3, change_it))
        assert state(known, "one").is_judged == is_done_by_another
        refresh(known)
        assert rows(known) == {"one": ["3", "4"]}
        assert state(known, "one").is_judged

    def test_while_the_feed_is_visited_the_streams_stay_due(self, known: Database) -> None:
        """The visit knows the streams of its claim, and may store items that it does not judge by these."""
        claimed = claim_one(known, now=NOW + DAY)
        self.register(known, jane=JANE)
        assert refresh(known) == Refreshed(keys=("a/jane",), items=5)
        jane = item("7", author="Jane", authors=("Jane",))
        store(known, [jane], {}, claimed=claimed, at=NOW + DAY)
        assert rows(known) == {"jane": ["1", "2", "3"]}
        assert refresh(known) == Refreshed(keys=("a/jane",), items=6)
        assert rows(known) == {"jane": ["1", "2", "3", "7"]}
        assert refresh(known) == Refreshed()


class Dying:
    """A database on which a process is killed after so many calls."""

    def __init__(self, database: Database, most: int) -> None:
        self._database = database
        self._left = most

    def query(self, sql: str, params: Any = (), *, name: str = "") -> Result:
        self._count()
        return self._database.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self._count()
        return self._database.batch(statements)

    def close(self) -> None: ...

    def _count(self) -> None:
        if not self._left:
            raise DatabaseUnavailable("killed")
        self._left -= 1


class Interrupted(Dying):
    """A database at which something else happens before one of the calls."""

    def __init__(self, database: Database, most: int, act: Any) -> None:
        super().__init__(database, most)
        self._act = act

    def _count(self) -> None:
        self._left -= 1
        if not self._left:
            self._act()
