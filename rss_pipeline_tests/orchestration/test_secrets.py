"""A password and a secret header go to their server and are written nowhere, whatever becomes of the visit.

The commands in processes of their own, and what `up` captures of its runs, are searched in
pipeline/registry/test_sync.py and test_up.py.
"""

import base64
import json
import logging
import sqlite3
import ssl
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import dagster as dg
import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.pipeline.session.fetch_policy import feed_policy
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.leaks import forms, leaks
from rss_pipeline_tests.support.pipeline import ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

TLS = Path(__file__).parents[1] / "support" / "tls"
HOST, OTHER = "127.0.0.2", "127.0.0.3"
PASSWORD, TOKEN = "correct-horse+battery/1=", "staple-0123456789"
BASIC = "Basic " + base64.b64encode(f"me:{PASSWORD}".encode()).decode()
SECRETS = forms(PASSWORD) | forms(TOKEN)


@pytest.fixture
def secure() -> Iterator[FeedServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "good.pem")
    with FeedServer(tls=context) as server:
        yield server


def echoes(server: FeedServer) -> dict[str, tuple[str, Answer]]:
    """By the end of the visit, answers that repeat what was sent."""
    elsewhere = server.url(OTHER, "")
    page = f"<html><head><title>Hello me:{PASSWORD}, {TOKEN}</title></head></html>".encode()

    def moved(location: str) -> Answer:
        return Answer(status=301, headers={"Location": location})

    return {
        "in-a-path": ("redirect", moved(f"/{PASSWORD}/feed")),
        "in-a-query": ("redirect", moved(f"{elsewhere}/feed?key={quote(PASSWORD, safe='')}")),
        "in-capitals": ("redirect", moved(f"{elsewhere}/feed?key={TOKEN.upper()}")),
        "in-a-name": ("redirect", moved(f"http://{TOKEN}.example/feed")),
        "in-a-scheme": ("bad_url", moved(f"{TOKEN}:feed")),
        "in-a-bad-url": ("redirect", moved(f"http://me:{PASSWORD}@[/{PASSWORD}")),
        "in-a-bad-host": ("redirect", moved(f"http://{TOKEN} x/feed")),
        "in-a-title": ("html", Answer(body=page, headers={"Content-Type": "text/html"})),
        "in-a-refusal": ("http_status", Answer(status=401, headers={"WWW-Authenticate": BASIC}, body=page)),
        "in-a-status-line": ("http_status", Answer(raw=f"HTTP/1.1 500 {PASSWORD}\r\n\r\n".encode())),
        "in-no-http": ("connect", Answer(raw=f"{PASSWORD} {TOKEN}\r\n\r\n".encode())),
        "in-a-coding": ("not_a_feed", Answer(body=b"x", headers={"Content-Encoding": TOKEN})),
        "in-a-document": (
            "stored",
            Answer(body=rss(f"g-{TOKEN}", title=f"Hello {PASSWORD}", image=f"{elsewhere}/{TOKEN}")),
        ),
        "in-validators": (
            "stored",
            Answer(
                body=rss("v"),
                headers={
                    "ETag": f'"{TOKEN}"',
                    "Last-Modified": BASIC,
                    "Content-Type": f"text/xml; x={BASIC}",
                },
            ),
        ),
    }


def with_policy(pipeline: DagsterPipeline, **policy: Any) -> Mapping[str, Any]:
    """Resources with which a run requests under another policy."""

    def open_session(context: dg.InitResourceContext) -> Iterator[Session]:
        assert context.run is not None
        with Session(
            RunContext(
                settings=pipeline.settings,
                database=context.resources.database,
                objects=context.resources.objects,
                run_id=context.run.run_id,
                clock=pipeline.clock,
            ),
            policy=replace(feed_policy(pipeline.settings), **policy),
        ) as session:
            yield session

    resource = dg.ResourceDefinition(open_session, required_resource_keys={"database", "objects"})
    return {"session": resource}


def test_whatever_a_server_does_with_them_no_secret_is_written_or_said(
    tmp_path: Path,
    pipeline: DagsterPipeline,
    server: FeedServer,
    secure: FeedServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("FEED_PASSWORD", PASSWORD)
    monkeypatch.setenv("FEED_TOKEN", TOKEN)
    expected: dict[str, str] = {}

    def feed(id: str, url: str, end: str) -> None:
        with_password = url.replace("//", "//me:${FEED_PASSWORD}@")
        pipeline.register(with_password, id, headers={"X-Token": "${FEED_TOKEN}"})
        expected[id] = end

    feed(
        "good",
        server.route(HOST, "/feed", Answer(body=rss("a", image=server.url(HOST, "")), etag='"1"')),
        "stored",
    )
    feed("secure", secure.route(HOST, "/feed", Answer(body=rss("s"))), "stored")
    plain = server.route(HOST, "/plain", Answer(body=rss("p")))
    feed("downgraded", secure.route(HOST, "/down", Answer(status=302, headers={"Location": plain})), "stored")
    other = server.route(OTHER, "/feed", Answer(body=rss("o")))
    feed("crossing", server.route(HOST, "/cross", Answer(status=307, headers={"Location": other})), "stored")
    feed("unknown", secure.route("127.0.0.5", "/feed", Answer(body=rss("u"))), "tls")
    feed("unreachable", "http://127.0.0.7:9/feed", "connect")
    for number, (id, (end, answer)) in enumerate(echoes(server).items(), start=20):
        feed(id, server.route(f"127.0.0.{number}", "/feed", answer), end)

    resources = with_policy(pipeline, ca_file=TLS / "authority.pem")
    ended = dict(
        ends(
            pipeline.poll(resources=resources),
            lambda visit: (visit.feed.id, getattr(visit.outcome, "kind", "stored")),
        )
    )
    assert ended == expected
    pipeline.poll(all_feeds=True, resources=resources)
    result = pipeline.materialize("in-a-title")
    assert not result.success

    for request in server.requests + secure.requests:
        ours = request.target not in {"/plain", "/a.png"} and request.host != OTHER
        assert request.headers.get("authorization") == (BASIC if ours else None), request
        assert request.headers.get("x-token") == (TOKEN if ours else None), request
    assert server.asked(OTHER)
    assert server.asked(HOST, "/plain")

    said = [caplog.text, *_commands(tmp_path, monkeypatch)]
    assert [secret for text in said for secret in SECRETS if secret in text.lower().encode()] == []
    assert len(list((tmp_path / "objects").rglob("*.xml"))) >= len({"good", "secure", "in-validators"})
    # A document is kept as it was served, also one that repeats what was sent with its request.
    echoed = [key for id in ("in-a-title", "in-a-document") for key in pipeline.backups(id)]
    assert leaks(tmp_path, SECRETS) == {f"objects/{key}" for key in echoed}
    assert leaks_are_found(tmp_path)


def _commands(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(folder)
    for name, value in {
        "RSS_PIPELINE_HOME": str(folder),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "DAGSTER_HOME": str(folder / "dagster"),
        "COLUMNS": "400",
    }.items():
        monkeypatch.setenv(name, value)
    for arguments in (["status", "--json"], ["status"], ["status", "in-a-path"], ["items", "good", "--json"]):
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        yield result.output
        if arguments == ["status", "--json"]:
            assert "in-a-title" in json.dumps(json.loads(result.stdout))


def leaks_are_found(folder: Path) -> bool:
    """That the search would see one: in a file, and in a compressed value of a database."""
    (folder / "said.log").write_text(f"Authorization: {BASIC}", "utf-8")
    with closing(sqlite3.connect(folder / "kept.db")) as database:
        database.execute("CREATE TABLE snapshots (body BLOB)")
        database.execute("INSERT INTO snapshots VALUES (?)", [zlib.compress(TOKEN.encode())])
        database.commit()
    return {"said.log", "kept.db"} <= leaks(folder, SECRETS)
