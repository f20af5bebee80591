"""Results that are kept where reads are paid for: an app that syncs reads few rows, and what changed is seen.

Whatever changes, by whichever door, the answers are those of a reader that keeps nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.item import image_task_id, item_id
from rss_pipeline.errors import NoSession
from rss_pipeline.reader.accounts.callers import Caller, KeptResults
from rss_pipeline.storage.accounts import sessions
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.images import image_claims as claims
from rss_pipeline.storage.images import image_closings as closings
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.images.image_closings import Archived
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.subscriptions import item_lists, item_query, listing, subscriptions
from rss_pipeline.storage.subscriptions.chosen import Chosen, Filter, Key, Page, Scope
from rss_pipeline_tests.api.google_reader.phone import API, Phone, arrive
from rss_pipeline_tests.reader.accounts.signed_in import begin
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    claim_one,
    failed,
    item,
    register,
    spec,
    unchanged,
    visit,
)
from rss_pipeline_tests.support.counted import counting
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.reader import Reader, reader_settings
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.stored import add_feeds, add_items
from rss_pipeline_tests.support.stored import item as row_of

STATE = "user/-/state/com.google/"
ALL, READ, STARRED = (f"{STATE}{name}" for name in ("reading-list", "read", "starred"))
ONE = item_id("a", "1")
IMAGE = "https://x.example/1.png"
SHOWN = f'<p>An image: <img src="{IMAGE}"></p>'


@dataclass
class App:
    """A user's app: what it requests at each sync. `since` is the time of its last sync, in seconds; the user
    subscribes to `feed`."""

    phone: Phone
    feed: str = "a"
    since: int = field(init=False)

    def __post_init__(self) -> None:
        self.since = int(self.phone.reader.clock().timestamp()) + 60

    def get(self, call: str, **params: Any) -> httpx.Response:
        return self.phone.client.get(f"{API}{call}", params={"output": "json", **params})

    def net_news_wire(self) -> list[httpx.Response]:
        self.since += 900
        return [
            self.get("tag/list"),
            self.get("subscription/list"),
            self.get("stream/items/ids", s=ALL, ot=self.since, n=1_000),
            self.get("stream/items/ids", s=ALL, xt=READ, n=1_000),
            self.get("stream/items/ids", s=STARRED, n=1_000),
        ]

    def reeder(self) -> list[httpx.Response]:
        return [
            self.get("token"),
            self.get("user-info"),
            self.get("tag/list"),
            self.get("subscription/list"),
            self.get("unread-count"),
            self.get("stream/items/ids", s=ALL, xt=READ, n=10_000),
            self.get("stream/items/ids", s=STARRED, n=10_000),
        ]

    def feed_me(self) -> list[httpx.Response]:
        self.since += 900
        return [
            self.get("subscription/list"),
            self.get("unread-count"),
            self.get("stream/items/ids", s=ALL, xt=READ, r="n", n=200),
            self.get(f"stream/contents/{ALL}", xt=READ, ot=self.since - 7 * 86_400, n=100),
        ]

    def readrops(self) -> list[httpx.Response]:
        self.since += 900
        return [
            self.get("subscription/list"),
            self.get("tag/list"),
            self.get(f"stream/contents/{ALL}", ot=self.since, n=5_000),
            self.get("stream/items/ids", s=ALL, xt=READ, n=5_000),
            self.get("stream/items/ids", s=STARRED, n=5_000),
        ]

    def rss_guard(self) -> list[httpx.Response]:
        return [
            self.get("subscription/list"),
            self.get("tag/list"),
            self.get("stream/items/ids", s=ALL, n=200_000),
            self.get("stream/items/ids", s=ALL, xt=READ, n=200_000),
            self.get("stream/items/ids", s=STARRED, n=200_000),
        ]

    def newsboat(self, *feeds: str) -> list[httpx.Response]:
        """It requests the items of each feed by itself."""
        found = [self.get("subscription/list")]
        return found + [self.get(f"stream/contents/feed/{feed}", n=20) for feed in feeds]

    def ids_by_feed(self, *feeds: str) -> list[httpx.Response]:
        """It requests the unread items of each feed by itself."""
        return [self.get("stream/items/ids", s=f"feed/{feed}", xt=READ, n=1_000) for feed in feeds]

    def json_api(self) -> list[httpx.Response]:
        client = self.phone.reader.client(authorization=f"Bearer {self.phone.jwt()}")
        return [
            client.get("/api/feeds"),
            client.get("/api/items", params={"unread_only": True}),
            client.get("/api/items"),
            client.get(f"/api/feeds/{self.feed}/items"),
        ]

    def pages(self) -> list[httpx.Response]:
        """Views of the reader's pages."""
        client = self.phone.reader.client(authorization=f"Bearer {self.phone.jwt()}")
        paths = ("/unread", "/state", "/all", "/starred", f"/feeds/{self.feed}", "/feeds", "/failing")
        return [client.get(path) for path in paths]


APPS = ("NetNewsWire", "Reeder", "FeedMe", "Readrops", "RSS Guard", "the JSON API", "seven pages")


def syncs(app: App) -> Mapping[str, Callable[[], list[httpx.Response]]]:
    """A sync of each app, and views of pages."""
    ways = (app.net_news_wire, app.reeder, app.feed_me, app.readrops, app.rss_guard, app.json_api, app.pages)
    return dict(zip(APPS, ways, strict=True))


def stored_on(database: Database, *, feeds: int, items_of_each: int, arrived: int, text: str) -> list[str]:
    """Feeds with items, the newest at this number of arrival."""
    ids = ["a", *(f"feed-{number:02}" for number in range(1, feeds))]
    seen = instant(NOW)
    add_feeds(database, *ids, last_visited_at=seen, last_success_at=seen, reported_at=seen)
    for place, feed in enumerate(ids):
        numbers = [arrived - number * feeds - place for number in range(items_of_each)]
        at = "2026-03-01T00:00:00Z"
        add_items(database, [row_of(feed, str(n), at, arrived=n, content_html=text) for n in numbers])
    database.query("INSERT INTO sequences (name, value) VALUES ('items', ?)", [arrived])
    return ids


@pytest.mark.slow
def test_an_app_that_syncs_reads_few_rows_in_d1_while_nothing_changes(
    tmp_path: Path, cloudflare: Cloudflare, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = reader_settings(
        tmp_path, database_server=D1Backend(url=cloudflare.url, token=cloudflare.token)
    )
    with closing(connect(settings)) as database:
        migrate(database)
    with Reader.on(settings) as reader:
        arrived = int(reader.clock().timestamp() - 3_600) * 1_000_000
        ids = stored_on(reader.database, feeds=50, items_of_each=20, arrived=arrived, text="<p>A text</p>")
        ann = Phone.of_new_user(reader, "ann")
        ann.subscribe(*ids)
        spent: Counter[str] = Counter()
        monkeypatch.setattr(D1Database, "_exchange", counting(spent))
        app = App(ann)
        for name, sync in syncs(app).items():
            sync()
            spent.clear()
            assert {answer.status_code for answer in sync()} == {200}
            assert spent["rows"] <= 100, name
        # A visit that finds nothing new is no change, but for the next visit that the JSON API names.
        unchanged(reader.database, *claim_one(reader.database, "feed-07"))
        spent.clear()
        for name in ("Reeder", "the JSON API", "seven pages"):
            syncs(app)[name]()
        assert spent["rows"] <= 200
        assert '"in an hour"' in app.json_api()[0].text
        # Feed by feed, one row shows for each that nothing has changed.
        for sync in (app.newsboat, app.ids_by_feed):
            sync(*ids)
            spent.clear()
            assert {answer.status_code for answer in sync(*ids)} == {200}
            assert spent["rows"] <= 60


@dataclass
class World:
    """A reader that keeps results, and another process that keeps none, on one database."""

    keeping: Reader
    other: Reader
    ann: Phone
    database: Database

    def answers(self, reader: Reader) -> dict[str, str]:
        """All that the user sees."""
        google = reader.client(authorization=f"GoogleLogin auth={self.ann.auth}")
        own = reader.client(authorization=f"Bearer {self.ann.jwt()}")
        calls: dict[str, list[dict[str, Any]]] = {
            "stream/items/ids": [
                {"s": ALL},
                {"s": ALL, "xt": READ},
                {"s": ALL, "ot": 1, "n": 2},
                {"s": STARRED},
                {"s": "feed/a"},
                {"s": "user/-/label/News"},
            ],
            f"stream/contents/{ALL}": [{"n": 50}, {"r": "o", "nt": 9_000_000_000}],
            "subscription/list": [{}],
            "tag/list": [{}],
            "unread-count": [{}],
        }
        found = {
            f"{call} {params}": google.get(API + call, params=params).text
            for call, sent in calls.items()
            for params in sent
        }
        paths = ["/api/feeds", "/api/feeds/updated", "/api/feeds/updated?since=5", "/api/items"]
        paths += ["/api/feeds/a/items", "/unread", "/all", "/starred", "/feeds/a", "/feeds", "/state"]
        paths += ["/failing", "/feeds/a/edit", f"/items/{ONE}", f"/state?ids={ONE}", "/api/user/preferences"]
        return found | {path: own.get(path).text for path in paths}

    def client(self) -> httpx.Client:
        """The JSON API and the pages at the other process."""
        headers = {"Authorization": f"Bearer {self.ann.jwt()}", "Sec-Fetch-Site": "same-origin"}
        client = self.other.client()
        client.headers.update(headers)
        return client


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = reader_settings(tmp_path / "home")
    with Reader.on(settings) as other, Reader.on(settings) as plain:
        stores = replace(plain.stores, kept=KeptResults())
        keeping = Reader(stores, plain.loop)
        keeping.clock.now = other.clock.now
        database = other.database
        register(database, spec("a"), spec("b"), spec("c"))
        ann = Phone.of_new_user(keeping, "ann")
        # By this, a page that is opened changes nothing.
        ann.caller.write(
            Statement(
                "UPDATE users SET preferences = json_set(preferences, '$.mark_read_on_open', json('false'))"
            )
        )
        ann.subscribe("a", folder="News")
        ann.subscribe("b")
        for feed in ("a", "b"):
            arrive(database, feed, "1", "2", "3", content_html=SHOWN)
        wanted = [ItemImages(item_id=ONE, urls=(IMAGE,))]
        for batch in tasks.record_statements(wanted, feeds=[], rules="now", now=NOW):
            database.batch(batch)
        yield World(keeping, other, ann, database)


def archive(world: World) -> None:
    claimed = claims.claim_images(world.database, now=NOW, run_id="r", lease_seconds=180, limit=9)
    archived = [Archived(task_id=image_task_id(ONE, IMAGE), key="images/a/x", bytes=70)]
    assert closings.record_archived(world.database, claimed.token, archived, now=NOW)


def mark(world: World, **marks: Any) -> None:
    assert world.client().post("/api/items/mark", json={"ids": [ONE], **marks}).status_code == 200


CHANGES: Mapping[str, Callable[[World], object]] = {
    "a new item": lambda world: arrive(world.database, "a", "4"),
    "an archived image": archive,
    "a feed with another title": lambda world: visit(
        world.database, [item("1")], id="b", at=NOW + HOUR, title="Renamed", content_hash="other"
    ),
    "a feed that fails": lambda world: failed(
        world.database, *claim_one(world.database, "b", now=NOW + HOUR), now=NOW + HOUR
    ),
    "a feed that is read again": lambda world: unchanged(
        world.database, *claim_one(world.database, "b", now=NOW + 2 * HOUR), now=NOW + 2 * HOUR
    ),
    "a visit that finds nothing": lambda world: unchanged(
        world.database, *claim_one(world.database, "b", now=NOW + 3 * HOUR), now=NOW + 3 * HOUR
    ),
    "a feed that is switched off": lambda world: register(
        world.database, spec("a"), spec("b", enabled=False), spec("c")
    ),
    "an item that is read": lambda world: mark(world, is_read=True),
    "an item that is kept unread": lambda world: mark(world, is_read=False),
    "a star": lambda world: mark(world, is_starred=True),
    "all read": lambda world: world.client().post("/api/mark-read", json={"up_to": 2**52}).raise_for_status(),
    "a title of the user's": lambda world: world.client().patch("/api/feeds/b", json={"title": "Mine"}),
    "another folder": lambda world: world.client().patch("/api/feeds/b", json={"folder": "Other"}),
    "a folder with another name": lambda world: world.ann.post(
        "rename-tag", {"s": "user/-/label/News", "dest": "user/-/label/Old"}
    ),
    "the feed of failing feeds": lambda world: world.client().patch(
        "/api/user/preferences", json={"show_failing_feed": True}
    ),
    "a feed less": lambda world: world.client().delete("/api/feeds/b"),
}


def see_at_once(world: World, changes: Mapping[str, Callable[[World], object]]) -> None:
    """Each of these changes is in the next answers of a process that keeps results."""
    before = world.answers(world.keeping)
    assert before == world.answers(world.other)
    for what, change in changes.items():
        assert world.answers(world.keeping) == before
        change(world)
        now = world.answers(world.keeping)
        assert now != before, what
        assert now == world.answers(world.other), what
        before = now


@pytest.mark.slow
def test_whatever_changes_by_any_door_is_seen_at_once(world: World) -> None:
    see_at_once(world, CHANGES)
    bob = Phone.of_new_user(world.keeping, "bob")
    assert bob.ids() == []
    assert bob.get("subscription/list").json() == {"subscriptions": []}
    world.ann.revoke()
    assert world.ann.get("subscription/list").status_code == 401
    # Nothing is shown to a session that another process has ended, or that has ended by its time.
    clock, names = world.keeping.clock, listing.list_names(bob.user_id)
    ended, over = (
        Caller(begin(world.database, bob.user_id, clock=clock), world.database, clock, KeptResults())
        for _ in range(2)
    )
    for caller in (ended, over):
        assert caller.read(names)[0].rows == caller.read(names)[0].rows == []
    world.database.batch([sessions.end(ended.key.session_id)])
    with pytest.raises(NoSession):
        ended.read(names)
    assert over.read(names)[0].rows == []
    clock.pass_(days=31)
    with pytest.raises(NoSession):
        over.read(names)


def test_what_a_kept_result_reads_of_feeds_is_watched_by_the_schema(tmp_path: Path) -> None:
    """Other columns of `feeds` may change at any visit, unseen."""
    filter, page, one = Filter(scope=Scope(feed_id="a")), Page(limit=1, order="placed"), Chosen.by_ids(["a"])
    statements = [
        listing.list_names("u"),
        listing.list_feeds("u", has_visits=False),
        subscriptions.list_folders("u"),
        item_query.count_unread("u"),
        item_query.count_items("u"),
        item_query.count_all_starred("u"),
        item_lists.list_items("u", filter, page, text_characters=9),
        item_lists.list_numbers("u", Filter(is_read=False), Page(limit=1)),
        item_lists.page_version("u", filter, replace(page, order="published", after=Key(1, 1))),
        item_lists.read_feed_of_page("u", "a", filter),
        item_lists.keys_of("u", "a"),
        item_lists.items_by("u", one),
    ]
    assert all(statement.is_kept for statement in statements)
    with_visits = listing.list_feeds("u")
    assert not with_visits.is_kept
    # Of a migrated database: a table that a later migration builds anew has no triggers.
    with closing(migrated(tmp_path / "state.sqlite")) as database:
        triggers = database.query(
            "SELECT sql FROM sqlite_master WHERE name IN ('feeds_seen', 'feeds_source_seen')"
        )
    watched = {name for row in triggers.rows for name in re.findall(r"OLD\.(\w+)", row["sql"])}
    columns = {*re.findall(r"\bf\.(\w+)", " ".join(statement.sql for statement in statements))}
    assert columns - {"id"} <= watched
    assert {"consecutive_failures", "enabled", "last_visited_at", "warning", "watched"} <= watched


def test_kept_results_are_of_one_user_and_of_limited_size() -> None:
    kept = KeptResults(most_bytes=10_000)
    query, found = Statement("SELECT 1", ["x"]), Result(("n",), [("y" * 100,)], 0)
    kept.keep("ann", query, (1,), found)
    known = kept.known("ann", query)
    assert known is not None
    assert (known[0], known[1].values) == ((1,), found.values)
    assert kept.known("bob", query) is None
    assert kept.known("ann", replace(query, params=["z"])) is None
    for number in range(50):
        kept.keep("ann", replace(query, params=[number]), (1,), found)
    assert kept.size <= 10_000
    assert kept.known("ann", query) is None
    kept.keep("ann", query, (1,), Result(("n",), [("y" * 5_000,)], 0))
    assert kept.known("ann", query) is None
    assert kept.known("ann", replace(query, params=[49])) is not None
