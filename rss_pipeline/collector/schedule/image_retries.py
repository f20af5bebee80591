"""When an image is asked for again, and whether a round of images says that our own network is down. Pure.

How long a host's pause is, is holds.py's.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import LONGEST
from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNASKED_KINDS, Failure, FailureKind
from rss_pipeline.collector.schedule.our_outage import OUTAGE_HOSTS

IMAGE_PAUSES = (timedelta(hours=1), timedelta(hours=8))
"""After the first attempt that failed, after the second; the third is the last."""


def next_image_attempt(attempts: int, failure: Failure, *, now: datetime) -> datetime:
    """When an image is asked for again after its attempt number `attempts` failed: not before Retry-After."""
    pause = IMAGE_PAUSES[min(attempts, len(IMAGE_PAUSES)) - 1]
    return now + max(pause, min(timedelta(seconds=failure.retry_after or 0), LONGEST))


def images_network_is_down(
    failures: Sequence[tuple[str, FailureKind]], *, last_feed_answer: datetime | None, since: datetime
) -> bool:
    """Whether a round of images says that our own network is down: then no attempt counts.

    `failures` are host and kind of every attempt of the round, none of which went well; addresses that may
    not be asked prove nothing. So it is where all others failed in the network, at three hosts or more, and
    no feed's host has answered since `since`: the round's start, or the time at which this was found before
    of the same images. Three dead hosts are thus put off once, and counted as soon as a poll has shown that
    the network is up.
    """
    asked = [(host, kind) for host, kind in failures if kind not in UNASKED_KINDS]
    if any(kind not in NETWORK_KINDS for _, kind in asked):
        return False
    if last_feed_answer is not None and last_feed_answer > since:
        return False
    return len({host for host, _ in asked}) >= OUTAGE_HOSTS
