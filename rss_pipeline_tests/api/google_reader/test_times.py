"""Instants in four units, told by their digits."""

from datetime import UTC, datetime

import pytest

from rss_pipeline.api.google_reader.answers import Refused
from rss_pipeline.api.google_reader.times import (
    COMMIT_MICROSECONDS,
    arrivals_since,
    in_microseconds,
    is_arrival,
    microseconds,
)

MICRO = 1_763_822_000_123_456


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1763822000", 1_763_822_000_000_000, id="seconds (NetNewsWire, from the Date header)"),
        pytest.param("1763822000123", 1_763_822_000_123_000, id="milliseconds"),
        pytest.param("1763822000123456", MICRO, id="News+, Reeder: microseconds"),
        pytest.param("1763822000123456789", MICRO, id="The Old Reader's document: nanoseconds"),
        pytest.param("1763822000.5", 1_763_822_000_000_000, id="a fraction is cut off"),
        pytest.param(" 1763822000\n", 1_763_822_000_000_000, id="with a newline"),
        pytest.param("0", 0, id="zero"),
        pytest.param("0001763822000", 1_763_822_000_000_000, id="leading zeros"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_the_digits_tell_the_unit(text: str | None, expected: int | None) -> None:
    assert microseconds(text, "ts") == expected


@pytest.mark.parametrize("text", ["now", "-1", "1e9", "null", "9" * 21, "2026-11-22"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        microseconds(text, "ts")


def test_since_a_client_s_own_second_takes_in_what_was_being_written_then() -> None:
    assert arrivals_since("1763822000") == 1_763_822_000_000_000 - COMMIT_MICROSECONDS


def test_since_a_number_of_arrival_is_exact() -> None:
    assert arrivals_since(str(MICRO)) == MICRO
    assert is_arrival(str(MICRO))
    assert not is_arrival("1763822000")


def test_since_the_epoch_is_everything() -> None:
    assert arrivals_since("0") == 0
    assert arrivals_since("1") == 0


def test_an_instant_is_exact_to_the_microsecond() -> None:
    assert in_microseconds(datetime(2025, 11, 22, 14, 33, 20, 123456, tzinfo=UTC)) == MICRO
