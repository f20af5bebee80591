"""One reader with feeds, served on a port of its own, and one Chromium for all tests of this folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from rss_pipeline_tests.api.browser.library import Library, library
from rss_pipeline_tests.support.clients.chromium import CHROMIUM, PATIENCE_MS, chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as found:
        yield found


@pytest.fixture(scope="package")
def books(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[Library]:
    """A reader that is served; each test has users and feeds of its own in it."""
    with library(tmp_path_factory.mktemp("library"), browser) as found:
        yield found
