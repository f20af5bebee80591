"""Passwords and secret headers of the registry, whatever the command does with their feeds."""

import base64
import html
import json
import logging
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline_tests.support.leaks import forms, leaks
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE

HOST = "127.0.0.2"


PASSWORD = "correct-horse-battery"
TOKEN = "staple-0123456789"
SECRETS = forms(PASSWORD) | forms(TOKEN)
COMMANDS = """
import os, sys
from pathlib import Path
from rss_pipeline.cli.start import main

def run(line):
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit:
        pass

broken, *lines = sys.argv[1:]
for line in lines:
    run(line)
Path(os.environ["RSS_FEEDS_FILE"]).write_text(broken, "utf-8")
run("poll")
"""
"""A program that runs one command after the other, the last one with a registry that has a mistake: loading
Dagster takes longer than most of them."""


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

    broken = registry.read_text("utf-8") + "- url: 17\n  headers: {X: [" + TOKEN
    lines = ["poll --all --json", "poll --all", "status --json", "status refused", "items headed"]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, broken, *lines],
        env=environ,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=PATIENCE,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    said = (done.stdout + done.stderr).decode()
    assert '"stored": 2' in said
    assert '"failed": 4' in said
    assert "feeds.yaml" in done.stderr.decode().splitlines()[-1], "the mistake in the file"
    basic = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    assert {request.headers["authorization"] for request in server.asked(HOST, "/feed")} == {basic}
    assert {request.headers["x-token"] for request in server.asked("127.0.0.3")} == {TOKEN}
    assert not any(secret in said.lower().encode() for secret in SECRETS), said
    assert (home / "rss.sqlite").is_file()
    assert (home / "dagster").is_dir()
    assert leaks(home, SECRETS) == set()


MANY = {
    "X-Key-" + str(n): secret
    for n, secret in enumerate(
        [
            *(f"0123-key-{letter}/+&<{letter}>" for letter in "abcdefghij"),
            *(f"opaque{n}=token{n}==" for n in range(1, 6)),
            "quotes\"and'9",
            "sk_live_9f8e7d6c5b4a",
            "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        ]
    )
}
"""With the password, 20 secrets."""
LONG_PASSWORD = "pass:w/ord & <more> 7"


def _escaped(secret: str) -> list[str]:
    """The secret in the forms that a document of XML may write."""
    return [
        html.escape(secret),
        quote(secret, safe=""),
        "".join(f"&#x{ord(character):x};" for character in secret),
        html.escape(html.escape(secret)),
        base64.b64encode(f"me:{secret}".encode()).decode() if secret == LONG_PASSWORD else "",
    ]


def _echoing(secrets: list[str]) -> bytes:
    """A document that repeats each secret in each form in each of its places."""
    items = ""
    for n, secret in enumerate(secrets):
        for m, form in enumerate(_escaped(secret)):
            items += (
                f"<item xml:base='http://x.example/{quote(secret)}/'><guid>{n}-{m}-{form}</guid>"
                f"<title>T {form}</title><link>http://x.example/?k={form}</link><author>{form}</author>"
                f"<category>{form}</category><pubDate>on {form}</pubDate>"
                f"<enclosure url='http://x.example/{form}.mp3' type='audio/mpeg'/>"
                f"<description>&lt;p&gt;your key {form}&lt;img src='a/{quote(secret)}.png'&gt;</description>"
                f"<content:encoded><![CDATA[<p>{form}<img src='http://{n}.example/{form}.png'>]]>"
                "</content:encoded></item>"
            )
    said = " ".join(form for secret in secrets for form in _escaped(secret))
    return (
        '<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">'
        f"<channel><title>Hello {said}</title><link>http://x.example/{quote(secrets[0])}</link>"
        f"<language>{quote(secrets[1])}</language>{items}</channel></rss>"
    ).encode()


def test_twenty_secrets_that_servers_repeat_everywhere_are_in_raw_backups_only(
    tmp_path: Path, server: FeedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In title, link and language of a feed; in guid, title, link, author, category, date, base, enclosure,
    summary, content and images of its items; in headers, redirects and pages of errors; in JSON."""
    replays = pytest.importorskip("rss_pipeline_tests.features.replay.replays")
    caplog.set_level(logging.DEBUG)
    secrets = [LONG_PASSWORD, *MANY.values()]
    searched = {form for secret in secrets for form in forms(secret)}
    monkeypatch.setenv("LONG_PASSWORD", LONG_PASSWORD)
    pipeline = Pipeline(tmp_path)

    def register(id: str, answer: Answer) -> None:
        url = server.route(HOST, f"/{id}", answer).replace("//", "//me:${LONG_PASSWORD}@")
        pipeline.register(url, id, headers={name: value.replace("$", "$$") for name, value in MANY.items()})

    everywhere = " ".join(secrets)
    page = f"<html><title>{html.escape(everywhere)}</title></html>".encode()
    as_json = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": everywhere,
        "items": [
            {"id": f"{n} {secret}", "content_text": secret, "tags": [secret]}
            for n, secret in enumerate(secrets)
        ],
    }
    document = _echoing(secrets)
    register("rss", Answer(body=document, etag=f'"{secrets[3]}"', last_modified=secrets[4]))
    register("utf-16", Answer(body=document.decode().encode("utf-16")))
    register(
        "json", Answer(body=json.dumps(as_json).encode(), headers={"Content-Type": f"a/b; {secrets[5]}"})
    )
    register("page", Answer(body=page, headers={"Content-Type": "text/html"}))
    register("refusal", Answer(status=403, body=page, headers={"WWW-Authenticate": secrets[6]}))
    register("moved", Answer(status=301, headers={"Location": f"/?k={quote(secrets[7])}"}))
    said = _all_output(pipeline, tmp_path, monkeypatch)
    assert pipeline.feed("rss")["last_error"] is None
    assert len(pipeline.items("rss")) >= len(secrets)
    assert len(pipeline.items("json")) == len(secrets)
    first = pipeline.items("rss")

    # From the backups alone: the registry knows none of the secrets any more.
    pipeline.feeds = [{"url": server.url(HOST, f"/{id}"), "id": id} for id in ("rss", "utf-16", "json")]
    pipeline.write_registry()
    replays.drop_database(pipeline)
    assert not replays.restored(pipeline).problems
    assert [item["id"] for item in pipeline.items("rss")] == [item["id"] for item in first]
    said += _all_output(pipeline, tmp_path, monkeypatch)

    said += caplog.text
    assert [secret for secret in searched if secret in said.lower().encode()] == []
    assert "***" in said
    raw = {f"objects/{key}" for id in ("rss", "utf-16", "json", "page") for key in pipeline.backups(id)}
    (tmp_path / "feeds.yaml").unlink()
    assert leaks(tmp_path, searched) - raw == set()
    assert {f"objects/{key}" for key in pipeline.backups("rss")} <= leaks(tmp_path, searched)
    for id in ("rss", "utf-16", "json", "page"):
        for key in pipeline.backups(id):
            info = pipeline.objects.head(key)
            assert info is not None
            assert describe_backup(info).secrets, id
    pipeline.close()


def _all_output(pipeline: Pipeline, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Poll, then everything that the commands print."""
    pipeline.clock.turn(days=2)
    pipeline.poll(all_feeds=True)
    for name in ("RSS_PIPELINE_HOME", "DAGSTER_HOME"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("RSS_FEEDS_FILE", str(folder / "feeds.yaml"))
    monkeypatch.chdir(folder)
    some = pipeline.items("rss")[:3]
    commands = [
        ["status"],
        ["status", "--json"],
        ["items", "rss"],
        ["items", "json", "--json"],
        ["export"],
        ["replay", "rss", "--dry-run"],
        *(["item", item["id"], *option] for item in some for option in ([], ["--html"], ["--json"])),
    ]
    said = ""
    for arguments in commands:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        said += result.output
    return said + json.dumps(pipeline.rows("SELECT * FROM image_tasks"))
