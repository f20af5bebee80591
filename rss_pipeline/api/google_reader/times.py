"""Instants as clients send them (ts, ot, nt): in seconds, milliseconds, microseconds or nanoseconds.

The number of digits shows which: the documents of different servers name different units, and one writes
"nanoseconds" beside a value of 16 digits.
"""

import re
from datetime import datetime, timedelta

from rss_pipeline.api.google_reader.answers import not_understood
from rss_pipeline.reader.items import MAX_INTEGER

_NUMBER = re.compile(r"([0-9]{1,20})(?:\.[0-9]*)?")
_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

COMMIT_MICROSECONDS = 60_000_000
"""The time in which an item may appear after it got its number: the batch that writes it has to end."""


def microseconds(text: str | None, name: str) -> int | None:
    """An instant in microseconds since 1970; None where it is missing or empty.

    Raises:
        Refused: no number.
    """
    if text is None or not text.strip():
        return None
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        raise not_understood(f"{name} is no time: give seconds since 1970.")
    digits = match[1].lstrip("0") or "0"
    return min(_scaled(int(digits), len(digits)), MAX_INTEGER)


def arrivals_since(text: str | None) -> int | None:
    """The least number of arrival that `ot` wants.

    A client that sends a time of its own, the Date of its last request, would miss what had its number then
    but was not written yet: it gets a minute more, which it already has. A number of arrival is exact.

    Raises:
        Refused: no number.
    """
    instant = microseconds(text, "ot")
    if instant is None or is_arrival(text):
        return instant
    return max(0, instant - COMMIT_MICROSECONDS)


def is_arrival(text: str | None) -> bool:
    """True for a time with the digits of microseconds, as `timestampUsec` has them."""
    return text is not None and 15 <= len(text.strip().partition(".")[0].lstrip("0")) <= 17


def in_microseconds(moment: datetime) -> int:
    """An instant in microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _scaled(number: int, digits: int) -> int:
    if digits <= 11:
        return number * 1_000_000
    if digits <= 14:
        return number * 1_000
    return number if digits <= 17 else number // 1_000
