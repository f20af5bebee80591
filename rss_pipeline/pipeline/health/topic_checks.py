"""Doctor's checks of streams and topics: those with a warning.

What a warning is, is decided where the state is read (storage.items.streams, storage.reports.topics).
"""

from collections.abc import Iterator
from datetime import datetime

from rss_pipeline.pipeline.health.findings import Check, listing
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.streams import count_streams, warned_streams
from rss_pipeline.storage.reports.topics import topic_states


def topic_checks(database: Database, now: datetime) -> Iterator[Check]:
    """A check of streams where there are some, and one of topics."""
    if count := count_streams(database):
        yield listing(
            "streams",
            [f"{each.feed_id}/{each.name}" for each in warned_streams(database)],
            "{} matched nothing for a while, or cannot be evaluated",
            f"{count}, none with a warning",
            "`rss-pipeline status` says why, `rss-pipeline streams FEED` what the feed has; correct the"
            " selector in feeds.yaml.",
            things="streams",
        )
    topics = topic_states(database)
    if topics:
        yield listing(
            "topics",
            [each.spec.id for each in topics if each.warning(now) is not None],
            "{} have changes that are not published",
            f"{len(topics)}, none with a warning",
            "`rss-pipeline publish` publishes them and says what is wrong.",
            things="topics",
        )
