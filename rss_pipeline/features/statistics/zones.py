"""Days of a reader's time zone: where they begin in UTC, and the zone's offsets in between.

A zone is a name of the tz database; one that is not known is UTC.
"""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rss_pipeline.storage.subscriptions.activity import Shifts, Window

_MOST_CHARACTERS = 64
_UTC = ZoneInfo("UTC")


def zone_named(name: str | None) -> ZoneInfo:
    """The zone of this name, or UTC."""
    if not name or len(name) > _MOST_CHARACTERS:
        return _UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        # A name that is a folder of the database, `Europe`, is an OSError.
        return _UTC


def midnight(day: date, zone: ZoneInfo) -> datetime:
    """The instant at which a day begins, in UTC."""
    return datetime.combine(day, time(), zone).astimezone(UTC)


def days_until_today(now: datetime, zone: ZoneInfo, *, days: int) -> Window:
    """So many days, the last one today."""
    today = now.astimezone(zone).date()
    return _window(today - timedelta(days=days - 1), days, zone, step=1)


def weeks_until_today(now: datetime, zone: ZoneInfo, *, weeks: int) -> Window:
    """So many weeks from Monday to Sunday, the last one with today in it."""
    today = now.astimezone(zone).date()
    return _window(today - timedelta(days=today.weekday(), weeks=weeks - 1), weeks, zone, step=7)


def _window(first: date, steps: int, zone: ZoneInfo, *, step: int) -> Window:
    begins = [midnight(first + timedelta(days=number * step), zone) for number in range(steps + 1)]
    shifts = shifts_of(zone, begins[0], begins[-1])
    return Window(first=first, step=step, begins=begins, shifts=shifts)


def shifts_of(zone: ZoneInfo, since: datetime, until: datetime) -> Shifts:
    """The offsets of a zone between two instants, to the minute at which each begins."""
    found = [(since, _offset(zone, since))]
    at = since
    while at < until:
        after = min(at + timedelta(days=1), until)
        if _offset(zone, after) != found[-1][1]:
            found.append((_change(zone, at, after), _offset(zone, after)))
        at = after
    return found


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """The first minute with the offset of `after`; at `before` there is another one."""
    low, high = int(before.timestamp()) // 60, int(after.timestamp()) // 60
    wanted = _offset(zone, after)
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, datetime.fromtimestamp(middle * 60, UTC)) == wanted:
            high = middle
        else:
            low = middle
    return datetime.fromtimestamp(high * 60, UTC)


def _offset(zone: ZoneInfo, at: datetime) -> int:
    shift = at.astimezone(zone).utcoffset()
    assert shift is not None
    return int(shift.total_seconds())
