"""A reader on an empty embedded database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rss_pipeline_tests.support.reader import Reader, reader_settings


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Reader.on(reader_settings(tmp_path / "home")) as found:
        yield found
