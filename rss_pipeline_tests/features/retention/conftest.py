"""In this room some processes kill themselves."""

from collections.abc import Iterator

import pytest

from rss_pipeline_tests.support.prepared import Prepared


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """Processes that kill themselves, without the second of their imports."""
    dying = ("features.retention.dying_clean", "pipeline.images.dying_download")
    with Prepared(*(f"rss_pipeline_tests.{name}" for name in dying)) as prepared:
        yield prepared
