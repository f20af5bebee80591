"""The next request for an image, and the network that is down."""

from datetime import timedelta

import pytest

from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.schedule.image_retries import counts, images_network_is_down, next_image_attempt
from rss_pipeline_tests.support.pipeline import NOON

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("attempts", "kind", "retry_after", "minutes"),
    [
        (1, "http_status", None, 40),
        (2, "http_status", None, 48 * 60),
        (1, "timeout", 60, 40),
        (1, "http_status", 7_200, 120),
        (2, "http_status", 86_400, 48 * 60),
        (1, "http_status", 864_000, 24 * 60),
        # The host, not the image.
        (1, "rate_limited", 60, 24 * 60),
        (1, "host_on_hold", None, 24 * 60),
    ],
)
def test_the_first_pause_is_within_the_hour_and_the_next_one_grows(
    attempts: int, kind: FailureKind, retry_after: int | None, minutes: int
) -> None:
    failure = Failure(kind=kind, message="", retry_after=retry_after)
    assert next_image_attempt(attempts, failure, now=NOON) == NOON + minutes * MINUTE
    # Instants are stored in whole seconds.
    late = next_image_attempt(attempts, failure, now=NOON + MINUTE / 70)
    assert late == NOON + minutes * MINUTE + MINUTE / 60


@pytest.mark.parametrize(
    ("kind", "status", "retry_after", "days", "wanted"),
    [
        ("rate_limited", 429, None, 0, False),
        ("rate_limited", 429, 60, 29, False),
        ("rate_limited", 429, None, 30, True),
        ("http_status", 503, 0, 1, False),
        ("http_status", 503, None, 1, True),
        ("http_status", 500, 60, 1, True),
        ("challenge", 429, 60, 1, True),
        ("host_on_hold", None, None, 29, False),
        ("host_on_hold", None, None, 30, True),
        ("timeout", None, None, 0, True),
    ],
)
def test_that_a_host_wants_fewer_requests_is_no_attempt_at_an_image_for_a_month(
    kind: FailureKind, status: int | None, retry_after: int | None, days: int, wanted: bool
) -> None:
    failure = Failure(kind=kind, message="", status=status, retry_after=retry_after)
    assert counts(failure, found_at=NOON - timedelta(days=days), now=NOON) is wanted


THREE = [("a", "timeout"), ("b", "dns"), ("c", "connect")]


@pytest.mark.parametrize(
    ("failures", "answered", "down"),
    [
        (THREE, None, True),
        (THREE, NOON - MINUTE, True),
        (THREE, NOON, True),
        (THREE, NOON + MINUTE, False),
        (THREE[:2], None, False),
        ([*THREE[:2], ("b", "connect")], None, False),
        ([*THREE, ("d", "http_status")], None, False),
        ([*THREE, ("d", "blocked_address")], None, True),
        ([*THREE[:2], ("d", "blocked_address")], None, False),
    ],
)
def test_only_three_hosts_that_all_failed_and_no_feed_that_answered_mean_our_own_network(
    failures: list[tuple[str, FailureKind]], answered: object, down: bool
) -> None:
    assert images_network_is_down(failures, last_feed_answer=answered, since=NOON) is down  # type: ignore[arg-type]
