"""`rss-pipeline doctor`: each finding, with what causes it made for real.

What workerd and Miniflare cannot be brought to say (a wrong date, lifecycle rules, a huge database) a small
server on loopback says in their place.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.cli.home_lock import HomeLock, owner_is_gone
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.features.health import model
from rss_pipeline.features.health import store_checks as stores
from rss_pipeline.features.health.doctor import check_daemon, examine
from rss_pipeline.features.health.model import Finding, State
from rss_pipeline.pipeline.hindrances import DOWNLOADING, POLLING
from rss_pipeline.storage.backends.backend import Lifecycle
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.installation import note_poll_trouble
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.api.test_collecting import switch_off
from rss_pipeline_tests.storage.conftest import nobody
from rss_pipeline_tests.support.healthy_home import KEY, fill, healthy_home
from rss_pipeline_tests.support.services.cloudflare import Cloudflare

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return healthy_home(tmp_path)


def change(home: Path, *statements: str) -> None:
    database = SqliteDatabase(home / "rss.sqlite")
    for sql in statements:
        assert database.query(sql).changes > 0
    database.close()


def examined(
    home: Path, environ: Mapping[str, str] | None = None, now: datetime | None = None
) -> list[Finding]:
    """The checks, of `home` and what else `environ` says."""
    contact = {"RSS_USER_AGENT_CONTACT": "ops@example.org"}
    given = {"RSS_PIPELINE_HOME": str(home), **contact, **(environ or {})}
    return examine(given, cwd=home.parent, clock=utc_now if now is None else lambda: now)


def test_no_ok_is_said_of_what_something_keeps_from_being_done(home: Path) -> None:
    well = only(examined(home), "ok")
    checks = examined(home, {"RSS_IMAGE_FREE_GB": "1000000"})
    images = finding(checks, "overdue images")
    assert images.state == "warning"
    assert images.found.startswith(
        "No image is downloaded now: no images are downloaded, so that polls go on"
    )
    assert [each.name for each in only(checks, "ok")] == [
        each.name for each in well if each.name != "overdue images"
    ]

    switch_off(home / "dagster", POLLING, DOWNLOADING[0], "alert_check_failed")
    checks = examined(home, {"RSS_ALERT_WEBHOOK": "https://hooks.example.org/x"})
    for name, said in {
        "overdue feeds": "Polls are switched off",
        "overdue images": f"switched off in Dagster's UI: {DOWNLOADING[0]}",
        "alerts": "switched off in Dagster's UI: alert_check_failed",
    }.items():
        found = finding(checks, name)
        assert (found.state, said in found.found) == ("warning", True), found

    database = SqliteDatabase(home / "rss.sqlite")
    note_poll_trouble(database, "offline", now=NOW)
    database.close()
    network = finding(examined(home), "network")
    assert (network.state, network.found) == ("failure", f"no poll has reached a feed since {instant(NOW)}")


def test_a_daemon_that_was_killed_is_not_said_to_run(home: Path) -> None:
    """Its last sign of life may be minutes old."""
    ok = Finding("overdue feeds", "ok", "")
    seen = NOW - timedelta(minutes=4)
    assert "it runs" in check_daemon(ok, seen, (), now=NOW).found
    gone = check_daemon(ok, seen, (), now=NOW, is_gone=True)
    assert gone.found == "it was last seen 4 min ago, and `up` has ended; no feed waits for it"
    assert not owner_is_gone(home)
    lock = HomeLock(home, address="x")
    assert not owner_is_gone(home)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    said = json.loads((home / "up.lock").read_bytes())
    (home / "up.lock").write_text(json.dumps({**said, "pid": process.pid}), "utf-8")
    assert owner_is_gone(home)
    lock.release()


def only(checks: list[Finding], state: State) -> list[Finding]:
    return [check for check in checks if check.state == state]


def finding(checks: list[Finding], name: str) -> Finding:
    (found,) = (check for check in checks if check.name == name)
    return found


def test_a_healthy_home_is_ok_throughout(home: Path) -> None:
    checks = examined(home)
    assert [check for check in checks if check.state != "ok"] == []
    assert {"settings", "feeds.yaml", "database", "schema", "objects", "restore", "dagster"} <= {
        check.name for check in checks
    }


def test_a_healthy_cloudflare_is_ok_but_for_the_rules_it_does_not_show(
    home: Path, cloudflare: Cloudflare
) -> None:
    database = D1Database(cloudflare.url, cloudflare.token)
    migrate(database)
    fill(database)
    database.close()
    store = r2(cloudflare)
    store.put(KEY, b"<rss/>", content_type="application/xml")
    store.client.close()
    checks = examined(home, cloudflare.environ)
    assert [check.name for check in checks if check.state != "ok"] == ["lifecycle"]
    rule = finding(checks, "lifecycle")
    assert (rule.state, "NotImplemented" in rule.found) == ("warning", True)
    assert "npx wrangler r2 bucket lifecycle list test-bucket" in rule.fix
    assert finding(checks, "database clock").found == "agrees with this machine's"
    assert "Each of the 1 feeds that changed last has" in finding(checks, "restore").found


def r2(cloudflare: Cloudflare) -> S3Store:
    return S3Store(
        endpoint_url=cloudflare.s3_endpoint,
        bucket=cloudflare.bucket,
        access_key_id=cloudflare.access_key,
        secret_access_key=cloudflare.secret_key,
    )


@pytest.mark.parametrize(
    ("changed", "name", "said"),
    [
        (
            {"D1_PROXY_TOKEN": "wrong-wrong-wrong"},
            "database",
            "the Worker does not accept D1_PROXY_TOKEN",
        ),
        ({"D1_PROXY_URL": "http://127.0.0.1:9"}, "database", "ConnectError"),
        ({"R2_BUCKET": "nosuch"}, "objects", "check R2_BUCKET"),
        ({"R2_SECRET_ACCESS_KEY": "wrong-secret-key"}, "objects", "SignatureDoesNotMatch"),
        ({"R2_ENDPOINT_URL": "http://127.0.0.1:9"}, "objects", "check R2_ENDPOINT_URL and the network"),
    ],
)
def test_a_cloudflare_that_refuses_us_is_a_failure_and_the_others_go_on(
    home: Path, cloudflare: Cloudflare, changed: dict[str, str], name: str, said: str
) -> None:
    database = D1Database(cloudflare.url, cloudflare.token)
    migrate(database)
    database.close()
    environ = {**cloudflare.environ, **changed}
    checks = examined(home, environ)
    assert [check.name for check in only(checks, "failure")] == [name]
    assert said in finding(checks, name).found
    assert finding(checks, name).fix
    assert finding(checks, "dagster").state == "ok"
    assert finding(checks, "objects" if name == "database" else "database").state == "ok"
    for secret in (environ[name] for name in environ if "TOKEN" in name or "KEY" in name):
        assert secret not in str(checks)


def test_d1_behind_fails_and_says_migrate(home: Path, bare_cloudflare: Cloudflare) -> None:
    schema = finding(examined(home, bare_cloudflare.environ), "schema")
    assert (schema.state, schema.fix) == ("failure", "Run `rss-pipeline migrate`.")
    assert "the database has schema 0" in schema.found


def test_half_a_configuration_is_a_failure_and_the_rest_is_checked(home: Path) -> None:
    checks = examined(home, {"D1_PROXY_URL": "https://x.example", "RSS_PORT": "many", "RSS_PROT": "1"})
    failures = only(checks, "failure")
    assert [check.name for check in failures] == ["settings", "settings"]
    assert "D1_PROXY_TOKEN: not set" in str(failures)
    assert "RSS_PORT" in str(failures)
    names = {check.name for check in checks}
    assert {"objects", "feeds.yaml", "dagster"} <= names
    assert "database" not in names, "nobody knows which it is"


_S3 = {"S3_BUCKET": "b", "S3_ACCESS_KEY_ID": "key-id", "S3_SECRET_ACCESS_KEY": "secret-key"}
_R2 = {f"R2_{name[3:]}": text for name, text in _S3.items()} | {"R2_ENDPOINT_URL": "http://127.0.0.1:1"}
_D1 = {"D1_PROXY_URL": "http://127.0.0.1:1", "D1_PROXY_TOKEN": "token-token"}


@pytest.mark.parametrize(
    ("environ", "unknown"),
    [
        ({"S3_BUCKET": "b"}, {"objects"}),
        # Not looked for at Amazon, where these keys do not belong.
        (_S3 | {"S3_ENDPOINT_URL": "store.example"}, {"objects"}),
        (
            _S3 | {f"R2_{name[3:]}": text for name, text in _S3.items()} | {"R2_ENDPOINT_URL": "http://x"},
            {"objects"},
        ),
        (_D1 | {"DATABASE_URL": "postgresql://u@127.0.0.1:1/d"}, {"database"}),
        ({"RSS_BROKER_URL": "redis://127.0.0.1:1/0"}, {"database", "broker"}),
        ({"RSS_BROKER_URL": "http://x", "DATABASE_URL": "mysql://x"}, {"database", "broker"}),
        ({"DAGSTER_DATABASE_URL": "postgresql://u@127.0.0.1:1/d"}, {"broker"}),
        ({"RSS_PORT": "3001"}, set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_known_is_left_out_and_the_rest_is_checked(
    home: Path, environ: dict[str, str], unknown: set[str]
) -> None:
    checks = examined(home, environ)
    assert {check.name for check in checks if check.state != "ok"} == {"settings"}
    names = {check.name for check in checks}
    assert {"database", "objects", "feeds.yaml", "dagster"} - unknown <= names
    assert names.isdisjoint(unknown)


def test_a_short_secret_shreds_no_message(home: Path) -> None:
    checks = examined(home, {"R2_BUCKET": "b", "R2_SECRET_ACCESS_KEY": "e"})
    assert "not set, but R2_BUCKET" in finding(checks, "settings").found


def test_a_server_without_a_password_is_named_and_one_with_a_password_is_named_without_it(home: Path) -> None:
    said = finding(examined(home, {"DATABASE_URL": "postgresql://127.0.0.1:1/feeds"}), "database").found
    assert "postgresql://127.0.0.1:1/feeds: connection failed" in said
    found = finding(examined(home, {"DATABASE_URL": "postgresql://me:hunter2%21@127.0.0.1:1/x"}), "database")
    assert "127.0.0.1:1/x: connection failed" in found.found
    assert "hunter2" not in str(found)


def test_requests_without_a_contact_are_a_warning(home: Path) -> None:
    (warning,) = only(examined(home, {"RSS_USER_AGENT_CONTACT": ""}), "warning")
    assert (warning.name, "RSS_USER_AGENT_CONTACT" in warning.fix) == ("contact", True)


def test_an_unknown_setting_is_a_warning(home: Path) -> None:
    (warning,) = only(examined(home, {"RSS_PROT": "1"}), "warning")
    assert "RSS_PROT" in warning.found


def test_a_registry_that_waits_for_a_confirmation_or_clashes_is_not_in_use(home: Path) -> None:
    assert finding(examined(home), "feeds.yaml in use").state == "ok"
    at = instant(NOW)
    rows = (
        "INSERT INTO feeds (id, url, host, next_fetch_at, created_at, listed, registered)"
        f" VALUES ('{id}', 'https://old.example/{id}', 'old.example', '{at}', '{at}', 1, 1)"
        for id in ("one", "two", "three")
    )
    change(home, *rows)
    (home.parent / "feeds.yaml").write_text("- https://new.example/feed\n")
    waiting = finding(examined(home), "feeds.yaml in use")
    assert (waiting.state, "`rss-pipeline poll --yes`" in waiting.fix) == ("warning", True)
    (home.parent / "feeds.yaml").write_text("- url: https://old.example/one\n  id: another\n")
    clashing = finding(examined(home), "feeds.yaml in use")
    assert (clashing.state, "already stored as feed" in clashing.fix) == ("failure", True)


def test_all_mistakes_of_the_registry_are_shown(home: Path) -> None:
    (home.parent / "feeds.yaml").write_text(
        "- url: ftp://x.example/\n- url: https://y.example/\n  intervall: 5m\n"
        "- url: https://z.example/\n  headers: {Authorization: 'Bearer ${NO_SUCH_TOKEN}'}\n",
        "utf-8",
    )
    checks = examined(home)
    (failure,) = only(checks, "failure")
    assert failure.name == "feeds.yaml"
    assert "3 mistake(s)" in failure.found
    assert all(word in failure.fix for word in ("ftp", "interval", "NO_SUCH_TOKEN"))
    assert finding(checks, "failing feeds").state == "ok"


def test_a_feed_with_a_password_that_was_taken_out_of_the_registry_is_a_warning(home: Path) -> None:
    change(home, "UPDATE feeds SET needs_access = 1")
    assert "1 feed was polled with headers" in finding(examined(home), "secrets").found
    (home.parent / "feeds.yaml").write_text(
        "- url: https://127.0.0.1/\n  id: news\n  allow_private: true\n  headers: {X-Key: '${KEY}'}\n",
        "utf-8",
    )
    checks = examined(home, {"KEY": "s3cr3t-value"})
    assert only(checks, "warning") == only(checks, "failure") == []
    assert "s3cr3t-value" not in str(checks)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("UPDATE feeds SET consecutive_failures = 3", "failing feeds"),
        ("UPDATE feeds SET consecutive_failures = 1, last_error_kind = 'gone'", "gone feeds"),
        ("UPDATE feeds SET fetch_url = 'https://new.example/'", "moved feeds"),
        ("UPDATE feeds SET move_url = 'https://soon.example/'", "moved feeds"),
        ("UPDATE feeds SET warning = 'titles repeat'", "feed warnings"),
        ("UPDATE feeds SET change_count = 1, changed_at = '2026-03-02T08:00:00Z'", "unreported"),
        ("UPDATE feeds SET lease_token = 'of-a-dead-run'", "dead leases"),
    ],
)
def test_what_is_wrong_with_feeds_is_a_warning_that_names_them(home: Path, sql: str, name: str) -> None:
    change(home, sql)
    (warning,) = only(examined(home), "warning")
    assert warning.name == name
    assert warning.found.startswith("1 feed ")
    assert warning.found.endswith(" (news)")
    assert warning.fix


def test_a_feed_that_a_living_run_holds_or_that_just_changed_is_no_error(home: Path) -> None:
    change(
        home,
        "INSERT INTO leases (token, run_id, expires_at, feeds, hosts)"
        " VALUES ('t', 'r', '2999-01-01T00:00:00Z', '[]', '[]')",
        "UPDATE feeds SET lease_token = 't', change_count = 1, changed_at = '2026-03-02T11:30:00Z'",
    )
    assert only(examined(home, now=NOW), "warning") == []


def test_a_newest_backup_that_is_gone_is_a_failure_with_what_a_restore_would_lose(home: Path) -> None:
    FolderStore(home / "objects").delete_many([KEY])
    (failure,) = only(examined(home), "failure")
    assert failure.name == "restore"
    assert failure.found == (
        "The object store is empty, and 1 feed lacks its newest backup: if the database is lost, up to 1"
        " items are lost too (news)"
    )


def test_a_later_backup_serves_as_well_as_the_one_its_newest_item_came_from(home: Path) -> None:
    store = FolderStore(home / "objects")
    store.delete_many([KEY])
    store.put(KEY.replace("-03-", "-04-"), b"<rss/>", content_type="application/xml")
    assert finding(examined(home), "restore").state == "ok"


def put_image(home: Path, key: str, *, hours_ago: float, size: int = 1_000_000) -> None:
    FolderStore(home / "objects").put(key, bytes(size), content_type="image/png")
    then = NOW.timestamp() - hours_ago * 3600
    os.utime(home / "objects" / key, (then, then))


def test_objects_without_a_row_are_reported_and_left(home: Path) -> None:
    change(
        home,
        """INSERT INTO image_tasks
          (id, item_id, original_url, created_at, updated_at, host, position, r2_key, status)
        VALUES ('t', 'i', 'u', 'x', 'x', 'h', 0, 'images/news/aaaaaaaa/0.png', 'success')""",
    )
    put_image(home, "images/news/aaaaaaaa/0.png", hours_ago=9)
    put_image(home, "images/news/aaaaaaaa/1.png", hours_ago=0.5)
    assert only(examined(home, now=NOW), "warning") == [], "the young one may get its row yet"
    put_image(home, "images/news/aaaaaaaa/2.png", hours_ago=2)
    put_image(home, "images/forgotten/bbbbbbbb/0.png", hours_ago=2)
    put_image(home, "backups/forgotten/2026-03-01T08:00:00Z.xml", hours_ago=2, size=500_000)
    (warning,) = only(examined(home, now=NOW), "warning")
    assert warning.name == "orphans"
    assert warning.found == (
        "6 objects looked at: 2 images without a row (2.0 MB) of forgotten, news;"
        " 1 backups without a feed (0.5 MB) of forgotten"
    )
    assert "rss-pipeline restore" in warning.fix
    assert (home / "objects/images/forgotten/bbbbbbbb/0.png").exists()


@pytest.mark.parametrize("others", [0, 1])
def test_archived_images_that_are_gone_are_reported(home: Path, others: int) -> None:
    change(
        home,
        """INSERT INTO image_tasks
          (id, item_id, original_url, created_at, updated_at, host, position, r2_key, status)
        VALUES ('t', 'i', 'u', 'x', 'x', 'h', 0, 'images/news/aaaaaaaa/0.png', 'success')""",
    )
    for _ in range(others):
        put_image(home, "images/news/aaaaaaaa/1.png", hours_ago=0.5)
    (warning,) = only(examined(home, now=NOW), "warning")
    assert (warning.name, warning.found) == (
        "missing images",
        "1 archived images are not in the store (news)",
    )


def test_looking_for_orphans_ends_in_time_and_says_so(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "ORPHANS_SECONDS", -1.0)
    check = finding(examined(home), "orphans")
    assert "then the time allowed was over" in check.found


def test_a_feed_with_items_and_no_backup_at_all_is_a_warning(home: Path) -> None:
    change(home, "UPDATE items SET backup_key = NULL")
    (warning,) = only(examined(home), "warning")
    assert warning.found.startswith("1 feed lacks its newest backup: ")
    assert warning.found.endswith(" (news)")


def test_only_a_bounded_number_of_feeds_is_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "BACKUPS_LOOKED_AT", 2)
    more = (f"('{n}', '{n}', 'h', 'x', 'x')" for n in range(3))
    items = (f"('{n}', '{n}', 'g', 'x', 'x', 'guid', 'feed')" for n in range(3))
    change(
        home,
        f"INSERT INTO feeds (id, url, host, next_fetch_at, created_at) VALUES {', '.join(more)}",
        "INSERT INTO items (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source)"
        f" VALUES {', '.join(items)}",
    )
    assert finding(examined(home), "restore").found.startswith("1 feed lacks its newest backup: ")


@pytest.mark.parametrize(
    ("version", "state", "fix"), [(0, "warning", "migrate"), (9999, "failure", "Update")]
)
def test_a_schema_behind_or_ahead(home: Path, version: int, state: State, fix: str) -> None:
    change(home, f"UPDATE schema_migrations SET version = {version}")
    schema = finding(examined(home), "schema")
    assert (schema.state, fix in schema.fix) == (state, True)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may enter; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="rss-pipeline-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_what_cannot_be_written_is_a_failure(home: Path, public_folder: Path) -> None:
    closed = public_folder / "home"
    shutil.move(home, closed)
    (public_folder / "feeds.yaml").write_text("- https://news.example/\n", "utf-8")
    examined(closed)  # What Python loads late, it may not be able to load as that user.
    for folder, _, _ in os.walk(closed):
        Path(folder).chmod(0o555)
    with nobody():
        checks = examined(closed)
    for folder, _, _ in os.walk(closed):
        Path(folder).chmod(0o755)
    assert {"database", "objects", "dagster"} <= {check.name for check in only(checks, "failure")}
    assert finding(checks, "feeds.yaml").state == "ok"


def test_a_dagster_home_without_its_file_is_a_warning(home: Path) -> None:
    (home / "dagster" / "dagster.yaml").unlink()
    (warning,) = only(examined(home), "warning")
    assert "no dagster.yaml" in warning.found


def test_a_home_that_is_not_there_yet_is_ok_and_stays_so(tmp_path: Path) -> None:
    (tmp_path / "feeds.yaml").write_text("- url: https://127.0.0.1/\n  allow_private: true\n", "utf-8")
    checks = examined(tmp_path / "home")
    assert [check for check in checks if check.state != "ok"] == []
    assert not (tmp_path / "home").exists()


@dataclass
class Pretender:
    """Says what a real one does not say on demand: as proxy Worker and as S3 endpoint."""

    date: datetime
    size: int = 1_000_000
    lifecycle: str | None = None
    environ: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def pretender() -> Iterator[Pretender]:
    pretender = Pretender(date=NOW)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = 200, "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"
            if self.path == "/query":
                results = [{"now": "2026-03-02T12:00:00Z"}] if b"now" in body else []
                text = json.dumps({"results": results, "meta": {"size_after": pretender.size, "changes": 0}})
            elif "lifecycle" in self.path and pretender.lifecycle is None:
                status, text = 404, "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>"
            elif "lifecycle" in self.path:
                text = f"<LifecycleConfiguration>{pretender.lifecycle}</LifecycleConfiguration>"
            elif "delete" in self.path:
                text = "<DeleteResult><Deleted><Key>probe/writable</Key></Deleted></DeleteResult>"
            self.send_response_only(status)
            self.send_header("Date", format_datetime(pretender.date, usegmt=True))
            self.send_header("ETag", '"d41d8cd98f00b204e9800998ecf8427e"')
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    for method in ("GET", "PUT", "POST", "HEAD"):
        setattr(Handler, f"do_{method}", Handler.answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        url = f"http://127.0.0.1:{server.server_address[1]}"
        pretender.environ = {
            "D1_PROXY_URL": url,
            "D1_PROXY_TOKEN": "a-token-of-ours",
            "R2_ENDPOINT_URL": url,
            "R2_BUCKET": "bucket",
            "R2_ACCESS_KEY_ID": "an-access-key",
            "R2_SECRET_ACCESS_KEY": "a-secret-key-of-ours",
        }
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield pretender
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ahead", "state", "said"),
    [
        (timedelta(seconds=30), "ok", "agrees"),
        (timedelta(seconds=-59), "ok", "agrees"),
        (timedelta(seconds=90), "warning", "90 s behind"),
        (timedelta(minutes=-5), "warning", "299 s ahead"),
        (timedelta(hours=1), "failure", "3,600 s behind"),
    ],
)
def test_a_wrong_clock_shows_against_both(
    home: Path, pretender: Pretender, ahead: timedelta, state: State, said: str
) -> None:
    pretender.date = NOW + ahead
    checks = examined(home, pretender.environ, now=NOW)
    for name in ("database clock", "objects clock"):
        check = finding(checks, name)
        assert (check.state, said in check.found, bool(check.fix)) == (state, True, state != "ok"), check


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "state", "said"),
    [
        (None, "ok", "no rule for backups/: the daily clean removes old ones"),
        ("<Prefix>backups/</Prefix><Status>Enabled</Status>", "ok", "after 60 days"),
        ("<Filter><Prefix>backups/</Prefix></Filter><Status>Enabled</Status>", "ok", "after 60 days"),
        ("<Filter><Prefix>backups/</Prefix></Filter><Status>Disabled</Status>", "ok", "no rule"),
        ("<Filter><Prefix>images/</Prefix></Filter><Status>Enabled</Status>", "ok", "no rule"),
    ],
)
def test_the_lifecycle_rule(
    home: Path, pretender: Pretender, rule: str | None, state: State, said: str
) -> None:
    days = "<Expiration><Days>60</Days></Expiration>"
    pretender.lifecycle = None if rule is None else f"<Rule><ID>x</ID>{rule}{days}</Rule>"
    check = finding(examined(home, pretender.environ, now=NOW), "lifecycle")
    assert (check.state, said in check.found) == (state, True), check


@pytest.mark.parametrize(
    ("size", "state"),
    [
        (399_999_999, "ok"),
        (400_000_000, "warning"),
        (500_000_001, "ok"),
        (8_000_000_000, "warning"),
        (9_900_000_000, "failure"),
    ],
)
def test_a_database_near_its_limit(size: int, state: State) -> None:
    assert D1Backend(url="", token="").judge_size(size).state == state


@pytest.mark.slow
def test_the_size_is_what_d1_says(home: Path, pretender: Pretender) -> None:
    pretender.size = 8_500_000_000
    check = finding(examined(home, pretender.environ, now=NOW), "database size")
    assert (check.state, check.found) == ("warning", "8,500.0 MB of 10 GB, D1's limit")


@pytest.mark.slow
def test_a_proxy_that_is_something_else_is_a_failure(home: Path, pretender: Pretender) -> None:
    environ = {**pretender.environ, "D1_PROXY_URL": f"{pretender.environ['D1_PROXY_URL']}/elsewhere"}
    check = finding(examined(home, environ, now=NOW), "database")
    assert (check.state, "200: <ListBucketResult>" in check.found) == ("failure", True)


@pytest.mark.parametrize(("free", "state"), [(2e9, "ok"), (9e8, "warning"), (5e7, "failure")])
def test_a_disk_that_fills_up(free: float, state: State) -> None:
    assert stores.disk_room(Path("/"), int(free)).state == state


def test_rules_that_may_not_be_read_are_a_warning() -> None:
    check = stores.check_lifecycle(Lifecycle(unread="AccessDenied"), "b", backup_days=30)
    assert (check.state, "AccessDenied" in check.found) == ("warning", True)
    assert "(60 days)" in check.fix


@pytest.mark.parametrize(
    ("days", "backup_days", "off", "wanted"),
    [(30, 30, 15, 60), (59, 30, 44, 60), (60, 31, 45, 62), (14, 7, 11, 60), (90, 90, 45, 180)],
)
def test_a_rule_that_leaves_the_clean_little_time_is_a_warning(
    days: int, backup_days: int, off: int, wanted: int
) -> None:
    check = stores.check_lifecycle(Lifecycle(days=days), "b", backup_days=backup_days)
    assert (check.state, f"is off for {off} days" in check.found) == ("warning", True), check
    assert f"--expire-days {wanted}`" in check.fix
    assert stores.check_lifecycle(Lifecycle(days=wanted), "b", backup_days=backup_days).state == "ok"


@pytest.mark.parametrize(
    ("url", "state", "said"),
    [
        ("", "ok", "off: RSS_ALERT_WEBHOOK is not set to a URL"),
        ("https://hooks.slack.com/services/s3cr3t", "ok", "go to hooks.slack.com; "),
        ("https://discord.com/api/webhooks/1/s3cr3t/slack", "ok", "go to discord.com; "),
        ("https://discord.com/api/webhooks/1/s3cr3t", "failure", "with /slack at its end"),
        ("https://a\x7fb.example/s3cr3t", "failure", "no URL that can be requested"),
    ],
)
def test_a_webhook_is_looked_at_and_nothing_sent(home: Path, url: str, state: State, said: str) -> None:
    checks = examined(home, {"RSS_ALERT_WEBHOOK": url})
    check = finding(checks, "alerts")
    assert (check.state, said in check.found) == (state, True), check
    assert "s3cr3t" not in str(checks)
