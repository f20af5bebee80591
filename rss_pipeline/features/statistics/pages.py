"""Statistics of a user's feeds, and of one feed: what came in, when, how visits went, what is stored.

The zone of days and hours is the browser's, which the script of the pages leaves in a cookie, or that of
`?zone=`; without both it is UTC.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, TypeVar, cast
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from rss_pipeline.api.auth import SignedIn
from rss_pipeline.api.callers import AsyncCaller
from rss_pipeline.api.pages.frame import Frame, read_frame
from rss_pipeline.api.pages.render import page
from rss_pipeline.api.routers.answered import no_feed
from rss_pipeline.features.statistics import service
from rss_pipeline.features.statistics.plots import DAY_NAMES, Bar, bars, heat, small_bars
from rss_pipeline.features.statistics.service import (
    SHOWN_SPANS,
    Activity,
    Objects,
    Step,
    backups_of,
    read_activity,
    whole,
    zone_named,
)
from rss_pipeline.features.statistics.sql import FeedRoom, VisitDay, feed_room, room_of
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.accounts.users import is_owner
from rss_pipeline.reader.feed_queries import visits, with_visits
from rss_pipeline.reader.query import Query
from rss_pipeline.settings import Settings
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope

router = APIRouter(include_in_schema=False)

T = TypeVar("T")
ZONE_COOKIE = "zone"
_WEEKS_OF_ALL, _WEEKS_OF_ONE = 4, 12
_SPAN_NAMES = {7: "7 days", 30: "30 days", 90: "90 days", 365: "A year"}


@router.get("/statistics")
async def of_all_feeds(
    request: Request, caller: SignedIn, days: str = "", zone: str | None = None
) -> Response:
    """Statistics of all feeds of the user; for the owner, of the whole installation."""
    frame, owns = await read_frame(caller, is_owner(caller.user_id))
    activity = await _activity(request, caller, frame, span=_span(days), zone=_zone(request, zone))
    stores = request.app.state.stores
    everything = None
    if owns:
        everything = await _kept(
            request, "whole", lambda: whole(stores.settings, stores.database, stores.objects)
        )
    feed_ids = [feed.feed_id for feed in frame.feeds]
    ranking = service.ranking(activity.came, feed_ids, steps=len(activity.steps))
    counts = [found.items for found in activity.stored.values()]
    return page(
        request,
        "statistics/statistics.html",
        title="Statistics",
        frame=frame,
        ranking=ranking,
        silent=ranking.silent[: service.SILENT_LISTED],
        feeds={feed.feed_id: feed for feed in frame.feeds},
        stored_items=None if None in counts else sum(count or 0 for count in counts),
        everything=everything,
        **_values(request, activity, wanted=_span(days)),
    )


@router.get("/feeds/{id}/statistics")
async def of_a_feed(
    request: Request, caller: SignedIn, id: str, days: str = "90", zone: str | None = None
) -> Response:
    """Statistics of one feed of the user."""
    frame, visit = await read_frame(caller, visits([id]))
    feed = next(iter(with_visits(frame.feeds, visit)), None)
    if feed is None:
        raise no_feed()
    activity = await _activity(
        request, caller, frame, span=_span(days), zone=_zone(request, zone), feed_id=id
    )

    def measure(caller: Caller) -> tuple[FeedRoom, Objects]:
        room = caller.ask(Query.of(room_of(caller.user_id, id), feed_room))
        return room, backups_of(request.app.state.stores.objects, id)

    room, backups = await _kept_of(caller, ("room", id), measure)
    return page(
        request,
        "statistics/feed_statistics.html",
        title=f"Statistics of {feed.title or feed.url}",
        frame=frame,
        feed=feed,
        stored=activity.stored.get(id),
        room=room,
        backups=backups,
        **_values(request, activity, wanted=_span(days)),
    )


async def _activity(
    request: Request,
    caller: AsyncCaller,
    frame: Frame,
    *,
    span: int,
    zone: ZoneInfo,
    feed_id: str | None = None,
) -> Activity:
    scope = ALL if feed_id is None else Scope(feed_id=feed_id)
    feeds = frozenset(feed.feed_id for feed in frame.feeds) if feed_id is None else None
    return await _kept_of(
        caller,
        ("activity", feed_id, feeds, span, zone.key),
        lambda caller: read_activity(
            caller,
            span=span,
            zone=zone,
            now=request.app.state.clock(),
            weeks_of_hours=_WEEKS_OF_ALL if feed_id is None else _WEEKS_OF_ONE,
            are_counted=feed_id is not None or not request.app.state.stores.is_remote,
            scope=scope,
        ),
    )


def _values(request: Request, activity: Activity, *, wanted: int) -> dict[str, Any]:
    """The values of an activity that both templates show."""
    since, average = service.average_since(activity.steps, today=activity.today)
    keep_days = request.app.state.stores.settings.keep_days
    return {
        "activity": activity,
        "small_bars": small_bars,
        "wanted": wanted,
        "average": average,
        "average_since": None if since == activity.window.first else since,
        "uncounted_until": uncounted_until(activity.visits),
        "spans": [(days, _SPAN_NAMES[days]) for days in SHOWN_SPANS],
        "span_name": _SPAN_NAMES[activity.span].lower(),
        "keep_days": keep_days if keep_days < activity.days else None,
        "items_plot": items_plot(activity),
        "hours_plot": hours_plot(activity),
        "visits_plot": visits_plot(activity),
        "visits": {
            "news": sum(day.news for day in activity.visits),
            "unchanged": sum(day.unchanged for day in activity.visits),
            "failed": sum(day.failed for day in activity.visits),
        },
        "busiest": service.busiest_hour(activity.published),
        "by_day": service.share_by_day(activity.published),
    }


def _span(days: str) -> int:
    return next((span for span in SHOWN_SPANS if str(span) == days), SHOWN_SPANS[0])


def _zone(request: Request, named: str | None) -> ZoneInfo:
    return zone_named(named or request.cookies.get(ZONE_COOKIE))


async def _kept_of(caller: AsyncCaller, key: Hashable, read: Callable[[Caller], T]) -> T:
    """A value of this caller: read, or with a remote store as it was within the hour. The frame of the page
    has shown by then that the session is alive."""
    kept = caller.stores.of(Timed)
    found = kept.get((caller.user_id, key))
    if found is None:
        found = await caller.run(read)
        kept.put((caller.user_id, key), found)
    return cast("T", found)


async def _kept(request: Request, key: Hashable, read: Callable[[], T]) -> T:
    kept: Timed = request.app.state.stores.of(Timed)
    found = kept.get(key)
    if found is None:
        found = await run_in_threadpool(read)
        kept.put(key, found)
    return cast("T", found)


# Values that are kept for a time, so that what a remote store has read is not read for every view.

KEPT_SECONDS = 3_600
"""With a remote store, which counts the rows that are read; an embedded one reads for nothing."""
MOST_KEPT = 200


class Timed:
    """Values by key, each for so many seconds (0: not at all), the latest ones alone."""

    def __init__(self, *, lifetime: float, seconds: Callable[[], float], most: int = MOST_KEPT) -> None:
        self._lifetime, self._seconds, self._most = lifetime, seconds, most
        self._values: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        """The value, or None for one that is too old or was never put."""
        until, value = self._values.get(key, (0.0, None))
        return value if self._seconds() < until else None

    def put(self, key: Hashable, value: object) -> None:
        if not self._lifetime:
            return
        self._values[key] = (self._seconds() + self._lifetime, value)
        self._values.move_to_end(key)
        while len(self._values) > self._most:
            self._values.popitem(last=False)


@contextmanager
def kept_figures(settings: Settings, is_starting: bool) -> Iterator[Timed]:  # noqa: ARG001 (the same for all)
    """The figures that are kept while the reader runs."""
    yield Timed(lifetime=0 if settings.database.is_here else KEPT_SECONDS, seconds=time.monotonic)


# The plots of the statistics: counts to bars with their names, titles and descriptions. Pure functions.

VISIT_OUTCOMES = ("with new items", "unchanged", "failed")
_TICKS = 5


def items_plot(activity: Activity) -> Markup:
    """Items by day, or by week."""
    steps = activity.steps
    is_by_week = activity.window.step == 7
    every = -(-len(steps) // _TICKS)
    most = max(steps, key=lambda step: step.items)
    return bars(
        id="items",
        title=f"Items {'a week' if is_by_week else 'a day'}",
        description=f"{_days(steps[0].first, steps[-1].last)}: {activity.items:,} items, most of them"
        f" ({most.items:,}) {'in the' if is_by_week else 'on'} {step_name(most)}.",
        unit="items",
        series=("items",),
        bars=[
            Bar(
                label=step_name(step),
                tick=short_date(step.first) if number % every == 0 else None,
                values=(step.items,),
                is_partial=not step.is_over,
            )
            for number, step in enumerate(steps)
        ],
    )


def hours_plot(activity: Activity) -> Markup:
    """Items by day of the week and hour."""
    busiest = service.busiest_hour(activity.published)
    said = "None has a date with a time."
    if busiest is not None:
        day, hour, items = busiest
        said = f"Most of them ({items:,}) are of {DAY_NAMES[day]}, {hour:02}:00 to {(hour + 1) % 24:02}:00."
    return heat(
        id="hours",
        title="Items by day of the week and hour",
        description=f"{activity.published.total:,} items of {activity.hours_days // 7} weeks. {said}",
        unit="items",
        counts=activity.published.counts,
    )


def visits_plot(activity: Activity) -> Markup:
    """Visits by day and outcome."""
    visits = activity.visits
    every = -(-len(visits) // _TICKS)
    total = sum(day.news + day.unchanged + day.failed for day in visits)
    failed = sum(day.failed for day in visits)
    return bars(
        id="visits",
        title="Visits a day",
        description=f"{_days(visits[0].day, visits[-1].day)}: {total:,} visits, {failed:,} of them failed.",
        unit="visits",
        series=VISIT_OUTCOMES,
        bars=[
            Bar(
                label=long_date(day.day),
                tick=short_date(day.day) if number % every == 0 else None,
                values=(day.news, day.unchanged, day.failed),
                is_partial=number == len(visits) - 1,
            )
            for number, day in enumerate(visits)
        ],
    )


def uncounted_until(visits: Sequence[VisitDay]) -> date | None:
    """The first day with a visit; None where it is the first of all, or where there is no visit."""
    first = next((day.day for day in visits if day.news + day.unchanged + day.failed), None)
    return None if first == visits[0].day else first


def step_name(step: Step) -> str:
    """`Sunday, 22 November 2026`, or `week from 16 November 2026`."""
    return long_date(step.first) if step.first == step.last else f"week from {step.first:%-d %B %Y}"


def long_date(day: date) -> str:
    return f"{day:%A, %-d %B %Y}"


def short_date(day: date) -> str:
    return f"{day:%-d %b}"


def _days(first: date, last: date) -> str:
    return f"{first:%-d %B %Y} to {last:%-d %B %Y}"
