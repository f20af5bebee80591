"""Instants and durations: aware datetimes in UTC, and their form in the stores and in sentences."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

Clock = Callable[[], datetime]
"""Gives the present instant, aware, in UTC. Tests pass their own."""


def utc_now() -> datetime:
    """The machine's clock, in UTC."""
    return datetime.now(UTC)


def instant(value: datetime) -> str:
    """`YYYY-MM-DDTHH:MM:SSZ`, the form of every instant in the stores. Fractions are cut."""
    # A list of feeds has hundreds, and strftime takes longer.
    in_utc = value if value.tzinfo is UTC else value.astimezone(UTC)
    return in_utc.isoformat(timespec="seconds")[:19] + "Z"


def rfc3339(at: datetime) -> str:
    """The instant in UTC as RFC 3339 has it, without fractions."""
    return f"{at.astimezone(UTC).replace(tzinfo=None, microsecond=0).isoformat()}Z"


def from_instant(text: str | None) -> datetime | None:
    """The inverse of `instant`; None for None."""
    return None if text is None else datetime.fromisoformat(text)


def milliseconds(at: datetime) -> int:
    """Milliseconds since 1970."""
    return round(at.timestamp() * 1000)


LONGEST = timedelta(hours=24)


def duration(value: timedelta) -> str:
    """`45 s`, `1 h 30 min`, `14 d`: the two largest units, smaller ones cut."""
    left = int(value.total_seconds())
    parts = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        # A day and less reads as hours: "24 h" is how the rules are written.
        if unit == "d" and left < 2 * size:
            continue
        number, left = divmod(left, size)
        if number:
            parts.append(f"{number} {unit}")
    return " ".join(parts[:2]) or "0 s"


_SPANS = ((730, 365, "years"), (60, 30, "months"), (2, 1, "days"))


def rough(value: timedelta) -> str:
    """`28 min`, `3 h`, `12 days`, `6 years`: one unit, from two of it on; what is less is cut."""
    for least, days, unit in _SPANS:
        if value >= timedelta(days=least):
            return f"{value.days // days} {unit}"
    minutes = max(int(value.total_seconds()), 0) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"


def whole_second(at: datetime) -> datetime:
    """The instant, or the next whole second: instants are stored without fractions, and an earlier one would
    be a request before its time."""
    return at if at.microsecond == 0 else at.replace(microsecond=0) + timedelta(seconds=1)
