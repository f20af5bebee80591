"""Lists of feeds into subscriptions: all or nothing, each feed once, on SQLite and on D1."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.registry.feed_url import feed_id
from rss_pipeline.errors import NoSession
from rss_pipeline.features.opml import service
from rss_pipeline.features.opml.service import (
    ImportedList,
    ListedFeed,
    OpmlRefused,
    export_subscriptions,
    import_list,
    subscribed,
)
from rss_pipeline.reader import edit
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.feed_queries import feed_names, folders
from rss_pipeline.reader.query import together
from rss_pipeline.reader.refresh import Queued
from rss_pipeline.reader.subscribe import plan_subscriptions, subscribe_address
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import claims
from rss_pipeline.storage.feeds import subscribed as subscribed_feeds
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.feeds.stored_holds import heal_wrong_clock, release_listed
from rss_pipeline.storage.refresh.new_addresses import Queue, queue_of, read_queue
from rss_pipeline.storage.sql import compact
from rss_pipeline.storage.subscriptions.subscriptions import unsubscribe
from rss_pipeline_tests.reader.accounts.conftest import (
    Time,
    database,
    empty_d1,
    migrated_d1,
    migrated_schema,
    shared_d1,
    sqlite,
    time,
)
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.values import NOW
from rss_pipeline_tests.support.counted import Counted

__all__ = ["database", "empty_d1", "migrated_d1", "migrated_schema", "shared_d1", "sqlite", "time"]


@pytest.fixture
def ann(database: Database, time: Time) -> Caller:
    return signed_in(database, "ann", clock=time)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path)}, cwd=tmp_path)


def opml(*outlines: str) -> bytes:
    return f'<opml version="2.0"><body>{"".join(outlines)}</body></opml>'.encode()


def outline(url: str, title: str = "") -> str:
    return f'<outline type="rss" text="{title}" xmlUrl="{url}"/>'


def subscriptions(caller: Caller) -> list[tuple[Any, ...]]:
    rows = caller.database.query(
        """SELECT f.url, s.title, s.folder FROM subscriptions AS s JOIN feeds AS f ON f.id = s.feed_id
        WHERE s.user_id = ? ORDER BY s.position""",
        [caller.user_id],
    ).rows
    return [tuple(row.values()) for row in rows]


def add_feed(database: Database, id: str, url: str, **fields: Any) -> None:
    row = {
        "id": id,
        "url": url,
        "host": "a.example",
        "next_fetch_at": "2026-09-01T00:00:00Z",
        "created_at": "2026-01-01T00:00:00Z",
        "listed": 1,
        **fields,
    }
    names = ", ".join(row)
    database.query(f"INSERT INTO feeds ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def test_a_list_becomes_subscriptions_and_its_new_feeds_are_due(
    ann: Caller, settings: Settings, time: Time
) -> None:
    body = opml(
        outline("https://a.example/1", "One"),
        f'<outline text="News">{outline("https://b.example/2")}{outline("https://A.example/1")}</outline>',
    )
    assert import_list(ann, body, settings=settings) == ImportedList(added=2, known=0, merged=1)
    assert subscriptions(ann) == [
        ("https://a.example/1", "One", "News"),
        ("https://b.example/2", None, "News"),
    ]
    rows = ann.database.query("SELECT registered, listed, next_fetch_at, host FROM feeds ORDER BY url").rows
    assert [tuple(row.values()) for row in rows] == [
        (1, 0, "2026-02-18T08:30:00Z", "a.example"),
        (1, 0, "2026-02-18T08:30:00Z", "b.example"),
    ]


def test_a_folder_without_feeds_is_made_and_comes_out_again(ann: Caller, settings: Settings) -> None:
    body = opml(outline("https://a.example/1"), '<outline text="Empty"/><outline text="AC/DC"/>')
    for added in (1, 0):
        assert import_list(ann, body, settings=settings).added == added
        names, in_folders = ann.ask(together(feed_names(ann.user_id), folders(ann.user_id)))
        assert in_folders == ["AC\u2215DC", "Empty"]
    exported = export_subscriptions(subscribed(names), in_folders, now=NOW)
    assert b'<outline text="Empty" title="Empty" />' in exported
    assert b'<outline text="AC/DC" title="AC/DC" />' in exported


def test_the_same_list_again_changes_nothing(ann: Caller, settings: Settings) -> None:
    body = opml(outline("https://a.example/1", "One"), outline("https://b.example/2"))
    import_list(ann, body, settings=settings)
    before = subscriptions(ann)
    other = opml(f'<outline text="F">{outline("https://a.example/1", "Other")}</outline>')
    assert import_list(ann, body, settings=settings) == ImportedList(added=0, known=2, merged=0)
    assert import_list(ann, other, settings=settings) == ImportedList(added=0, known=1, merged=0)
    assert subscriptions(ann) == before


def test_a_known_feed_is_shared_whatever_the_form_of_its_address(ann: Caller, settings: Settings) -> None:
    add_feed(ann.database, "known", "https://a.example:443/1", title="Its title")
    body = opml(outline("https://A.example/1", "Its title"))
    assert import_list(ann, body, settings=settings).added == 1
    assert subscriptions(ann) == [("https://a.example:443/1", None, None)]
    assert len(ann.database.query("SELECT id FROM feeds").rows) == 1


def test_a_private_feed_that_feeds_yaml_shares_is_joined_and_others_are_mistakes(
    ann: Caller, settings: Settings
) -> None:
    url = "http://192.168.1.5:8080/feed"
    add_feed(ann.database, "nas", url, host="192.168.1.5", allow_private=1, shared=1)
    assert import_list(ann, opml(outline(url)), settings=settings).added == 1
    assert import_list(ann, opml(outline(url)), settings=settings).known == 1
    with pytest.raises(OpmlRefused) as refused:
        import_list(
            ann, opml(outline(url), outline(f"{url}/2"), outline("ftp://x.example")), settings=settings
        )
    told = [str(mistake) for mistake in refused.value.mistakes]
    assert len(told) == 2, told
    assert any("the address is in a private network" in each for each in told)
    assert "192.168.1.5" not in "".join(told)
    assert len(subscriptions(ann)) == 1


@pytest.mark.parametrize("private", [{"needs_access": 1}, {"allow_private": 1}, {"private_hosts": '["x"]'}])
def test_a_private_feed_is_not_joined_and_the_answer_does_not_show_it(
    ann: Caller, settings: Settings, private: dict[str, Any]
) -> None:
    add_feed(ann.database, "private", "https://a.example/1", **private)
    body = opml(outline("https://a.example/1"), outline("https://a.example/2"))
    assert import_list(ann, body, settings=settings) == ImportedList(added=2, known=0, merged=0)
    rows = ann.database.query("SELECT feed_id FROM subscriptions").rows
    assert len(rows) == 2
    assert "private" not in {row["feed_id"] for row in rows}
    assert import_list(ann, body, settings=settings) == ImportedList(added=0, known=2, merged=0)


def test_a_private_feed_that_the_registry_shares_is_joined(ann: Caller, settings: Settings) -> None:
    add_feed(ann.database, "shared", "https://a.example/1", needs_access=1, shared=1)
    import_list(ann, opml(outline("https://a.example/1")), settings=settings)
    assert subscriptions(ann) == [("https://a.example/1", None, None)]
    assert len(ann.database.query("SELECT id FROM feeds").rows) == 1


def test_a_list_with_one_mistake_writes_nothing(ann: Caller, settings: Settings) -> None:
    body = opml(outline("https://a.example/1"), outline("http://192.168.0.1/2"))
    with pytest.raises(OpmlRefused):
        import_list(ann, body, settings=settings)
    assert subscriptions(ann) == []
    assert ann.database.query("SELECT id FROM feeds").rows == []


def test_a_list_beyond_the_most_subscriptions_writes_nothing(
    ann: Caller, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SUBSCRIPTIONS", 3)
    import_list(ann, opml(outline("https://a.example/1"), outline("https://a.example/2")), settings=settings)
    body = opml(*(outline(f"https://a.example/{number}") for number in (2, 3, 4)))
    with pytest.raises(OpmlRefused, match="more than 3 subscriptions"):
        import_list(ann, body, settings=settings)
    assert len(subscriptions(ann)) == 2
    assert import_list(ann, opml(outline("https://a.example/3")), settings=settings).added == 1


@pytest.mark.parametrize("knows_count", [True, False], ids=["one after the other", "at the same time"])
def test_feeds_that_come_and_go_by_lists_have_a_limit_by_user_and_day(
    knows_count: bool, ann: Caller, time: Time, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribed_feeds, "MOST_NEW_FEEDS", 3)
    if knows_count:
        monkeypatch.setattr(service, "MOST_NEW_FEEDS", 3)

    def imported(*numbers: int) -> int:
        body = opml(*(outline(f"https://a.example/{number}") for number in numbers))
        added = import_list(ann, body, settings=settings).added
        edit.unsubscribe(ann, [feed_id(f"https://a.example/{n}", "a.example") for n in numbers])
        return added

    def rows() -> int:
        return len(ann.database.query("SELECT id FROM feeds").rows)

    assert imported(1, 2) == 2
    with pytest.raises(OpmlRefused, match="more than 3 of them today") if knows_count else nullcontext():
        imported(3, 4)
    assert rows() == 2
    assert imported(1, 2) == 2, "known ones count no more"
    time.now += timedelta(days=1)
    assert imported(3, 4, 5) == 3
    assert rows() == 5


def test_no_one_imports_without_a_session(ann: Caller, settings: Settings) -> None:
    key = replace(ann.key, session_id="0" * 64)
    with pytest.raises(NoSession):
        import_list(
            Caller(key, ann.database, ann.clock), opml(outline("https://a.example/1")), settings=settings
        )
    assert ann.database.query("SELECT id FROM feeds").rows == []


@pytest.mark.slow
def test_three_thousand_feeds_go_in_by_three_requests(
    database: Database, time: Time, settings: Settings
) -> None:
    counting = Counted(database)
    ann = signed_in(counting, "ann", clock=time)
    body = opml(
        *(
            f'<outline text="F{n % 7}">{outline(f"https://h{n % 50}.example/{n}", f"Feed {n}")}</outline>'
            for n in range(3_000)
        )
    )
    before = counting.requests
    assert import_list(ann, body, settings=settings).added == 3_000
    assert counting.requests - before == 3
    assert len(subscriptions(ann)) == 3_000


def test_a_feed_is_not_taken_for_another_one_that_has_had_its_address_since() -> None:
    url = "https://a.example/feed"
    former = {"id": "former", "url": f"{url}#former", "title": None, "open": 1, "subscribed": 0}
    listed = ListedFeed(url=url, host="a.example", same_as="https://a.example:443/feed", line=1)
    plan = plan_subscriptions([listed], [former], {})
    assert [feed.url for feed in plan.new] == [url]
    now = {**former, "id": "now", "url": url}
    plan = plan_subscriptions([listed], [former, now], {})
    assert [each.feed_id for each in plan.wanted] == ["now"]


def test_sixty_new_addresses_an_hour_are_due_and_known_ones_cost_nothing(
    ann: Caller, settings: Settings, time: Time
) -> None:
    database = ann.database
    add_feed(database, "known", "https://a.example/known", last_visited_at="2026-01-01T00:00:00Z")
    time.passes(seconds=1)
    ben = signed_in(database, "ben", clock=time)
    eve = signed_in(database, "eve", clock=time)
    now, hour = time(), timedelta(hours=1)

    def wants(caller: Caller, *numbers: int) -> ImportedList:
        body = opml(outline("https://a.example/known"), *(outline(f"https://h{n}.example/") for n in numbers))
        return import_list(caller, body, settings=settings)

    def held() -> dict[int, timedelta]:
        rows = database.query(
            "SELECT host, hold_until FROM feed_holds WHERE hold_until > ?",
            [instant(now)],
        ).rows
        return {int(row["host"][1:].partition(".")[0]): at(row["hold_until"]) - now for row in rows}

    def at(text: str) -> datetime:
        return datetime.fromisoformat(text)

    done = wants(ben, *range(150))
    assert (done.added, done.queue) == (151, Queue(waiting=90, until=now + 2 * hour))
    assert held() == {n: n // 60 * hour for n in range(60, 150)}
    # The same list again, by whatever door, has no other turns; a search comes behind it.
    assert wants(ben, *range(150)).added == 0
    found = subscribe_address(ben, settings, "https://b.example/")
    assert isinstance(found, Queued)
    assert (found.begins_at, found.queue.waiting) == (now + 2 * hour, 91)
    # Another user brings some of them sooner, by an hour of their own; the owner's never wait.
    assert wants(eve, *range(140, 150)).queue.waiting == 0
    subscribe_address(ann, settings, "https://h139.example/")
    assert held() == {n: n // 60 * hour for n in range(60, 139)}
    # What others have brought does not wait any more: with ben neither.
    assert queue_of(ben.read(read_queue(ben.user_id, now=now))[0]).waiting == 80
    claimed = claims.claim(
        database, Due(now=now), run_id="poll", lease_seconds=60, limit=1_000, lease_now=now
    )
    assert len(claimed.feeds) == 72
    # Who leaves the feed gives its turn up.
    [row] = database.query("SELECT id FROM feeds WHERE host = 'h138.example'").rows
    ben.write(*unsubscribe(ben.user_id, [row["id"]], at=now))
    assert queue_of(ben.read(read_queue(ben.user_id, now=now))[0]).waiting == 79
    # What feeds.yaml lists does not wait either.
    [row] = database.query("SELECT id FROM feeds WHERE host = 'h137.example'").rows
    database.batch(release_listed(compact([row["id"]]), now=now))
    assert 137 not in held()
    assert queue_of(ben.read(read_queue(ben.user_id, now=now))[0]).waiting == 78
    # A queue of more than a day is no sign of a wrong clock.
    wants(eve, *range(1_000, 2_600))
    database.batch(heal_wrong_clock(now))
    assert max(held().values()) == 26 * hour
