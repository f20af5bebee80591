"""In this room some processes kill themselves."""

from collections.abc import Iterator

import pytest

from rss_pipeline_tests.support.prepared import Prepared


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """Processes that kill themselves, without the second of their imports."""
    room = "rss_pipeline_tests.pipeline"
    dying = (
        "visits.faults.dying_poll",
        "replay.dying_restore",
        "retention.dying_clean",
        "images.dying_download",
    )
    with Prepared(*(f"{room}.{name}" for name in dying)) as prepared:
        yield prepared
