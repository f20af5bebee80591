"""Fixtures of all rooms: a feed server, a Dagster instance on disk, a whole pipeline."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.support.cloudflare import cloudflare, running_cloudflare, shared_cloudflare
from rss_pipeline_tests.support.pipeline import Pipeline, new_instance
from rss_pipeline_tests.support.server import FeedServer

__all__ = ["cloudflare", "instance", "pipeline", "running_cloudflare", "server", "shared_cloudflare"]


@pytest.fixture
def server() -> Iterator[FeedServer]:
    with FeedServer() as server:
        yield server


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with new_instance(tmp_path) as instance:
        yield instance


@pytest.fixture
def pipeline(tmp_path: Path, instance: dg.DagsterInstance) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path, instance)
    yield pipeline
    pipeline.close()
