"""What came in of a user's feeds in a time, read from the store in two batches.

The time is shortened where it has too many items, and hours are counted over fewer weeks: a page takes a
second at most, and says what it left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from rss_pipeline.pipeline.accounts.callers import Caller
from rss_pipeline.pipeline.statistics.figures import Step, steps, visits_by_day
from rss_pipeline.pipeline.statistics.zones import days_until_today, midnight, shifts_of, weeks_until_today
from rss_pipeline.storage.database import Result
from rss_pipeline.storage.subscriptions import activity
from rss_pipeline.storage.subscriptions.activity import Came, Published, Stored, VisitDay, Window
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

SPANS = (7, 30, 90, 365)
"""Days that can be looked at. A year is shown by week."""
SHOWN_SPANS = (30, 90, 365)
HOURS_ITEMS = 50_000
"""With more items in their weeks, hours are counted over a week."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What came in, when it was published, and how visits went, until `at`."""

    at: datetime
    zone: ZoneInfo
    span: int
    """Days; fewer than wanted where these have too many items."""
    is_cut: bool
    """Even the shortest span has more than `activity.MOST_ITEMS` items: the first ones alone are counted."""
    window: Window
    came: Sequence[Came]
    steps: Sequence[Step]
    stored: Mapping[str, Stored]
    published: Published
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
    window = _window(span, now, zone)
    first_visits = now.date() - timedelta(days=activity.VISIT_DAYS - 1)
    counted, stored, visits = caller.read(
        activity.came_in(user, window, scope=scope),
        activity.stored_items(user, are_counted=are_counted, scope=scope),
        activity.visits_of(user, since=first_visits, scope=scope),
    )
    came = activity.came(counted)
    while _is_too_much(came) and span > SPANS[0]:
        span = max(each for each in SPANS if each < span)
        window = _window(span, now, zone)
        [counted] = caller.read(activity.came_in(user, window, scope=scope))
        came = activity.came(counted)
    found = steps(window, came, today=today)
    per_day = sum(step.items for step in found) / max((today - window.first).days + 1, 1)
    weeks = weeks_of_hours if per_day * 7 * weeks_of_hours <= HOURS_ITEMS else 1
    return Activity(
        at=now,
        zone=zone,
        span=span,
        is_cut=_is_too_much(came),
        window=window,
        came=came,
        steps=found,
        stored=activity.stored(stored),
        published=activity.published(_hours(caller, today, zone, weeks=weeks, scope=scope)),
        hours_days=7 * weeks,
        visits=visits_by_day(activity.visit_days(visits), until=now.date(), days=activity.VISIT_DAYS),
    )


def _window(span: int, now: datetime, zone: ZoneInfo) -> Window:
    if span == SPANS[-1]:
        return weeks_until_today(now, zone, weeks=53)
    return days_until_today(now, zone, days=span)


def _is_too_much(came: Sequence[Came]) -> bool:
    return sum(each.total for each in came) > activity.MOST_ITEMS


def _hours(caller: Caller, today: date, zone: ZoneInfo, *, weeks: int, scope: Scope) -> Result:
    """Whole weeks, so that each day of the week counts alike."""
    since, until = midnight(today - timedelta(weeks=weeks), zone), midnight(today, zone)
    shifts = shifts_of(zone, since, until)
    [found] = caller.read(
        activity.hours_of(caller.user_id, since=since, until=until, shifts=shifts, scope=scope)
    )
    return found
