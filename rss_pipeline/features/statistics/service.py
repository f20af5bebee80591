"""The figures of a user's feeds in a span of time, and of what is stored; days of the reader's time zone.

The items are read in two batches (sql.py). The time is shortened where it has too many items, and hours are
counted over fewer weeks: a page takes a second at most, and says what it left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rss_pipeline.features.statistics import sql
from rss_pipeline.features.statistics.sql import (
    Came,
    DayWindow,
    PublishedHours,
    Shifts,
    StoredOfFeed,
    VisitDay,
)
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups.backups import list_backups
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectInfo, ObjectStore
from rss_pipeline.storage.reports.figures import RowFigures, row_figures
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

MOST_LISTED, LEAST_LISTED, SILENT_LISTED = 20, 10, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A day, or a week from Monday on, and its items."""

    first: date
    last: date
    items: int
    is_over: bool
    """False while today is in it: its count still grows."""


def steps(window: DayWindow, found: Sequence[Came], *, today: date) -> list[Step]:
    """All steps of a window until today, also those without an item."""
    totals: dict[int, int] = {}
    for each in found:
        for step, n in each.counts.items():
            totals[step] = totals.get(step, 0) + n
    many = (today - window.first).days // window.step + 1
    return [
        Step(
            first=(first := window.first + timedelta(days=number * window.step)),
            last=(last := first + timedelta(days=window.step - 1)),
            items=totals.get(number, 0),
            is_over=last < today,
        )
        for number in range(many)
    ]


def average_since(steps: Sequence[Step], *, today: date) -> tuple[date, float]:
    """The first day of the first step with an item (of all steps, where none has one), and the items a day
    since then: time of which nothing was collected, or all is removed, is not time without items."""
    first = next((step.first for step in steps if step.items), steps[0].first)
    return first, sum(step.items for step in steps) / ((today - first).days + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedCount:
    """A feed with the items of a window."""

    feed_id: str
    items: int
    by_step: Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The feeds of a window by their items. With few feeds all that have an item are in `most`."""

    most: Sequence[FeedCount]
    least: Sequence[FeedCount]
    """The feeds with the fewest items, at least one, fewest first."""
    between: int
    """Feeds with items that are in neither list."""
    silent: Sequence[str]
    """Ids of feeds without an item."""


def ranking(found: Sequence[Came], feed_ids: Sequence[str], *, steps: int) -> Ranking:
    """The feeds of `feed_ids`, which are in the user's order, by their items of so many steps."""
    by_id = {each.feed_id: each for each in found}
    counted = sorted((by_id[id] for id in feed_ids if id in by_id), key=lambda each: -each.total)
    are_few = len(counted) <= MOST_LISTED + LEAST_LISTED
    most = counted if are_few else counted[:MOST_LISTED]
    least = [] if are_few else counted[: -LEAST_LISTED - 1 : -1]
    return Ranking(
        most=[_feed_count(each, steps) for each in most],
        least=[_feed_count(each, steps) for each in least],
        between=len(counted) - len(most) - len(least),
        silent=[id for id in feed_ids if id not in by_id],
    )


def _feed_count(came: Came, steps: int) -> FeedCount:
    by_step = [came.counts.get(number, 0) for number in range(steps)]
    return FeedCount(feed_id=came.feed_id, items=came.total, by_step=by_step)


def visits_by_day(found: Sequence[VisitDay], *, until: date, days: int) -> list[VisitDay]:
    """So many days, the last one `until`, also those without a visit."""
    by_day = {each.day: each for each in found}
    wanted = [until - timedelta(days=back) for back in reversed(range(days))]
    return [by_day.get(day) or VisitDay(day=day, news=0, unchanged=0, failed=0) for day in wanted]


def busiest_hour(published: PublishedHours) -> tuple[int, int, int] | None:
    """Day of the week, hour and items of the hour with most items, the first of equals; None for no item."""
    if not published.counts:
        return None
    (day, hour), items = min(published.counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return day, hour, items


def share_by_day(published: PublishedHours) -> float:
    """The part of the items that came between 08:00 and 18:00, 0 to 1."""
    counts: Mapping[tuple[int, int], int] = published.counts
    inside = sum(n for (_, hour), n in counts.items() if 8 <= hour < 18)
    return inside / max(published.total, 1)


SPANS = (7, 30, 90, 365)
"""Days that can be looked at. A year is shown by week."""
SHOWN_SPANS = (30, 90, 365)
MOST_ITEMS = 200_000
"""A span that would have more, at the pace of these days, is shortened."""
MOST_HOURS_ITEMS = 40_000
"""With more items in their weeks, hours are counted over one week."""
_RECENT_DAYS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """The items that came in, their hours of publication and the outcomes of visits, until `at`."""

    at: datetime
    zone: ZoneInfo
    span: int
    """Days; fewer than wanted where these have too many items."""
    window: DayWindow
    came: Sequence[Came]
    steps: Sequence[Step]
    stored: Mapping[str, StoredOfFeed]
    published: PublishedHours
    hours_days: int
    """Whole weeks until today's midnight that `published` counts."""
    visits: Sequence[VisitDay]

    @property
    def items(self) -> int:
        return sum(step.items for step in self.steps)

    @property
    def today(self) -> date:
        return self.at.astimezone(self.zone).date()

    @property
    def days(self) -> int:
        """Days of the window until today."""
        return (self.today - self.window.first).days + 1


def read_activity(
    caller: Caller,
    *,
    span: int,
    zone: ZoneInfo,
    now: datetime,
    weeks_of_hours: int,
    are_counted: bool,
    scope: Scope = ALL,
) -> Activity:
    """The activity of the caller's feeds. Raises NoSession where the session has ended."""
    user, today = caller.user_id, now.astimezone(zone).date()
    recent, stored, visits = caller.read(
        sql.came_since(user, now - timedelta(days=_RECENT_DAYS), scope=scope),
        sql.stored_items(user, are_counted=are_counted, scope=scope),
        sql.visits_of(user, scope=scope),
    )
    per_day = sql.items_since(recent) / _RECENT_DAYS
    span = max((each for each in SPANS if each <= span and each * per_day <= MOST_ITEMS), default=SPANS[0])
    weeks = weeks_of_hours if per_day * 7 * weeks_of_hours <= MOST_HOURS_ITEMS else 1
    window = _shown_window(span, now, zone)
    # Whole weeks, so that each day of the week counts alike.
    since, until = midnight(today - timedelta(weeks=weeks), zone), midnight(today, zone)
    *counted, hours = caller.read(
        *sql.came_in(user, window, scope=scope),
        sql.hours_of(user, since=since, until=until, shifts=shifts_of(zone, since, until), scope=scope),
    )
    came = sql.came(*counted)
    first_visits = now.date() - timedelta(days=sql.VISIT_DAYS - 1)
    return Activity(
        at=now,
        zone=zone,
        span=span,
        window=window,
        came=came,
        steps=steps(window, came, today=today),
        stored=sql.stored(stored),
        published=sql.published(hours),
        hours_days=7 * weeks,
        visits=visits_by_day(
            sql.visit_days(visits, since=first_visits), until=now.date(), days=sql.VISIT_DAYS
        ),
    )


def _shown_window(span: int, now: datetime, zone: ZoneInfo) -> DayWindow:
    if span == SPANS[-1]:
        return weeks_until_today(now, zone, weeks=53)
    return days_until_today(now, zone, days=span)


# The size of all that is stored, for the owner of the installation; and of a feed's backups.
#
# What is counted row by row or listed is left out where rows read or lists are paid for.

MOST_OBJECTS = 20_000
MOST_BACKUPS = 2_000
"""The most of one feed that are counted: two requests to R2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Objects of one kind."""

    count: int
    bytes: int
    is_all: bool
    """False: there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Everything stored. None is not known."""

    database_bytes: int | None
    rows: RowFigures | None
    backups: Objects | None


def whole(settings: Settings, database: Database, objects: ObjectStore) -> Whole:
    """The sizes of the stores. Raises DatabaseUnavailable, ObjectStoreUnavailable."""
    is_listed = not settings.objects.pays_by_list
    return Whole(
        database_bytes=settings.database.size(),
        rows=None if settings.pays_by_row else row_figures(database),
        backups=_count(objects.list("backups/"), most=MOST_OBJECTS) if is_listed else None,
    )


def backups_of(objects: ObjectStore, feed_id: str) -> Objects:
    """The backups of a feed. Raises ObjectStoreUnavailable."""
    return _count(list_backups(objects, feed_id), most=MOST_BACKUPS)


def _count(found: Iterator[ObjectInfo], *, most: int) -> Objects:
    sizes = [info.size for info in islice(found, most)]
    return Objects(count=len(sizes), bytes=sum(sizes), is_all=next(found, None) is None)


# Days of a reader's time zone: where they begin in UTC, and the zone's offsets in between.
#
# A zone is a name of the tz database; one that is not known is UTC.

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


def days_until_today(now: datetime, zone: ZoneInfo, *, days: int) -> DayWindow:
    """So many days, the last one today."""
    today = now.astimezone(zone).date()
    return _window(today - timedelta(days=days - 1), days, zone, step=1)


def weeks_until_today(now: datetime, zone: ZoneInfo, *, weeks: int) -> DayWindow:
    """So many weeks from Monday to Sunday, the last one with today in it."""
    today = now.astimezone(zone).date()
    return _window(today - timedelta(days=today.weekday(), weeks=weeks - 1), weeks, zone, step=7)


def _window(first: date, steps: int, zone: ZoneInfo, *, step: int) -> DayWindow:
    begins = [midnight(first + timedelta(days=number * step), zone) for number in range(steps + 1)]
    shifts = shifts_of(zone, begins[0], begins[-1])
    return DayWindow(first=first, step=step, begins=begins, shifts=shifts)


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
