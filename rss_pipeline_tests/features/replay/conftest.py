"""In this room some processes kill themselves."""

from collections.abc import Iterator

import pytest

from rss_pipeline_tests.support.prepared import Prepared


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """Processes that kill themselves, without the second of their imports."""
    with Prepared("rss_pipeline_tests.features.replay.dying_restore") as prepared:
        yield prepared
