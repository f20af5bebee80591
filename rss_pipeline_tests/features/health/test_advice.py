"""Advice for the right cause: each was once advice for another one."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import click
import psycopg
import pytest

from rss_pipeline.cli.output.polls import PollResult
from rss_pipeline.cli.output.status_table import show_shards
from rss_pipeline.cli.up import _bound
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.shard import shards
from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import ObjectStoreUnavailable, SettingsError
from rss_pipeline.features.health.doctor import examine
from rss_pipeline.held_folders import SOCKETS, HeldFolder, socket_root
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.postgres.server_errors import failed
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds.due import DueSummary
from rss_pipeline_tests.support.healthy_home import healthy_home

R2 = {"R2_BUCKET": "my-bucket", "R2_ACCESS_KEY_ID": "k", "R2_SECRET_ACCESS_KEY": "s"}
S3 = {"S3_BUCKET": "my-bucket", "S3_ACCESS_KEY_ID": "k", "S3_SECRET_ACCESS_KEY": "s"}
ACCOUNT = "https://acc.r2.cloudflarestorage.com"


def refused(environ: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as caught:
        Settings.from_environ(environ, cwd=Path("/nowhere"))
    return str(caught.value)


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (
            {**R2, "R2_ENDPOINT_URL": f"{ACCOUNT}/my-bucket"},
            f"R2_ENDPOINT_URL: ends with the bucket's name; write {ACCOUNT}",
        ),
        ({**R2, "R2_ENDPOINT_URL": f"{ACCOUNT}/my-bucket/"}, f"write {ACCOUNT}"),
        (
            {**R2, "R2_ENDPOINT_URL": "https://my-bucket.acc.r2.cloudflarestorage.com"},
            f"begins with the bucket's name; write {ACCOUNT}",
        ),
        (
            {**S3, "S3_ENDPOINT_URL": "http://127.0.0.1:9000/store/my-bucket"},
            "write http://127.0.0.1:9000/store",
        ),
        ({"RSS_PIPELINE_HOME": '"/data/var"'}, "RSS_PIPELINE_HOME: has quotes around it"),
        ({"RSS_FEEDS_FILE": "'feeds.yaml'"}, "RSS_FEEDS_FILE: has quotes around it"),
        ({"RSS_USER_AGENT_CONTACT": '"https://me.example"'}, "RSS_USER_AGENT_CONTACT: has quotes around it"),
        ({"DATABASE_URL": '"postgresql://u:hunter2@h/d"'}, "DATABASE_URL: has quotes around it"),
    ],
    ids=lambda value: next(reversed(value)) if isinstance(value, dict) else "",
)
def test_a_value_of_the_environment_that_is_wrong_is_named_with_what_is_right(
    environ: dict[str, str], said: str
) -> None:
    sentence = refused(environ)
    assert said in sentence
    assert "hunter2" not in sentence


def test_an_endpoint_that_only_resembles_the_bucket_is_right() -> None:
    for url in ("https://my-bucket.example.org", f"{ACCOUNT}", "http://127.0.0.1:9000/my-bucket-2"):
        assert (
            Settings.from_environ({**S3, "S3_ENDPOINT_URL": url}, cwd=Path("/nowhere")).objects_server
            is not None
        )


@pytest.mark.parametrize(
    ("encoding", "kind"),
    [
        ("utf-16", "is UTF-16; save it as UTF-8"),
        ("utf-16-le", "is UTF-16; save it as UTF-8"),
        ("latin-1", "is not UTF-8; save it"),
    ],
)
def test_a_file_of_variables_that_is_not_utf_8_is_named(tmp_path: Path, encoding: str, kind: str) -> None:
    tmp_path.joinpath(".env").write_bytes("RSS_TIMEZONE=Europe/Z\u00fcrich\r\n".encode(encoding))
    with pytest.raises(SettingsError, match=kind):
        load_env_file(tmp_path)


def test_a_file_of_variables_with_a_line_that_is_none_is_refused_by_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`RSS_KEEP_DAYS: 400` would be left out, and items of half a year ago removed."""
    file = tmp_path / ".env"
    file.write_text("RSS_PORT=3000\nRSS_KEEP_DAYS: 400\nRSS_PROXY='hunter2\n", "utf-8")
    monkeypatch.setattr(os, "environ", before := dict(os.environ))
    with pytest.raises(SettingsError, match="line 2, 3: not a variable; write NAME=value") as refused_:
        load_env_file(tmp_path)
    assert "hunter2" not in str(refused_.value)
    assert os.environ == before
    file.write_text("\ufeff# 50 %\n\nexport RSS_ONE = 'a b' # c\nRSS_TWO\nRSS_THREE=${RSS_ONE}!\n", "utf-8")
    load_env_file(tmp_path)
    assert (os.environ["RSS_ONE"], os.environ["RSS_THREE"]) == ("a b", "a b!")


def test_a_pooler_that_mixes_up_statements_is_not_a_schema_to_migrate() -> None:
    for kind in (psycopg.errors.DuplicatePreparedStatement, psycopg.errors.InvalidSqlStatementName):
        said = str(failed(kind("prepared statement exists"), [Statement("SELECT 1")], "h/d"))
        assert "PgBouncer 1.21" in said
        assert "migrate" not in said


class Skewed(BaseHTTPRequestHandler):
    """A store that refuses a clock: with its own word, or with no more than a status."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b"<Error><Code>RequestTimeTooSkewed</Code></Error>" if "word" in self.path else b""
        self.send_response_only(403)
        self.send_header("Date", format_datetime(datetime.now(UTC) + timedelta(minutes=20), usegmt=True))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self.answer
        raise AttributeError(name)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def skewed() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Skewed)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_store_that_refuses_a_wrong_clock_is_not_one_that_refuses_a_key(
    skewed: str, tmp_path: Path
) -> None:
    for bucket in ("word", "none"):
        store = S3Store(endpoint_url=skewed, bucket=bucket, access_key_id="k", secret_access_key="s")
        for call in (store.probe, lambda store=store: store.head("backups/a/b.xml")):
            with pytest.raises(ObjectStoreUnavailable, match="set this machine's clock") as caught:
                call()
            assert "ACCESS_KEY" not in str(caught.value)
    environ = {**S3, "S3_ENDPOINT_URL": skewed, "RSS_PIPELINE_HOME": str(healthy_home(tmp_path))}
    wrong = [
        check
        for check in examine(environ, cwd=tmp_path, clock=utc_now)
        if check.name.startswith("objects") and check.state == "failure"
    ]
    assert {check.name for check in wrong} == {"objects clock", "objects"}
    assert all("Set the clock" in check.fix for check in wrong)


def test_a_folder_for_temporary_files_with_a_long_path_is_not_a_lack_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 120)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    held = HeldFolder(socket_root(), prefix=SOCKETS)
    try:
        assert len(os.fsencode(held.path / "listener-12345678")) < 108
    finally:
        held.remove()


def test_what_other_runs_have_claimed_is_not_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    idle = dict.fromkeys(shards(2), DueSummary(due=0, never_fetched=0, oldest_due_at=None, live_run_ids=()))
    show_shards(idle, due=33, now=utc_now())
    PollResult(
        counts=dict.fromkeys(("stored", "unchanged", "failed"), 0),
        failures=(),
        errors=(),
        runs=(),
        claimed=33,
    ).show()
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 shards: runs have claimed what is due, or its hosts" in printed
    assert "33 feeds are due, and other runs have claimed them or their hosts" in printed
    show_shards(idle, due=0, now=utc_now())
    assert "nothing is due" in capsys.readouterr().out


_LISTEN = (
    "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True);"
    " sys.stdin.read()"
)


@pytest.mark.parametrize("module", ["rss_pipeline.orchestration.serving.webserver", "another.program"])
def test_a_port_of_an_up_that_was_killed_is_waited_for(module: str) -> None:
    command = [sys.executable, "-c", _LISTEN, "-m", module]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with pytest.raises(click.ClickException) as caught:
            _bound("127.0.0.1", port, names=("RSS_UI_ADDRESS", "RSS_PORT"), seconds=0)
        ours = module.startswith("rss_pipeline")
        assert ("left of an `rss-pipeline up` that was killed" in caught.value.message) is ours
        assert ("stop the program that uses it" in caught.value.message) is not ours
        if ours:
            threading.Timer(0.2, process.stdin.close).start()
            _bound("127.0.0.1", port, names=("RSS_UI_ADDRESS", "RSS_PORT")).close()
        else:
            process.stdin.close()


@pytest.mark.slow
def test_a_sentence_about_d1_comes_before_its_statements(skewed: str, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "D1_PROXY_URL": skewed,
        "D1_PROXY_TOKEN": "made-up-token",
        "RSS_PIPELINE_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "rss_pipeline.cli", "status"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("the database cannot be used: check D1_PROXY_TOKEN"), done.stderr
