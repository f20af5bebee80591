"""`rss-pipeline up` with its state in servers: it starts, collects, is read, and stops in order."""

import json
import signal
import urllib.request
from pathlib import Path

import pytest

from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.up import started
from rss_pipeline_tests.support.waiting import PATIENCE, soon

pytestmark = [pytest.mark.slow, pytest.mark.minutes, pytest.mark.timeout(900)]


def collects(server: FeedServer, pipeline: Pipeline, folder: Path, **environment: str) -> None:
    folder.mkdir()
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    entry = {"url": url, "id": "feed", "allow_private": ["127.0.0.0/8"]}
    (folder / "feeds.yaml").write_text(json.dumps({"feeds": [entry]}), "utf-8")
    with started(folder, **environment) as up:
        soon(lambda: pipeline.database.query("SELECT guid FROM items").rows == [{"guid": "a"}])
        soon(up.answers)
        with urllib.request.urlopen(f"http://127.0.0.1:{up.reader_port}/", timeout=PATIENCE) as answer:
            assert answer.status == 200
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(PATIENCE) == 0


def test_in_cloudflare(server: FeedServer, away: Pipeline, cloudflare: Cloudflare, tmp_path: Path) -> None:
    collects(server, away, tmp_path / "up", **cloudflare.environ)


def test_in_postgres(server: FeedServer, on_postgres: Pipeline, postgres_url: str, tmp_path: Path) -> None:
    collects(server, on_postgres, tmp_path / "up", DATABASE_URL=postgres_url)
