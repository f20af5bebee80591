"""Fixtures of all rooms: a feed server, a Dagster instance on disk, a whole pipeline."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.cloudflare import cloudflare, running_cloudflare, shared_cloudflare
from rss_pipeline_tests.pipeline import Pipeline
from rss_pipeline_tests.server import FeedServer

__all__ = ["cloudflare", "instance", "pipeline", "running_cloudflare", "server", "shared_cloudflare"]


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with dg.DagsterInstance.from_config(str(home)) as instance:
        yield instance


@pytest.fixture
def pipeline(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path, instance)
    yield pipeline
    pipeline.close()
