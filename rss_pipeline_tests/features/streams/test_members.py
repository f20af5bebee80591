"""Members of streams, from document to database: under the ids of stored items, whatever fails."""

from collections.abc import Sequence
from typing import Any

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.streams.service import refresh
from rss_pipeline.features.streams.states import StreamState, stream_states
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline_tests.pipeline.visits.test_identify import document, retire
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer, etag_of

SLOW = "//*[count(//*[count(//*)>1])>1]"


class Feed:
    """A feed with streams, and its publisher."""

    def __init__(self, pipeline: Pipeline, server: FeedServer, body: bytes, **selectors: object) -> None:
        self.pipeline, self.server = pipeline, server
        streams = {name: _selector(selector) for name, selector in selectors.items()}
        pipeline.register(self.serve(body), "feed", **({"streams": streams} if streams else {}))
        pipeline.poll()

    def serve(self, body: bytes) -> str:
        return self.server.route("127.0.0.2", "/feed", Answer(body=body, etag=etag_of(body)))

    def publish(self, body: bytes, **parts: Any) -> None:
        self.serve(body)
        self.pipeline.clock.turn(hours=3)
        self.pipeline.poll(all_feeds=True, **parts)

    def select(self, **selectors: object) -> None:
        """Change feeds.yaml, and let a sync read it."""
        self.pipeline.feeds[0]["streams"] = {name: _selector(each) for name, each in selectors.items()}
        self.pipeline.write_registry()
        self.pipeline.sync()

    def members(self) -> dict[str, list[str]]:
        """The titles of the items of each stream."""
        found: dict[str, list[str]] = {}
        for row in self.pipeline.rows(
            "SELECT stream, title FROM item_streams JOIN items ON items.id = item_id ORDER BY stream, title"
        ):
            found.setdefault(row["stream"], []).append(row["title"])
        return found

    def state(self, name: str) -> StreamState:
        return next(each for each in stream_states(self.pipeline.database, "feed") if each.spec.name == name)


def _selector(selector: object) -> object:
    return {"xpath": selector} if isinstance(selector, str) else selector


def titled(pattern: str) -> dict[str, str]:
    return {"title": pattern}


def test_items_that_are_stored_under_another_guid_are_members_by_that(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Without a guid an item alone has its link for one, and with others of that link a hash."""
    feed = Feed(pipeline, server, document(("a", "1 Jan 2026")), a=titled("a"), b="//item[title='b']")
    assert feed.members() == {"a": ["a"]}
    pipeline.database.query("DELETE FROM item_streams")
    feed.publish(document(("b", "2 Jan 2026"), ("a", "1 Jan 2026")))
    assert feed.members() == {"a": ["a"], "b": ["b"]}
    assert len(pipeline.items("feed")) == 2


def test_items_stay_members_when_their_publisher_rewrites_their_guids(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def served(guids: str, *numbers: int) -> bytes:
        listed = "".join(
            f"<item><guid isPermaLink='false'>{guids}-{n}</guid><link>http://e.example/{n}</link>"
            f"<title>Title {n}</title><pubDate>{n:02} Jan 2026 08:00:00 GMT</pubDate></item>"
            for n in numbers
        )
        return f"<rss version='2.0'><channel><title>T</title>{listed}</channel></rss>".encode()

    path = "//item[contains(title, '2')]"
    feed = Feed(pipeline, server, served("old", 1, 2, 3, 4), ones=titled("*1*"), path=path)
    feed.publish(served("new", 10, 4, 3, 2, 1))
    assert feed.members() == {"ones": ["Title 1", "Title 10"], "path": ["Title 2"]}
    assert pipeline.guids("feed") == ["new-10", "old-1", "old-2", "old-3", "old-4"]


def test_retired_items_and_those_beyond_the_day_are_no_members(
    pipeline: Pipeline, server: FeedServer
) -> None:
    feed = Feed(pipeline, server, rss("1"), all=titled("*"), path="//item")
    retire(pipeline, "1")
    pipeline.set(items_per_day=3)
    feed.publish(rss("1", "2", "3", "4", "5"))
    titles = [f"Title of {guid}" for guid in ("2", "3")]
    assert feed.members() == {"all": titles, "path": titles}
    assert pipeline.guids("feed") == ["2", "3"]


def test_a_document_without_changes_writes_nothing_of_streams(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"), path="//item")
    names: list[str] = []

    def watched() -> Database:
        return Watching(connect(pipeline.settings), names)

    feed.publish(rss("1", "2"), database=watched)
    assert not {name for name in names if "stream" in name}
    feed.publish(rss("1", "2", "3"), database=watched)
    assert {"put items into streams", "note streams"} <= set(names)
    assert feed.members()["path"] == ["Title of 1", "Title of 2", "Title of 3"]


def test_a_feed_without_streams_costs_no_statement(pipeline: Pipeline, server: FeedServer) -> None:
    feed = Feed(pipeline, server, rss("1"))
    names: list[str] = []
    feed.publish(rss("1", "2"), database=lambda: Watching(connect(pipeline.settings), names))
    assert "insert items" in names
    assert not {name for name in names if "stream" in name}


@pytest.mark.slow
def test_a_poll_that_is_killed_at_any_call_is_completed_by_the_next(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The items in one batch and the close in another, and the process killed before each call in turn."""
    monkeypatch.setattr("rss_pipeline.pipeline.visits.store.MAX_PARAMETER_BYTES", 1)
    feed = Feed(pipeline, server, rss("0"), odd=titled("*1"), path="//item[title!='Title of 2']")
    calls: list[int] = []
    for most in range(2, 60):
        names: list[str] = []
        guids = [f"{most}-{n}" for n in range(3)]
        feed.serve(rss(*guids))
        pipeline.clock.turn(hours=25)
        rounds = pipeline.try_poll(database=lambda: Watching(connect(pipeline.settings), names, most))  # noqa: B023
        pipeline.lapse_leases()
        was_killed = any(round_.error for round_ in rounds)
        if was_killed:
            calls.append(most)
            pipeline.poll(all_feeds=True)
        assert [title for title in feed.members()["odd"] if f"{most}-" in title] == [f"Title of {most}-1"]
        path = [title for title in feed.members()["path"] if f"{most}-" in title]
        assert path == [f"Title of {guid}" for guid in guids]
        if not was_killed:
            break
    assert len(calls) > 5


def replays() -> Any:
    return pytest.importorskip("rss_pipeline_tests.features.replay.replays")


class TestReplay:
    def test_stored_items_are_judged_by_a_new_xpath(self, pipeline: Pipeline, server: FeedServer) -> None:
        feed = Feed(pipeline, server, rss("1", "2"))
        feed.publish(rss("2", "3"))
        feed.select(path="//item[contains(title, '1') or contains(title, '3')]")
        assert refresh(pipeline.database).streams == 0
        assert (feed.members(), feed.state("path").note) == (
            {},
            "selector changed; run `rss-pipeline replay feed` to judge stored items",
        )
        before = replays().all_rows(pipeline)
        replays().replayed(pipeline, dry_run=True)
        assert (replays().all_rows(pipeline), feed.members()) == (before, {})
        assert feed.state("path").note is not None
        replays().replayed(pipeline)
        assert feed.members() == {"path": ["Title of 1", "Title of 3"]}
        assert feed.state("path").note is None
        assert feed.state("path").matched_at is not None

    def test_the_newest_backup_has_the_last_word(self, pipeline: Pipeline, server: FeedServer) -> None:
        """An item that was renamed, and one that was renamed and named as before."""
        feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"), path="//item[title='Title of 1']")
        feed.publish(rss("1", "2").replace(b"Title of 1", b"Named 2").replace(b"Title of 2", b"Title of 1"))
        assert feed.members() == {"one": ["Title of 2"], "path": ["Title of 2"]}, "stored titles stay"
        feed.publish(rss("1", "3").replace(b"Title of 3", b"Title of 1"))
        wanted = feed.members()
        titles = ["Title of 1", "Title of 1", "Title of 2"]
        assert wanted == {"one": titles, "path": titles}
        for repair in (False, True):
            pipeline.database.query("DELETE FROM item_streams")
            replays().replayed(pipeline, repair=repair)
            assert feed.members() == wanted

    @pytest.mark.slow
    def test_an_xpath_that_is_too_slow_is_an_error_of_its_stream_and_still_due(
        self, pipeline: Pipeline, server: FeedServer
    ) -> None:
        feed = Feed(pipeline, server, rss(*map(str, range(2_000))))
        feed.select(path=SLOW, title="//item[title='Title of 7']")
        replays().replayed(pipeline)
        assert feed.state("path").note is not None
        assert "took longer than 2 s" in (feed.state("path").warning or "")
        feed.select(path="//item[title='Title of 8']", title="//item[title='Title of 7']")
        assert feed.state("path").warning is None
        replays().replayed(pipeline)
        assert feed.members() == {"path": ["Title of 8"], "title": ["Title of 7"]}
        assert [feed.state(name).note for name in ("path", "title")] == [None, None]

    def test_what_a_replay_brings_in_by_streams_that_changed_under_it_is_judged_again(
        self, pipeline: Pipeline, server: FeedServer
    ) -> None:
        feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"))
        pipeline.database.query("DELETE FROM items")

        def change() -> None:
            feed.select(one=titled("*2"), two=titled("*2"))
            refresh(pipeline.database)

        real = pipeline.database
        pipeline.database = Watching(real, [], before="insert replayed items", act=change)
        replays().replayed(pipeline)
        pipeline.database = real
        refresh(real)
        assert feed.members() == {"one": ["Title of 2"], "two": ["Title of 2"]}

    def test_a_restore_brings_the_members_back(self, pipeline: Pipeline, server: FeedServer) -> None:
        feed = Feed(pipeline, server, rss("1", "2"), one=titled("*1"), path="//item[guid=2]")
        feed.publish(rss("2", "3"))
        wanted = feed.members()
        assert wanted == {"one": ["Title of 1"], "path": ["Title of 2"]}
        replays().drop_database(pipeline)
        replays().restored(pipeline)
        assert feed.members() == wanted
        assert feed.state("path").note is None
        refresh(pipeline.database)
        assert (feed.members(), feed.state("one").note) == (wanted, None)


class Watching:
    """A database that notes the names of its statements, lets a process be killed after so many calls, and
    something happen before a statement, once."""

    def __init__(
        self,
        real: Database,
        names: list[str],
        most: int | None = None,
        *,
        before: str | None = None,
        act: Any = None,
    ) -> None:
        self._real, self._names, self._most = real, names, most
        self._before, self._act = before, act
        self._calls = 0

    def query(self, sql: str, params: Any = (), *, name: str = "") -> Result:
        self._count([name])
        return self._real.query(sql, params, name=name)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        self._count([statement.name for statement in statements])
        return self._real.batch(statements)

    def close(self) -> None:
        self._real.close()

    def _count(self, names: list[str]) -> None:
        self._calls += 1
        if self._most is not None and self._calls > self._most:
            raise DatabaseUnavailable("killed")
        if self._before in names and self._act is not None:
            act, self._act = self._act, None
            act()
        self._names += names
