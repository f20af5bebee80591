"""The words for the interval of a feed that answers: how often it is visited, and why. Pure functions.

The intervals themselves are those of auto_interval.py and next_visit.py. The spread of some per cent is in no
sentence: it explains nothing that a person wants to know.
"""

from collections.abc import Sequence
from datetime import timedelta

from rss_pipeline.collector.models.clock import LONGEST, duration, rough
from rss_pipeline.collector.schedule.auto_interval import LONGEST_ALIVE, SHORTEST, AutoInterval

_SEVERAL = {1: "once", 2: "twice"}


def registered_interval(interval: timedelta) -> str:
    """The reason for the interval that feeds.yaml names."""
    return f"{_every(interval)}: set by the operator"


def interval_by_wish(interval: timedelta) -> str:
    """The reason for the shortest interval that subscribers wish."""
    return f"{_every(interval)}: wished by a subscriber"


def interval_by_rhythm(
    own: AutoInterval, interval: timedelta, *, halvings: int = 0, came_in_vain: bool = False
) -> str:
    """The reason for the interval of `auto`; it was halved `halvings` times because of gaps. `came_in_vain`:
    it would be shorter if the same bytes had not come again."""
    if came_in_vain:
        reason = f"{_every(interval)}: its server sends the whole document also if nothing has changed"
    elif own.is_silent:
        reason = f"{_every(interval)}: nothing new for {rough(own.silence)}"
    elif own.items < 2:
        reason = f"{_every(interval)}: its rhythm is not known yet"
    else:
        reason = f"{_every(interval)}{_bound(interval)}: {own.items} items in the last {rough(own.span)}"
    if halvings:
        often = _SEVERAL.get(halvings, f"{halvings} times")
        reason += f"; halved {often}, because items were probably missed"
    return reason


def longer_interval(interval: timedelta, demands: Sequence[tuple[str, timedelta]], *, otherwise: str) -> str:
    """The reason where `demands` of the server (header or element, time) exceed the feed's own interval."""
    said = " and ".join(f"{name} {duration(demand)}" for name, demand in demands)
    if any(demand > LONGEST for _, demand in demands):
        said += ", but no feed waits longer"
    return f"{_every(interval)}: the server requests {said}; without that {otherwise}"


def _every(interval: timedelta) -> str:
    if interval == timedelta(days=1):
        return "once a day"
    if interval == timedelta(hours=1):
        return "every hour"
    minute = timedelta(minutes=1)
    return f"every {duration(max(round(interval / minute), 1) * minute)}"


def _bound(interval: timedelta) -> str:
    """Rhythms are those of the hours of the day, so an interval between the bounds holds for this hour."""
    if interval <= SHORTEST:
        return " (the shortest)"
    return " (the longest while items come)" if interval >= LONGEST_ALIVE else " at this hour"
