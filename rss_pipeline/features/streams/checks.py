"""The health check of streams."""

from rss_pipeline.features.health.model import Look, listed
from rss_pipeline.features.health.sql import Concerned
from rss_pipeline.features.streams.states import count_streams, warned_streams


def _streams(look: Look) -> Concerned | None:
    # A warning of a stream or topic is decided where its state is read.
    rows = [{"stream": f"{each.feed_id}/{each.name}"} for each in warned_streams(look.database)]
    return Concerned(len(rows), rows) if count_streams(look.database) else None


CHECKS = (
    listed(
        "streams_match",
        _streams,
        doctor="streams",
        right="none has a warning",
        wrong="without a match for a while, or cannot be evaluated",
        fix="`rss-pipeline status` says why, `rss-pipeline streams FEED` what the feed has; correct the"
        " selector in feeds.yaml.",
        verb=("is", "are"),
        things=("stream", "streams"),
        follows="images_downloaded",
    ),
)
