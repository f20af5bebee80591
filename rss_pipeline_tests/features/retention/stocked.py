"""Installations of each kind, with items past their time: fixtures for the modules that import them."""

import pytest

from rss_pipeline_tests.features.retention.archive import stock
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def pipeline(place: Pipeline) -> Pipeline:
    """An installation of each kind. Not that of conftest.py, which is embedded."""
    return place


@pytest.fixture
def stocked(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    stock(pipeline, server)
    return pipeline
