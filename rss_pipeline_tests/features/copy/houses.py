"""A home on this disk and a server it moves to: what is put in, copied, and read.

What is compared is read by plain SELECTs and gets, not by the copy's own pages and hashes.
"""

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.features.copy.service import Copied, Side, copy, open_side
from rss_pipeline.features.copy.sql import TABLES
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.sql import chunked, compact
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

FORKS = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
"""The mark of tests that copy in a forked child (`House.killed`)."""

CJK = "世界 📰 \U0001f980 é\r\n\t\x1b \u2028"
AT = "2026-03-02T08:00:00Z"


class Quiet:
    """A Progress that keeps what it gets."""

    def __init__(self) -> None:
        self.totals: dict[str, int] = {}
        self.done: dict[str, int] = {}

    def begin(self, step: str, total: int) -> None:
        self.totals[step] = total

    def advance(self, step: str, by: int = 1) -> None:
        self.done[step] = self.done.get(step, 0) + by


class Deadly(Quiet):
    """A Progress that kills its process after so many pages of the table `step`, or so many objects."""

    def __init__(self, step: str, advances: int) -> None:
        super().__init__()
        self._step = step
        self._advances = advances

    def advance(self, step: str, by: int = 1) -> None:
        if step == self._step:
            self._advances -= 1
            if self._advances == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class House:
    """A home and a server, `away`, that one environment names."""

    def __init__(self, home: Path, away: str, stores: Mapping[str, str]) -> None:
        self.home = home
        self.away = away
        self.stores = stores
        others = ("RSS_", "D1_", "R2_", "S3_", "DATABASE_")
        self.environ = {
            **{name: text for name, text in os.environ.items() if not name.startswith(others)},
            "RSS_PIPELINE_HOME": str(home),
            **stores,
        }

    def emptied(self, home: Path) -> "House":
        """A house with an empty file and folder; of a folder that is the server's, too, only the file."""
        if "+folder" not in self.away:
            return House(home, self.away, self.stores)
        for path in self.home.glob("rss.sqlite*"):
            path.unlink()
        return self

    @contextlib.contextmanager
    def side(self, name: str) -> Iterator[Side]:
        with open_side(self.environ, name, cwd=self.home.parent) as side:
            yield side
            if not side.objects_backend.is_here:
                side.objects.client.close()  # type: ignore[attr-defined]

    def copy(self, source: str, target: str, *, progress: Quiet | None = None) -> Copied:
        with self.side(source) as ours, self.side(target) as theirs:
            return copy(ours, theirs, progress=progress or Quiet())

    def contents(self, name: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
        """All rows with the type of each value, and all objects."""
        with self.side(name) as side:
            return {table: rows(side.database, table) for table in TABLES}, objects(side.objects)

    def killed(self, source: str, target: str, step: str, advances: int) -> None:
        """Copy in a child that is killed there. It is forked: a new one would import everything."""
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                self.copy(source, target, progress=Deadly(step, advances))
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def rows(database: Database, table: str) -> list[Any]:
    """Every row and the type of its every value."""
    columns = database.query("SELECT name FROM pragma_table_info(?)", [table]).rows
    order = ", ".join(f"{table}.{column}" for column in TABLES[table])
    types = ", ".join(f"typeof({row['name']}) AS {row['name']}" for row in columns)
    in_rows = isinstance(database, PostgresDatabase)
    found: list[Any] = []
    for what in ("*",) if in_rows else ("*", types):
        seen = 0
        while page := database.query(
            f"SELECT {what} FROM {table} ORDER BY {order} LIMIT 300 OFFSET ?", [seen]
        ).rows:
            seen += len(page)
            found += page
    names = {int: "integer", str: "text", float: "real", type(None): "null"}
    typed = [{name: names[type(value)] for name, value in row.items()} for row in found]
    return found + typed if in_rows else found


def objects(store: ObjectStore) -> dict[str, Any]:
    found = {}
    for info in store.list(""):
        if not info.key.startswith("copies/") and (got := store.get(info.key)) is not None:
            found[info.key] = (got[0], got[1].content_type, dict(got[1].metadata))
    return found


def same(ours: tuple[dict[str, Any], dict[str, Any]], theirs: tuple[dict[str, Any], dict[str, Any]]) -> bool:
    """Equal or different, in a word: the contents are megabytes."""
    return ours == theirs


def insert(database: Database, table: str, *some: dict[str, Any]) -> None:
    names = list(some[0])
    extracted = ", ".join(f"json_extract(value, '$[{n}]')" for n in range(len(names)))
    for chunk in chunked(compact(list(row.values())) for row in some):
        database.query(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {extracted} FROM json_each(?)", [chunk]
        )


def feed(id: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": id,
        "url": f"https://{id}.example/",
        "next_fetch_at": AT,
        "created_at": AT,
        "host": id,
        **fields,
    }


def item(id: str, feed_id: str, **fields: Any) -> dict[str, Any]:
    known = {"guid": id, "title": None, "content_html": None, "author": None}
    dates = {"pub_date": AT, "created_at": AT, "guid_source": "guid", "pub_date_source": "feed"}
    return {"id": id, "feed_id": feed_id, **known, **dates, **fields}


def fill(side: Side) -> None:
    """Several pages of items, and the values that differ between stores most easily."""
    insert(
        side.database,
        "feeds",
        *(
            feed(
                f"f{n}",
                title=title,
                consecutive_failures=n * 1000,
                ttl=2**53,
                rhythm='["1"]',
                last_etag="007",
            )
            for n, title in enumerate(["1.0", "", CJK, None])
        ),
    )
    insert(
        side.database,
        "items",
        *(item(f"i{n:04}", f"f{n % 3}", title=f"{n}", content_html=CJK * 40, author="") for n in range(700)),
    )
    # Longer as JSON than a parameter of ours may be; the second one longer than any value may be.
    for id, text in (("i0500-large", "世" * 633_000), ("i0500-quotes", '"\\' * 600_000)):
        row = item(id, "f1", content_html=text)
        marks = ", ".join("?" * len(row))
        side.database.query(f"INSERT INTO items ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    insert(
        side.database,
        "image_tasks",
        *(
            {
                "id": f"t{n}",
                "item_id": f"i{n:04}",
                "original_url": f"https://x/{n}?{CJK}",
                "status": "pending",
                "attempts": n,
                "created_at": AT,
                "updated_at": AT,
                "host": "x",
                "position": n,
            }
            for n in range(30)
        ),
    )
    insert(side.database, "hosts", {"host": "", "hold_until": AT, "reason": CJK})
    insert(side.database, "hosts", {"host": "slow.example", "hold_until": AT, "reason": ""})
    insert(side.database, "feed_holds", {"feed_id": "f1", "host": "x", "hold_until": AT, "reason": CJK})
    insert(side.database, "sequences", {"name": "items", "value": 2**52 + 1})
    insert(side.database, "installation", {"name": "uuid", "value": "0b5c4f6e-6d0f-4d6e-9d39-5b0c6f0a7d11"})
    insert(side.database, "image_holds", {"host": "images.example", "hold_until": AT, "reason": CJK})
    gap = {"kept": "hosts", "host": ".example", "seconds": 66, "since": AT, "asked_at": AT}
    insert(side.database, "host_gaps", gap)
    asked = {"day": AT[:10], "url_hash": "0123456789abcdef", "asked_at": AT, "task_id": "t", "inside": "[]"}
    insert(side.database, "image_urls", asked)
    insert(side.database, "image_referers", {"host": "images.example", "learned_at": AT})
    # More than a page of both, and keys with first parts that are the same on both sides of its end.
    tombstones = [{"feed_id": f"f{n // 300}", "guid": f"{n:04}{CJK}", "expired_at": AT} for n in range(1200)]
    insert(side.database, "expired_items", *tombstones)
    alias = {"feed_id": "f0", "guid": f"a{CJK}", "item_guid": f"0000{CJK}", "created_at": AT}
    insert(side.database, "item_aliases", alias)
    insert(
        side.database,
        "item_versions",
        *(
            {
                "item_id": f"i{n // 3:04}",
                "replaced_at": f"2026-03-02T08:00:{n % 3:02}Z",
                "title": CJK,
                "pub_date": AT,
                "content_html": None if n % 2 else "x" * n,
                "categories": "[]",
                "enclosures": "[]",
                "guid_source": "guid",
                "pub_date_source": "feed",
            }
            for n in range(600)
        ),
    )
    insert(side.database, "streams", {"feed_id": "f0", "name": "one", "values_seen": f'["{CJK}"]'})
    insert(side.database, "streams", {"feed_id": "f0", "name": "two", "selector_hash": "x"})
    # Nothing but a key: a row that is there already has nothing to be updated.
    members = [{"feed_id": "f0", "stream": "one", "item_id": f"i{3 * n:04}"} for n in range(200)]
    insert(side.database, "item_streams", *members)
    insert(side.database, "users", {"id": "u", "name": "u", "password_hash": "x", "created_at": AT})
    password = {"id": "p", "user_id": "u", "name": "phone", "secret_hash": "x", "created_at": AT}
    insert(side.database, "app_passwords", password)
    subscription = {"user_id": "u", "feed_id": "f0", "read_up_to": 7, "added_at": AT}
    insert(side.database, "subscriptions", subscription)
    insert(side.database, "folders", {"user_id": "u", "name": CJK})
    insert(side.database, "new_addresses", {"user_id": "u", "address": "f0", "begins_at": AT})
    member = {"item_id": "i0000", "story_id": "i", "feed_id": "f0", "arrived": 2**52, "article": "i"}
    insert(side.database, "story_members", {**member, "lead": 2**52, "decided_at": AT, "version": 1})
    article = {"item_id": "i0000", "feed_id": "f0", "status": "shown", "html": f"<p>{CJK}</p>"}
    insert(side.database, "articles", {**article, "next_attempt_at": AT})
    insert(side.database, "article_readers", {"user_id": "u", "item_id": "i0000"})
    said = {"user_id": "u", "item_id": "i0000", "act": 1}
    insert(side.database, "story_choices", {**said, "story_id": CJK})
    insert(
        side.database, "story_views", {"user_id": "u", "item_id": "i0000", "story_id": "i-", "article": "i"}
    )
    insert(side.database, "story_acts", {**said, "said": "apart", "said_at": AT, "before": "[]"})
    state = {"user_id": "u", "feed_id": "f0", "item_id": "i0000", "arrived": 2**52, "starred_at": AT}
    insert(side.database, "item_states", state)
    metadata = {"rss-pipeline": json.dumps({"etag": '"x"', "charset": None})}
    for n in range(40):
        key = f"backups/f{n % 4}/2026-03-02T08:00:{n:02}Z.xml"
        side.objects.put(key, f"<rss>{n}</rss>".encode(), content_type="application/xml", metadata=metadata)
    side.objects.put("images/f1/aaaa/0.png", bytes(range(256)) * 8000, content_type="image/png")
    side.objects.put("state/users/u1.jsonl.gz", b"\x1f\x8b state", content_type="application/gzip")
    side.objects.put("images/f1/世 界+%41/1.png", b"", content_type="image/svg+xml; charset=x")


def fill_a_little(side: Side) -> None:
    """Rows and objects of two tables and two prefixes, for what does not depend on how many there are."""
    insert(side.database, "feeds", *(feed(f"f{n}", title=CJK) for n in range(4)))
    insert(side.database, "items", *(item(f"i{n}", f"f{n}", title=CJK) for n in range(3)))
    for key in ("backups/f0/2026-03-02T08:00:00Z.xml", "images/f1/aaaa/0.png"):
        side.objects.put(key, b"<rss/>", content_type="application/xml")


def on_cloudflare(home: Path, cloudflare: Cloudflare) -> House:
    with contextlib.closing(D1Database(cloudflare.url, cloudflare.token)) as database:
        migrate(database)
    return House(home, "cloudflare", cloudflare.environ)
