"""The command in this process (one of its own loads Dagster anew, for seconds), and pipelines with items."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline_tests.cli.program import HOST, environment
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import soon

if TYPE_CHECKING:
    from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("COLUMNS", "400")

    ended = ""

    def call(*arguments: str, input: str | None = None, env: Mapping[str, str] | None = None) -> Result:
        nonlocal ended
        # Visits have an instant in seconds, and a command visits a feed once: the next one begins later.
        soon(lambda: arguments[0] != "poll" or instant(utc_now()) > ended)
        result = CliRunner().invoke(main, arguments, input=input, env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        ended = instant(utc_now())
        return result

    return call


def _collect(pipeline: Pipeline, server: FeedServer) -> None:
    """Collect one feed; another one fails."""
    pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a", "b", title="News [/b] :x:"))), "news")
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "broken")
    pipeline.poll()


@pytest.fixture
def collected(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """A pipeline that has collected one feed; another one fails."""
    _collect(pipeline, server)
    return pipeline


@pytest.fixture
def collected_in_runs(dagster_pipeline: "DagsterPipeline", server: FeedServer) -> "DagsterPipeline":
    """As `collected`, by a run of the poll job, with its events and partition keys."""
    _collect(dagster_pipeline, server)
    return dagster_pipeline
