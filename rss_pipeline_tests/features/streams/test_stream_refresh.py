"""Stored items judged anew by a changed selector, whatever happens meanwhile."""

from collections.abc import Sequence
from typing import Any

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.streams import sql, states
from rss_pipeline.features.streams.model import FieldSelector
from rss_pipeline.features.streams.service import Refreshed, refresh
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline_tests.features.streams.stream_documents import (
    JANE,
    by,
    rows,
    state,
    store,
    stream_keys,
)
from rss_pipeline_tests.storage.values import DAY, HOUR, NOW, change, claim_one, item, register, spec, visit


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
        register(database, spec("a", feature_keys=stream_keys(**selectors)), spec("b"), now=NOW + DAY)

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
        assert [each.is_judged for each in states.stream_states(known)] == [False, True]
        assert refresh(known) == Refreshed(keys=("a/one",), items=5)
        assert rows(known) == {"one": ["3", "4"], "other": ["3", "4"]}

    def test_only_these_feeds_if_some_are_named(self, known: Database) -> None:
        jane = stream_keys(jane=JANE)
        register(known, spec("a", feature_keys=jane), spec("b", feature_keys=jane))
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

    def test_a_first_document_judges_all_there_is(self, database: Database) -> None:
        register(database, spec("a", feature_keys=stream_keys(jane=JANE, path="//item", slow="//x")))
        store(database, [item("1")], {"jane": ["1"], "path": []}, errors={"slow": "slow"})
        assert [each.is_judged for each in states.stream_states(database)] == [True, True, False]
        assert refresh(database) == Refreshed()

    def test_many_items_are_judged_in_pages(self, known: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sql, "_PAGE_ITEMS", 2)
        monkeypatch.setattr(sql, "_PIECE_BYTES", 50)
        change(known, "UPDATE items SET title = ? WHERE guid = '2'", "x" * 1_200_000)
        self.register(known, jane=JANE)
        assert refresh(known) == Refreshed(keys=("a/jane",), items=5)
        assert rows(known) == {"jane": ["1", "2", "3"]}

    def test_killed_anywhere_it_is_done_again(self, known: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sql, "_PAGE_ITEMS", 2)
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
        monkeypatch.setattr(sql, "_PAGE_ITEMS", 1)
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
