"""A feeds.yaml for what server.py serves.

The ids are given, so that a document is found again by its place.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.server import Feed


def feed_id(number: int, feed: Feed) -> str:
    """The id under which the feed is registered: its place and its name."""
    slug = re.sub(r"[^a-z0-9]+", "-", feed.name.lower()).strip("-")
    return f"{number:04d}-{slug}"[:80].rstrip("-")


def write_feeds_file(path: Path, feeds: Sequence[Feed]) -> None:
    """Register every feed, a line each, with leave to ask a loopback address."""
    lines = [
        f"  - {{url: {json.dumps(feed.url)}, id: {feed_id(number, feed)}, allow_private: true}}\n"
        for number, feed in enumerate(feeds)
    ]
    path.write_text("feeds:\n" + "".join(lines), "utf-8")
