"""In this room some processes kill themselves."""

from collections.abc import Iterator

import pytest

from rss_pipeline_tests.support.prepared import Prepared


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """Processes that kill themselves, without the second of their imports."""
    room = "rss_pipeline_tests.pipeline"
    with Prepared(f"{room}.visits.faults.dying_poll", f"{room}.images.dying_download") as prepared:
        yield prepared
