"""Moving house, between a home on this disk and a Cloudflare or a Postgres: there, back, and half-way.

What is compared is read by plain SELECTs and gets, not by the copy's own pages and hashes.
"""

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import CopyRefused, DatabaseUnavailable, SettingsError
from rss_pipeline.storage.backends.d1 import D1Database
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.copy.sides import Side, open_side
from rss_pipeline.storage.copy.stores import MARKER, Copied, copy
from rss_pipeline.storage.copy.tables import TABLES, fingerprint
from rss_pipeline.storage.database import Database, Statement
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.sql import chunked, compact
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

CJK = "世界 📰 \U0001f980 é\r\n\t\x1b \u2028"
AT = "2026-03-02T08:00:00Z"


class Quiet:
    """A Progress that keeps what it is told."""

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
        """A house whose file and folder are empty; of a folder that is the server's, too, only the file."""
        if "+folder" not in self.away:
            return House(home, self.away, self.stores)
        for path in self.home.glob("rss.sqlite*"):
            path.unlink()
        return self

    @contextlib.contextmanager
    def side(self, name: str) -> Iterator[Side]:
        with open_side(self.environ, name, cwd=self.home.parent) as side:
            yield side
            if side.objects_kind != "folder":
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
    """Whether two contents are the same; told in a word, for they are megabytes."""
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
    # More than a page of both, and keys whose first parts are the same on both sides of its end.
    tombstones = [{"feed_id": f"f{n // 300}", "guid": f"{n:04}{CJK}", "expired_at": AT} for n in range(1200)]
    insert(side.database, "expired_items", *tombstones)
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


@pytest.fixture(params=["cloudflare", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> House:
    """A home without anything and an empty server."""
    home = tmp_path / "home"
    if request.param == "cloudflare":
        return on_cloudflare(home, request.getfixturevalue("cloudflare"))
    return House(home, "postgres+folder", {"DATABASE_URL": request.getfixturevalue("postgres_url")})


@pytest.fixture
def small(tmp_path: Path, cloudflare: Cloudflare) -> House:
    """A home with a few rows and objects, and an empty Cloudflare."""
    house = on_cloudflare(tmp_path / "home", cloudflare)
    with house.side("embedded") as side:
        fill_a_little(side)
    return house


@pytest.fixture
def house(empty: House) -> House:
    """A full home and an empty server."""
    with empty.side("embedded") as side:
        fill(side)
    return empty


def test_there_and_back_the_rows_and_objects_are_the_same(house: House, tmp_path: Path) -> None:
    before = house.contents("embedded")
    progress = Quiet()
    there = house.copy("embedded", house.away, progress=progress)
    assert same(house.contents(house.away), before)
    is_shared = there.objects is None
    assert (there.rows_written, there.objects_written) == (2749, 0 if is_shared else 43)
    assert is_shared == (house.away == "postgres+folder")
    assert {name: made.count for name, made in there.tables.items()} == {
        "feeds": 4, "items": 702, "image_tasks": 30, "item_versions": 600, "expired_items": 1200,
        "streams": 2, "item_streams": 200,
        "hosts": 2, "feed_holds": 1, "image_holds": 1, "sequences": 1, "installation": 1,
        "users": 1, "app_passwords": 1, "subscriptions": 1, "folders": 1, "item_states": 1,
    }  # fmt: skip
    assert progress.done == progress.totals
    back = house.emptied(tmp_path / "another")
    again = back.copy(house.away, "embedded")
    assert same(back.contents("embedded"), before)
    assert (again.tables, again.objects) == (there.tables, there.objects)


def test_topics_stay_behind_so_that_the_target_publishes_all_of_them(small: House) -> None:
    """What is published lies in a bucket of the source, and the target may have another one."""
    one = {"id": "t", "definition": "{}", "stale": 0, "published_at": AT}
    with small.side("embedded") as source:
        insert(source.database, "topics", one)
        key = {"key": "topics/t.json", "hash": "x", "bytes": 1, "published_at": AT}
        insert(source.database, "published_files", key)
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as target:
        for table in ("topics", "topic_members", "published_files"):
            assert target.database.query(f"SELECT * FROM {table}").rows == []


def test_killed_half_way_and_started_again_both_ways_it_ends_the_same(house: House, tmp_path: Path) -> None:
    before = house.contents("embedded")
    house.killed("embedded", house.away, "items", 2)
    with house.side(house.away) as side:
        assert 0 < side.database.query("SELECT count(*) AS n FROM items").rows[0]["n"] < 702
    if house.away == "cloudflare":
        house.killed("embedded", house.away, "objects", 7)
        with house.side(house.away) as side:
            assert 0 < len(objects(side.objects)) < 43
        there = house.copy("embedded", house.away)
        assert there.rows_written == 0, "what is there already is not written again"
        assert 0 < there.objects_written < 43
    else:
        assert 0 < house.copy("embedded", house.away).rows_written < 2749
    assert same(house.contents(house.away), before)
    back = house.emptied(tmp_path / "another")
    back.killed(house.away, "embedded", "items", 1)
    back.killed(house.away, "embedded", "expired_items", 1)
    back.killed(house.away, "embedded", "check", 1)
    back.copy(house.away, "embedded")
    assert same(back.contents("embedded"), before)


def test_copied_again_only_what_is_new_goes_over(small: House) -> None:
    small.copy("embedded", "cloudflare")
    nothing = small.copy("embedded", "cloudflare")
    assert (nothing.rows_written, nothing.objects_written) == (0, 0)
    with small.side("embedded") as side:
        side.database.query("UPDATE feeds SET title = NULL WHERE id = 'f0'")
        insert(side.database, "items", item("new", "f0", title=CJK, arrived=7))
        side.objects.put("backups/f0/2026-03-03T08:00:00Z.xml", b"<rss/>", content_type="application/xml")
        key = "backups/f0/2026-03-02T08:00:00Z.xml"
        side.objects.put(key, b"<rss>x</rss>", content_type="application/xml")
    more = small.copy("embedded", "cloudflare")
    assert (more.rows_written, more.objects_written) == (2, 2)
    assert same(small.contents("cloudflare"), small.contents("embedded"))


def test_a_target_that_was_used_since_is_left_alone(small: House) -> None:
    small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as side:
        side.database.query("UPDATE feeds SET last_etag = 'newer' WHERE id = 'f2'")
    before = small.contents("cloudflare")
    with pytest.raises(
        CopyRefused, match=r"was used since it was copied \(feeds has changed\).*empty database"
    ):
        small.copy("embedded", "cloudflare")
    assert same(small.contents("cloudflare"), before)


@pytest.mark.parametrize("held", ["row", "object"])
def test_a_target_with_other_data_is_left_alone(small: House, tmp_path: Path, held: str) -> None:
    other = small.emptied(tmp_path / "other")
    with other.side("embedded") as side:
        if held == "row":
            insert(side.database, "feeds", feed("mine"))
        else:
            side.objects.put("backups/mine/x.xml", b"", content_type="application/xml")
    before = other.contents("embedded")
    wanted = r"already holds (1 feeds|objects): .*RSS_PIPELINE_HOME"
    with pytest.raises(CopyRefused, match=wanted):
        other.copy("cloudflare", "embedded")
    assert same(other.contents("embedded"), before)


def test_an_unfinished_copy_of_another_home_is_left_alone(small: House, tmp_path: Path) -> None:
    small.killed("embedded", "cloudflare", "feeds", 1)
    other = small.emptied(tmp_path / "other")
    with other.side("embedded") as side:
        insert(side.database, "feeds", feed("mine"))
    with pytest.raises(CopyRefused, match=r"is a copy of embedded .*home.*, not of embedded .*other"):
        other.copy("embedded", "cloudflare")


@pytest.mark.parametrize("side_name", ["embedded", "cloudflare"])
def test_while_a_run_is_alive_on_either_side_nothing_is_copied(small: House, side_name: str) -> None:
    with small.side(side_name) as side:
        lease = {"token": "t", "run_id": "run-7", "feeds": "[]", "hosts": "[]"}
        later = instant(datetime.now(UTC) + timedelta(minutes=3))
        insert(side.database, "leases", {**lease, "expires_at": later})
    with pytest.raises(CopyRefused, match=f"run run-7 is at work in {side_name}"):
        small.copy("embedded", "cloudflare")
    with small.side("cloudflare") as side:
        assert (rows(side.database, "feeds"), objects(side.objects)) == ([], {})
        assert side.objects.get(MARKER) is None
    with small.side(side_name) as side:
        side.database.query("UPDATE leases SET expires_at = '2020-01-01T00:00:00Z'")
    small.copy("embedded", "cloudflare")


def test_what_changes_in_the_target_meanwhile_is_told_at_the_end(small: House) -> None:
    class Meddling(Quiet):
        def begin(self, step: str, total: int) -> None:
            if step == "objects":
                with small.side("cloudflare") as side:
                    insert(side.database, "items", item("theirs", "f0"))

    with pytest.raises(CopyRefused, match="items differs after the copy: 3 rows in embedded, 4 in cloud"):
        small.copy("embedded", "cloudflare", progress=Meddling())


def test_a_side_that_is_not_configured_is_a_sentence(
    small: House, tmp_path: Path, cloudflare: Cloudflare
) -> None:
    def refused(side: str, *, home: Path = small.home, stores: Mapping[str, str] | None = None) -> str:
        environ = {**small.environ, "RSS_PIPELINE_HOME": str(home), **(stores or {})}
        with (
            pytest.raises(SettingsError) as caught,
            open_side(environ, side, cwd=tmp_path, as_source=True),
        ):
            pass
        return str(caught.value)

    without = refused("cloudflare", stores={"R2_BUCKET": ""})
    assert without.startswith("R2_BUCKET: not set; a copy from or to cloudflare needs all 6: D1_PROXY_URL, ")
    assert refused("postgres+folder") == "DATABASE_URL: not set; a copy from or to postgres+folder needs it"
    nowhere = tmp_path / "nowhere"
    wanted = f"there is no {nowhere}/rss.sqlite to copy from; name the right folder"
    assert wanted in refused("embedded", home=nowhere)
    wanted = f"there is no {nowhere}/objects to copy from; name the right folder"
    url = {"DATABASE_URL": "postgresql://127.0.0.1:1/rss"}
    assert wanted in refused("postgres+folder", home=nowhere, stores=url)
    assert not nowhere.exists()
    another = {"S3_BUCKET": "b", "S3_ACCESS_KEY_ID": "a", "S3_SECRET_ACCESS_KEY": "s"}
    assert "write postgres+r2 or postgres+s3" in refused("postgres", stores=url | another)
    cloudflare.wipe()
    with (
        pytest.raises(DatabaseUnavailable, match="rss-pipeline migrate"),
        small.side("cloudflare"),
    ):
        pass


def test_the_command_copies_and_says_what_lies_where(small: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(small.home)
    with small.side("embedded") as side:
        tombstones = [{"feed_id": "f0", "guid": f"{n}", "expired_at": AT} for n in range(1200)]
        insert(side.database, "expired_items", *tombstones)
        side.objects.put("images/f1/aaaa/1.png", bytes(2_000_000), content_type="image/png")
    command = ["copy", "--from", "embedded", "--to", "cloudflare"]
    said = CliRunner().invoke(main, command, env=small.environ)
    assert said.exit_code == 0, said.output
    assert "1,200" in said.stdout
    assert (
        "Both sides hold the same rows and objects; written now: 1,208 rows and 3 of 3 objects"
        " (2.0 MB in all)." in said.stdout
    )
    told = json.loads(CliRunner().invoke(main, [*command, "--json"], env=small.environ).stdout)
    assert (told["items"]["count"], told["rows_written"]) == (3, 0)
    same = CliRunner().invoke(main, ["copy", "--from", "embedded", "--to", "embedded"], env=small.environ)
    assert (same.exit_code, "there is nothing to copy" in same.stderr) == (1, True)
    without = {**small.environ, "D1_PROXY_URL": "", "D1_PROXY_TOKEN": ""}
    refused = CliRunner().invoke(main, command, env=without)
    assert refused.exit_code == 1
    assert "D1_PROXY_URL, D1_PROXY_TOKEN: not set; a copy from or to cloudflare needs all 6" in refused.stderr


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
ROWS = st.dictionaries(
    TEXT, st.tuples(st.none() | TEXT, st.integers(-(2**53), 2**53), st.none() | TEXT), max_size=12
)


@hypothesis_settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
@given(some=ROWS)
def test_any_row_is_the_same_on_the_other_side(empty: House, some: dict[str, Any]) -> None:
    with empty.side("embedded") as ours, empty.side(empty.away) as theirs:
        for side in (ours, theirs):
            side.database.batch([Statement("DELETE FROM hosts"), Statement("DELETE FROM feeds")])
            side.objects.delete_many([MARKER, "copies/into-postgres.json"])
        if some:
            made = [
                feed(key, url=key, title=title, consecutive_failures=number, rhythm=text)
                for key, (title, number, text) in some.items()
            ]
            insert(ours.database, "feeds", *made)
        copied = copy(ours, theirs, progress=Quiet())
        assert copied.tables["feeds"].count == len(some)
        assert rows(theirs.database, "feeds") == rows(ours.database, "feeds")
        assert fingerprint(theirs.database, "feeds") == copied.tables["feeds"]
