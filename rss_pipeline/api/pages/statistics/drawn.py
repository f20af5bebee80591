"""The plots of the statistics: counts to bars with their names, titles and descriptions. Pure functions."""

from collections.abc import Sequence
from datetime import date

from markupsafe import Markup

from rss_pipeline.api.pages.statistics.plots import DAY_NAMES, Bar, bars, heat
from rss_pipeline.pipeline.statistics.activity import Activity
from rss_pipeline.pipeline.statistics.figures import Step, busiest_hour
from rss_pipeline.storage.subscriptions.activity import VisitDay

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
        description=f"{_span(steps[0].first, steps[-1].last)}: {activity.items:,} items, most of them"
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
    busiest = busiest_hour(activity.published)
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
        description=f"{_span(visits[0].day, visits[-1].day)}: {total:,} visits, {failed:,} of them failed.",
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


def _span(first: date, last: date) -> str:
    return f"{first:%-d %B %Y} to {last:%-d %B %Y}"
