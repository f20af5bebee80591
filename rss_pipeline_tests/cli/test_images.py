"""`rss-pipeline images`: what polls by cron leave is downloaded."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from rss_pipeline_tests.pipeline.images.images_of_feeds import collect, image_rows
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_images_of_polls_without_a_daemon_are_downloaded_by_a_command(
    pipeline: Pipeline,
    server: FeedServer,
    invoke: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RSS_IMAGE_FREE_PERCENT", "0")
    monkeypatch.setenv("RSS_IMAGE_FREE_GB", "0")

    good = server.route("127.0.0.3", "/good", Answer(body=png()))
    late = server.route("127.0.0.4", "/late", Answer(status=503))
    collect(pipeline, server, good, late)
    said = invoke("images")
    assert said.exit_code == 0
    assert said.stdout.startswith(
        "1 images archived (0.0 MB), 1 attempts failed, 0 of them for good; 1 images"
    )
    assert f"[feed]: {late}: " in said.stderr
    assert {name: row["status"] for name, row in image_rows(pipeline).items()} == {
        "good": "success",
        "late": "pending",
    }
    server.route("127.0.0.4", "/late", Answer(body=png()))
    assert json.loads(invoke("images", "--json").stdout)["archived"] == 0, "the attempt is not due yet"
    pipeline.database.query(
        "UPDATE image_tasks SET next_attempt_at = '2026-01-01T00:00:00Z' WHERE attempts = 1"
    )
    pipeline.database.query("DELETE FROM image_holds")
    again = json.loads(invoke("images", "--json").stdout)
    assert again == {
        "archived": 1,
        "bytes": len(png()),
        "failed_attempts": 0,
        "failed": 0,
        "waiting": 0,
    }
