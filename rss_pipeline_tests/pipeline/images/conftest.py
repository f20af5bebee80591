"""The pipeline of the tests of downloads."""

import pytest

from rss_pipeline_tests.support.pipeline import Pipeline


@pytest.fixture
def home(pipeline: Pipeline) -> Pipeline:
    """A pipeline that pauses between no two images."""
    pipeline.set(image_host_delay_seconds=0.0)
    return pipeline
