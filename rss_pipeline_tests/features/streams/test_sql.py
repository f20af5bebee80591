"""Streams in the database: members come and go with documents, which also leave the state of a stream."""

from datetime import timedelta
from typing import Any

import pytest

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.features.streams import sql as streams
from rss_pipeline.features.streams.model import FieldSelector, StreamSpec, streams_of
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import MAX_REQUEST_BYTES, Database, as_json, as_request
from rss_pipeline.storage.feeds import feed_row as feeds
from rss_pipeline.storage.feeds import registered
from rss_pipeline.storage.subscriptions import subscriptions
from rss_pipeline.storage.subscriptions.subscriptions import Wanted
from rss_pipeline_tests.features.streams.stream_documents import (
    JANE,
    by,
    keys,
    parsed,
    rows,
    state,
    store,
    stream_keys,
)
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    change,
    claim,
    claim_one,
    feed_row,
    item,
    register,
    spec,
)


def test_the_streams_of_feeds_yaml_travel_with_the_claim(database: Database) -> None:
    specs = (
        StreamSpec(name="haruna", selector=FieldSelector(author=("小嶋 陽菜",))),
        StreamSpec(
            name="staff",
            selector=FieldSelector(category=("x", "y"), negated=FieldSelector(title=("*お知らせ*",))),
        ),
        StreamSpec(name="sound", selector="//item[enclosure]"),
    )
    register(database, spec("a", feature_keys=keys(*specs)), spec("b"))
    assert register(database, spec("a", feature_keys=keys(*specs)), spec("b")).is_empty
    claimed = {feed.id: feed for feed in claim(database).feeds}
    assert (streams_of(claimed["a"]), claimed["b"].feature_keys) == (specs, {})
    assert feed_row(database, "b")["streams"] is None
    changes = register(database, spec("a", feature_keys=keys(*specs[:1])), spec("b"))
    assert [one.id for one in changes.updated] == ["a"]
    assert streams_of(feeds.feeds_by_id(database, ["a"])["a"]) == specs[:1]


def test_a_feed_that_leaves_feeds_yaml_goes_on_for_its_subscribers_without_streams(
    database: Database,
) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)))
    database.query(
        "INSERT INTO users (id, name, password_hash, created_at) VALUES ('ada', 'Ada', '', '2026')"
    )
    database.batch(subscriptions.subscribe("ada", [Wanted(feed_id="a")], at=NOW))
    changes = registered.registry_changes([], registered.registry_rows(database), path="")
    assert registered.apply(database, changes, now=NOW) == ("a",)
    assert feed_row(database)["streams"] is None
    assert database.query("SELECT registered_hash FROM streams").rows == [{"registered_hash": None}]


def test_members_come_with_their_items_and_go_when_they_no_longer_match(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE, rest="//item")))
    listed = [item("1"), item("2"), item("3")]
    store(database, listed, {"jane": ["1", "3"], "rest": ["1"]})
    assert rows(database) == {"jane": ["1", "3"], "rest": ["1"]}
    store(database, [*listed, item("4")], {"jane": ["3", "4"], "rest": ["1"]}, at=NOW + HOUR)
    assert rows(database) == {"jane": ["3", "4"], "rest": ["1"]}
    store(database, [item("4")], {"jane": [], "rest": []}, at=NOW + 2 * HOUR)
    assert rows(database) == {"jane": ["3"], "rest": ["1"]}, "what is not listed is not judged"


def test_a_stream_that_could_not_be_judged_keeps_its_members(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE, slow="//item")))
    store(database, [item("1")], {"jane": ["1"], "slow": ["1"]})
    store(
        database,
        [item("1"), item("2")],
        {"jane": []},
        at=NOW + HOUR,
        errors={"slow": "The XPath of a/slow took longer than 2 s."},
    )
    assert rows(database) == {"slow": ["1"]}
    assert state(database, "slow").warning == "The XPath of a/slow took longer than 2 s."
    store(database, [item("1")], {"jane": [], "slow": ["1"]}, at=NOW + 2 * HOUR)
    assert state(database, "slow").warning is None


def test_a_retired_item_is_no_member_though_it_is_listed(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)))
    change(database, "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '1', '2026')")
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]})
    assert rows(database) == {"jane": ["2"]}


def test_an_item_that_goes_takes_its_memberships_with_it(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)))
    store(database, [item("1"), item("2")], {"jane": ["1", "2"]})
    change(database, "DELETE FROM items WHERE guid = '1'")
    assert database.query("SELECT count(*) AS n FROM item_streams").rows[0]["n"] == 1


def test_a_visit_that_lost_its_lease_judges_nothing(database: Database) -> None:
    register(database, spec("a", feature_keys=stream_keys(jane=JANE)))
    store(database, [item("1")], {"jane": ["1"]})
    lost = claim_one(database, now=NOW + HOUR)
    change(database, "UPDATE feeds SET lease_token = 'another'")
    store(database, [item("1")], {"jane": []}, claimed=lost, at=NOW + HOUR)
    assert rows(database) == {"jane": ["1"]}
    assert state(database).unmatched_documents == 0


@pytest.mark.slow
def test_many_members_fit_into_batches_of_d1(sqlite: SqliteDatabase) -> None:
    """200 streams that all match the 3,000 items of a megabyte of rows."""
    many = {f"s{'x' * 20}{n}": by("*") for n in range(200)}
    register(sqlite, spec("a", feature_keys=stream_keys(**many)))
    feed, token = claim_one(sqlite)
    ids = [item_id("a", str(n)) for n in range(3_000)]
    document = parsed([], {name: [str(n) for n in range(3_000)] for name in many})
    groups = list(streams.judgement_of(feed, document, token=token).groups(ids))
    largest = max(len(as_json([as_request(each) for each in group])) for group in groups)
    assert largest + 1_100_000 < MAX_REQUEST_BYTES


class TestState:
    """The rows that documents leave in `streams`."""

    @pytest.fixture
    def known(self, database: Database) -> Database:
        register(database, spec("a", feature_keys=stream_keys(jane=JANE, path="//item")))
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
                self.show(known, hours, values={"author": authors})
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
            self.show(known, hours, values={"author": ("Ann",)})
        feed, token = claim_one(known, now=NOW + 3 * HOUR)
        document = parsed([item("1")], {"jane": []}, at=NOW + 3 * HOUR)
        [result] = known.batch(streams.note_document(feed, token, document))
        assert result.changes == 1, "of the XPath alone"

    def test_at_most_twenty_values_are_kept(self, known: Database) -> None:
        for hours in range(3):
            values = tuple(f"{hours}-{n}" for n in range(15))
            self.show(known, hours, values={"author": values})
        assert state(known).values_seen == (*(f"0-{n}" for n in range(15)), *(f"1-{n}" for n in range(5)))

    def test_empty_and_cut_documents_do_not_count(self, known: Database) -> None:
        self.show(known, 0, "1")
        store(known, [], {"jane": [], "path": []}, at=NOW + HOUR)
        self.show(known, 2, cut_off=True)
        assert state(known).unmatched_documents == 0
