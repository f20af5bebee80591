"""`rss-pipeline doctor`: what it prints, its exit code, and what it loads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.pipeline.health.findings import Check
from rss_pipeline.storage.backends.d1 import D1Database
from rss_pipeline.storage.backends.folder import FolderStore
from rss_pipeline.storage.backends.r2 import R2Store
from rss_pipeline.storage.backends.sqlite import SqliteDatabase
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.cloudflare import Cloudflare
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import cpu_seconds_of_children

KEY = "backups/news/2026-03-02T08:00:00Z.xml"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A deployment in which all is well: one feed with an item, its backup, Dagster's home."""
    home = tmp_path / "home"
    database = SqliteDatabase(home / "rss.sqlite")
    migrate(database)
    fill(database)
    database.close()
    FolderStore(home / "objects").put(KEY, b"<rss/>", content_type="application/xml")
    (home / "dagster").mkdir()
    (home / "dagster" / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    (tmp_path / "feeds.yaml").write_text("- url: https://news.example/\n  id: news\n", "utf-8")
    return home


def fill(database: SqliteDatabase | D1Database) -> None:
    at = "'2026-03-02T08:00:00Z'"
    database.query(
        "INSERT INTO feeds (id, url, host, next_fetch_at, created_at, last_body_at)"
        f" VALUES ('news', 'https://news.example/', 'news.example', {at}, {at}, {at})"
    )
    database.query(
        "INSERT INTO items"
        " (id, feed_id, guid, pub_date, created_at, guid_source, pub_date_source, backup_key)"
        f" VALUES ('i', 'news', 'g', {at}, {at}, 'guid', 'feed', '{KEY}')"
    )


def finding(checks: list[Check], name: str) -> Check:
    (found,) = (check for check in checks if check.name == name)
    return found


def r2(cloudflare: Cloudflare) -> R2Store:
    return R2Store(
        endpoint_url=cloudflare.s3_endpoint,
        bucket=cloudflare.bucket,
        access_key_id=cloudflare.access_key,
        secret_access_key=cloudflare.secret_key,
    )


def test_the_command_prints_each_check_and_exits_with_1_on_a_failure(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)
    environ = {"RSS_PIPELINE_HOME": str(home), "RSS_FEEDS_FILE": "feeds.yaml"}
    fine = CliRunner().invoke(main, ["doctor"], env=environ)
    assert fine.exit_code == 0, fine.output
    assert " ok, 0 warnings, 0 failures" in fine.stdout
    FolderStore(home / "objects").delete_many([KEY])
    wrong = CliRunner().invoke(main, ["doctor"], env={**environ, "RSS_PORT": "x"})
    assert wrong.exit_code == 1
    assert "2 failures" in wrong.stdout
    told = json.loads(CliRunner().invoke(main, ["doctor", "--json"], env=environ).stdout)
    assert {each["name"] for each in told if each["state"] == "failure"} == {"restore"}
    assert set(told[0]) == {"name", "state", "found", "mend"}


def test_a_test_alert_is_sent_where_it_is_asked_for(
    home: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home.parent)

    def alerted(**environ: str) -> tuple[int, dict[str, str]]:
        result = CliRunner().invoke(
            main, ["doctor", "--alert", "--json"], env={"RSS_PIPELINE_HOME": str(home), **environ}
        )
        (told,) = [each for each in json.loads(result.stdout) if each["name"] == "test alert"]
        return result.exit_code, told

    url = server.route("127.0.0.2", "/hook/s3cr3t", Answer(), Answer(status=404, body=b"no /hook/s3cr3t"))
    code, told = alerted(RSS_ALERT_WEBHOOK=url)
    assert (code, told["state"], told["found"]) == (0, "ok", "127.0.0.2 took it")
    assert [request.method for request in server.requests] == ["POST"]
    code, told = alerted(RSS_ALERT_WEBHOOK=url)
    assert (code, told["found"]) == (1, "the alert was refused with 404: no …")
    code, told = alerted()
    assert (code, told["found"]) == (1, "not sent: RSS_ALERT_WEBHOOK is not set to a URL")
    assert "incoming webhook" in told["mend"]


@pytest.mark.slow
def test_it_needs_no_dagster_and_about_a_second(home: Path) -> None:
    code = (
        "import sys; from rss_pipeline.cli.main import main; main(['doctor'], standalone_mode=False);"
        "sys.exit('dagster' in sys.modules)"
    )
    environ = {**os.environ, "RSS_PIPELINE_HOME": str(home)}
    spent = []
    for _ in range(2):
        before = cpu_seconds_of_children()
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environ, cwd=home.parent, check=False, capture_output=True)
        spent.append(cpu_seconds_of_children() - before)
        assert done.returncode == 0, done.stderr.decode()
    assert min(spent) < 1.5
