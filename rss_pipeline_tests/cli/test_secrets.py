"""Passwords and secret headers of the registry, whatever the command does with their feeds."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

HOST = "127.0.0.2"


PASSWORD = "correct-horse-battery"
TOKEN = "staple-0123456789"
SECRETS = [
    PASSWORD.encode(),
    TOKEN.encode(),
    base64.b64encode(f"me:{PASSWORD}".encode()),
]


def _leaks(folder: Path) -> list[str]:
    """Files below a folder that hold a secret."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in SECRETS)
    ]


@pytest.mark.slow
def test_passwords_and_secret_headers_go_to_their_server_and_are_written_nowhere(
    tmp_path: Path, server: FeedServer
) -> None:
    """Whatever becomes of the feed: stored, refused, junk, unreachable; by the command, by hand."""
    home, registry = tmp_path / "home", tmp_path / "feeds.yaml"
    good = server.route(HOST, "/feed", Answer(body=rss("a"), etag='"1"'))
    refused = server.route(HOST, "/refused", Answer(status=401, body=b"who are you"))
    junk = server.route(HOST, "/junk", Answer(body=b"no feed"))
    moved = server.route(HOST, "/moved", Answer(status=302, headers={"Location": "/nowhere/"}))
    headed = server.route("127.0.0.3", "/feed", Answer(body=rss("b")))
    with_password = [good, refused, junk, moved, "http://127.0.0.7:9/unreachable"]
    lines = [
        f"- url: {url.replace('//', '//me:${FEED_PASSWORD}@')}\n  allow_private: true\n"
        for url in with_password
    ]
    lines.append(f"- url: {headed}\n  allow_private: true\n  id: headed\n  headers: {{X-Token: '{TOKEN}'}}\n")
    registry.write_text("feeds:\n" + "".join(lines), "utf-8")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RSS_")},
        "RSS_PIPELINE_HOME": str(home),
        "RSS_FEEDS_FILE": str(registry),
        "RSS_HOST_DELAY_SECONDS": "0",
        "FEED_PASSWORD": PASSWORD,
    }
    program = str(Path(sys.executable).with_name("rss-pipeline"))

    def command(*arguments: str) -> str:
        done = subprocess.run(
            [program, *arguments],
            env=environ,
            cwd=tmp_path,
            check=False,
            capture_output=True,
            timeout=PATIENCE,
        )
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        return (done.stdout + done.stderr).decode()

    said = command("poll", "--all", "--json")
    assert '"stored": 2' in said
    assert '"failed": 4' in said
    for arguments in (["poll", "--all"], ["status", "--json"], ["status", "refused"], ["items", "headed"]):
        said += command(*arguments)
    registry.write_text(registry.read_text("utf-8") + "- url: 17\n  headers: {X: [" + TOKEN, "utf-8")
    said += command("poll")

    basic = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert {request.headers["authorization"] for request in server.asked(HOST, "/feed")} == {basic}
    assert {request.headers["x-token"] for request in server.asked("127.0.0.3")} == {TOKEN}
    assert not any(secret.decode() in said for secret in SECRETS), said
    assert (home / "rss.sqlite").is_file()
    assert (home / "dagster").is_dir()
    assert _leaks(home) == []
