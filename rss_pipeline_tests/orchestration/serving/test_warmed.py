"""The first poll of `up`, which warms the process from which others are forked."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from rss_pipeline.orchestration.in_process import poll_of_nothing
from rss_pipeline.orchestration.instance.home import open_instance, prepare_home
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.serving.warmed import warm
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.backends.s3.backend import S3Backend
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def test_it_visits_no_feed_that_waits_and_leaves_no_trace(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    poll_of_nothing(pipeline.definitions())
    assert server.requests == []
    assert pipeline.instance.get_runs() == []
    assert pipeline.rows("SELECT token FROM leases") == []
    assert pipeline.rows("SELECT 1 FROM feeds WHERE last_fetched_at IS NOT NULL") == []


def test_what_a_killed_run_left_to_report_and_what_feeds_yaml_changed_are_left_to_a_run_that_is_kept(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    """No one sees the events of this poll, and there would be no others."""
    for number, id in enumerate(("told", "left"), start=2):
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=rss("a", "b"))), id)
        pipeline.sync()
        with pipeline.session() as session:
            poll_round(session, Due(now=pipeline.clock()), {})
        if id == "told":
            pipeline.poll()
    before = pipeline.rows("SELECT * FROM feeds ORDER BY id")
    pipeline.register("http://127.0.0.4/feed", "new")
    poll_of_nothing(pipeline.definitions())
    assert pipeline.rows("SELECT * FROM feeds ORDER BY id") == before
    pipeline.poll("left")
    assert [[event["items_new"] for event in pipeline.events(id)] for id in ("told", "left")] == [[2], [2]]


@pytest.mark.parametrize("server", ["database_server", "objects_server"])
def test_where_a_store_is_a_server_no_database_of_dagsters_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    """A process with one is not forked, and `up` would end."""
    settings = Settings(home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="test")
    with open_instance(settings):
        pass
    OPEN_FILES.close()
    monkeypatch.setenv("DAGSTER_HOME", str(prepare_home(settings)))
    backends: dict[str, Any] = {
        "database_server": D1Backend(url="http://127.0.0.1:1", token="t"),
        "objects_server": S3Backend(
            endpoint_url="http://127.0.0.1:1", bucket="b", access_key_id="a", secret_access_key="s"
        ),
    }
    warm(replace(settings, **{server: backends[server]}), tmp_path / "workspace.yaml")
    assert [path for path in open_files() if path.startswith(str(tmp_path))] == []


def open_files() -> list[str]:
    return [each.path for each in psutil.Process().open_files()]
