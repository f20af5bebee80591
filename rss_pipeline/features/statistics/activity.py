"""The items of a user's feeds in a span of time, read from the store in two batches.

The time is shortened where it has too many items, and hours are counted over fewer weeks: a page takes a
second at most, and says what it left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from rss_pipeline.features.statistics.figures import Step, steps, visits_by_day
from rss_pipeline.features.statistics.zones import days_until_today, midnight, shifts_of, weeks_until_today
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.storage.subscriptions import activity
from rss_pipeline.storage.subscriptions.activity import Came, Published, Stored, VisitDay, Window
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

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
    recent, stored, visits = caller.read(
        activity.came_since(user, now - timedelta(days=_RECENT_DAYS), scope=scope),
        activity.stored_items(user, are_counted=are_counted, scope=scope),
        activity.visits_of(user, scope=scope),
    )
    per_day = activity.items_since(recent) / _RECENT_DAYS
    span = max((each for each in SPANS if each <= span and each * per_day <= MOST_ITEMS), default=SPANS[0])
    weeks = weeks_of_hours if per_day * 7 * weeks_of_hours <= MOST_HOURS_ITEMS else 1
    window = _window(span, now, zone)
    # Whole weeks, so that each day of the week counts alike.
    since, until = midnight(today - timedelta(weeks=weeks), zone), midnight(today, zone)
    *counted, hours = caller.read(
        *activity.came_in(user, window, scope=scope),
        activity.hours_of(user, since=since, until=until, shifts=shifts_of(zone, since, until), scope=scope),
    )
    came = activity.came(*counted)
    first_visits = now.date() - timedelta(days=activity.VISIT_DAYS - 1)
    return Activity(
        at=now,
        zone=zone,
        span=span,
        window=window,
        came=came,
        steps=steps(window, came, today=today),
        stored=activity.stored(stored),
        published=activity.published(hours),
        hours_days=7 * weeks,
        visits=visits_by_day(
            activity.visit_days(visits, since=first_visits), until=now.date(), days=activity.VISIT_DAYS
        ),
    )


def _window(span: int, now: datetime, zone: ZoneInfo) -> Window:
    if span == SPANS[-1]:
        return weeks_until_today(now, zone, weeks=53)
    return days_until_today(now, zone, days=span)
