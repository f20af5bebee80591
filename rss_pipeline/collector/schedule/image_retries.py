"""Retries of images after failures, and signs of an outage of our own network in a round of images. Pure.

Holds of hosts are in collector.fetch.holds.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus

from rss_pipeline.collector.models.clock import LONGEST, whole_second
from rss_pipeline.collector.models.failure import NETWORK_KINDS, UNREQUESTED_KINDS, Failure, FailureKind
from rss_pipeline.collector.models.hold import IMAGE_AGAIN_AFTER
from rss_pipeline.collector.models.network import registered_domain
from rss_pipeline.collector.schedule.our_outage import OUTAGE_HOSTS

IMAGE_PAUSES = (timedelta(minutes=40), 2 * IMAGE_AGAIN_AFTER)
"""After the first attempt that failed, after the second; the third is the last. Most failures pass within
minutes, and the schedule `retry_images` looks each quarter of an hour: the second attempt is within the
hour."""

HOLDS_FOR = timedelta(days=30)
"""Its host holds up an image for so long at most. From then on an answer with a hold counts as an attempt: an
image that can never be had is given up, and no attempt is used up by a limit that is kept for a week."""


def says_nothing(failure: Failure) -> bool:
    """Return True if the host wants fewer requests, and says nothing about the image.

    429, and 503 with Retry-After: `Holds.image_answered` holds the host. `host_on_hold` is how either is kept
    for the other tasks with the URL.
    """
    return failure.kind in ("rate_limited", "host_on_hold") or (
        failure.kind == "http_status"
        and failure.status == HTTPStatus.SERVICE_UNAVAILABLE
        and failure.retry_after is not None
    )


def counts(failure: Failure, *, found_at: datetime, now: datetime) -> bool:
    """Return True if this is one of the attempts at an image that was found at that time."""
    return not says_nothing(failure) or now - found_at >= HOLDS_FOR


def next_image_attempt(attempts: int, failure: Failure, *, now: datetime) -> datetime:
    """The time of the next attempt after attempt number `attempts` failed: not before Retry-After, and a day
    later where the host wants fewer requests."""
    pause = IMAGE_PAUSES[min(attempts, len(IMAGE_PAUSES)) - 1]
    if says_nothing(failure):
        pause = max(pause, IMAGE_AGAIN_AFTER)
    return whole_second(now + max(pause, min(timedelta(seconds=failure.retry_after or 0), LONGEST)))


def images_network_is_down(
    failures: Sequence[tuple[str, FailureKind]], *, last_feed_answer: datetime | None, since: datetime
) -> bool:
    """Return True if a round of images shows that our own network is down: then no attempt counts.

    `failures` are host and kind of every attempt of a round without a success; blocked addresses prove
    nothing. The network is down if all others failed in the network, at hosts of three registered domains or
    more, and no feed's host has answered since `since`: the round's start, or the time of the last such
    finding for the same images. So images of three dead hosts are postponed once, and counted as soon as a
    poll has shown that the network is up.
    """
    requested = [(host, kind) for host, kind in failures if kind not in UNREQUESTED_KINDS]
    if any(kind not in NETWORK_KINDS for _, kind in requested):
        return False
    if last_feed_answer is not None and last_feed_answer > since:
        return False
    return len({registered_domain(host) for host, _ in requested}) >= OUTAGE_HOSTS
