"""Counts to figures for people: totals by step, the busiest and the silent feeds. Pure functions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rss_pipeline.storage.subscriptions.activity import Came, Published, VisitDay, Window

MOST_LISTED, LEAST_LISTED, SILENT_LISTED = 20, 10, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A day, or a week from Monday on, and its items."""

    first: date
    last: date
    items: int
    is_over: bool
    """False while today is in it: its count still grows."""


def steps(window: Window, found: Sequence[Came], *, today: date) -> list[Step]:
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


def busiest_hour(published: Published) -> tuple[int, int, int] | None:
    """Day of the week, hour and items of the hour with most items, the first of equals; None for no item."""
    if not published.counts:
        return None
    (day, hour), items = min(published.counts.items(), key=lambda entry: (-entry[1], entry[0]))
    return day, hour, items


def share_by_day(published: Published) -> float:
    """The part of the items that came between 08:00 and 18:00, 0 to 1."""
    counts: Mapping[tuple[int, int], int] = published.counts
    inside = sum(n for (_, hour), n in counts.items() if 8 <= hour < 18)
    return inside / max(published.total, 1)
