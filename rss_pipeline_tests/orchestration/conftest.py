"""In this room a pipeline has a Dagster instance, embedded and in Cloudflare."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import on_cloudflare
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.services.cloudflare import Cloudflare


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """Processes that kill themselves, looks at requests, and a runner, without the seconds of imports."""
    room = "rss_pipeline_tests.orchestration"
    modules = ("runs.dying_poll", "instance.dying_forget", "looking", "serving.a_runner")
    with Prepared(*(f"{room}.{module}" for module in modules)) as prepared:
        yield prepared


@pytest.fixture
def pipeline(dagster_pipeline: DagsterPipeline) -> DagsterPipeline:
    return dagster_pipeline


@pytest.fixture
def environ(cloudflare: Cloudflare, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, str]:
    """The six variables that name the Cloudflare, set: runs read the secrets from the environment."""
    for name, value in cloudflare.environ.items():
        monkeypatch.setenv(name, value)
    return cloudflare.environ


@pytest.fixture
def away(
    tmp_path: Path, instance: dg.DagsterInstance, cloudflare: Cloudflare, environ: Mapping[str, str]
) -> Iterator[DagsterPipeline]:
    """A pipeline with its state in D1 and R2."""
    pipeline = DagsterPipeline(tmp_path, instance, **on_cloudflare(cloudflare))
    yield pipeline
    pipeline.close()
