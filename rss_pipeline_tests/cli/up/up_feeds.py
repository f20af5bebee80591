"""The feeds of the installation of test_up.py: those to look at, those to click many times, those to read.

No test is in here.
"""

from pathlib import Path

import yaml

from rss_pipeline_tests.cli.up import up_while_read
from rss_pipeline_tests.orchestration import desk
from rss_pipeline_tests.soak import reading_up
from rss_pipeline_tests.soak.reading_up import Publishers
from rss_pipeline_tests.support.server import FeedServer

PASSWORD = "correct-horse-battery"
ALL_FEEDS = [*desk.FEEDS, *up_while_read.FEEDS, *reading_up.FEEDS]
"""In the order of the file."""
FAILING = [desk.GONE, desk.BROKEN]
ITEMS = 3 * len(desk.BUSY) + 2 * len(desk.QUIET) + len(up_while_read.FEEDS) + len(reading_up.FEEDS)
"""After one poll."""


def register(folder: Path, server: FeedServer, publishers: Publishers) -> None:
    """Publish the feeds, those to look at with a password, and write the feeds.yaml that lists them."""
    shown = [
        {**entry, "url": entry["url"].replace("//", "//me:${FEED_PASSWORD}@")}
        for entry in desk.entries(server)
    ]
    entries = [*shown, *up_while_read.entries(server), *publishers.entries()]
    (folder / "feeds.yaml").write_text(yaml.dump({"feeds": entries}), "utf-8")
