"""`rss-pipeline restore`: what it does and prints, and its exit code."""

import json
from pathlib import Path

import pytest

from rss_pipeline_tests.cli.test_main import run
from rss_pipeline_tests.pipeline.replay.replays import collected, drop_database
from rss_pipeline_tests.pipeline.replay.test_restore import changing
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


def test_the_command_restores_and_says_what_it_did(
    tmp_path: Path, pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    changing(pipeline, server)
    pipeline.poll(all_feeds=True)
    before = collected(pipeline)
    drop_database(pipeline)
    done = run(tmp_path, "restore", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["is_whole"], told["items_new"]) == (True, len(before["items"]))
    assert collected(pipeline) == before

    pipeline.objects.put("backups/growing/0.xml", b"", content_type="text/xml")
    done = run(tmp_path, "restore")
    assert done.code == 1
    assert "backups/growing/0.xml" in done.out
