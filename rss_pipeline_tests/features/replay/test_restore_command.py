"""`rss-pipeline restore`: what it does and prints, and its exit code."""

import json
from typing import Any

import pytest

from rss_pipeline_tests.features.replay.replays import collected, drop_database
from rss_pipeline_tests.features.replay.test_restore import changing
from rss_pipeline_tests.reader.kept_users import back_up
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


@pytest.mark.slow
def test_the_command_restores_and_says_what_it_did(
    invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    changing(pipeline, server)
    pipeline.poll(all_feeds=True)
    before = collected(pipeline)
    readers.add_user(pipeline.database, "ann")
    back_up(pipeline)
    drop_database(pipeline)
    done = invoke("restore", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["is_whole"], told["items_new"]) == (True, len(before["items"]))
    assert (told["users"]["users"], told["users"]["problems"]) == (1, [])
    assert collected(pipeline) == before

    pipeline.objects.put("backups/growing/0.xml", b"", content_type="text/xml")
    pipeline.database.query("DELETE FROM users")
    pipeline.objects.put("state/users/broken.jsonl.gz", b"", content_type="application/gzip")
    done = invoke("restore")
    assert done.exit_code == 1
    assert "1 users of the reader" in done.stdout
    assert "rss-pipeline user password NAME" in done.stdout
    assert "state/users/broken.jsonl.gz" in done.stdout
    assert "backups/growing/0.xml" in done.stdout
