"""The check of images that wait: polls by cron download none."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from rss_pipeline_tests.pipeline.images.images_of_feeds import collect
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_images_of_polls_without_a_daemon_are_counted_by_doctor(
    pipeline: Pipeline,
    server: FeedServer,
    invoke: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RSS_IMAGE_FREE_PERCENT", "0")
    monkeypatch.setenv("RSS_IMAGE_FREE_GB", "0")

    def doctor() -> tuple[str, str, str]:
        found = {check["name"]: check for check in json.loads(invoke("doctor", "--json").stdout)}
        images = found["waiting images"]
        return images["state"], images["found"], images["fix"]

    assert doctor()[:2] == ("ok", "none waits")
    good = server.route("127.0.0.3", "/good", Answer(body=png()))
    late = server.route("127.0.0.4", "/late", Answer(status=503))
    collect(pipeline, server, good, late)
    pipeline.database.query("UPDATE image_tasks SET created_at = '2026-01-01T00:00:00Z'")
    state, found, fix = doctor()
    assert (state, found) == ("warning", "2 to download, one since 2026-01-01T00:00:00Z")
    assert "`rss-pipeline images` downloads them" in fix
    assert invoke("images").exit_code == 0
    assert doctor()[:2] == ("ok", "1 to download")
