"""The decision that a clean removes nothing until a person confirms it: a wrong clock makes everything old.

A pure function.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise

from rss_pipeline.collector.models.clock import duration, instant, rough
from rss_pipeline.storage.installation import FarDate

LONGEST_SILENCE = timedelta(days=3)
"""The daemon visits every feed at least once a day; a clock that shows more since the last visit may be
wrong."""
MOST_AT_ONCE = 5
"""A daily clean removes a small part of the items; more than one in five is a clock or a setting."""
FEW = 1_000
"""Below this number of items a fifth may be removed at once, but never more than half."""
DAY = timedelta(hours=24)
JUMP = timedelta(days=7)
"""All feeds are visited daily. A week without a visit is a machine that was off, or a clock that jumped."""
JUMP_SHOWS = timedelta(days=21)
"""Feeds keep their visits of 28 days, by the day of the month; what is older in them has gaps anyway."""

WITNESSES = 3
"""Networks whose answers have to agree with each other, and not with the clock."""
AGREE = timedelta(minutes=10)
"""Servers with wrong clocks differ from each other. Where ours is wrong, all differ from it alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The extent of a clean, and the clock that it goes by."""

    now: datetime
    last_visit: datetime | None
    """The last visit of any feed."""
    items_due: int
    items: int
    """All items; or, where there are more, enough to see that more than half of them stay."""
    removed: int = 0
    """Items that cleans removed in the last 24 hours."""
    jumped: "Jump | None" = None
    items_before: int = 0
    """All items from before the jump, counted as `items`."""
    removed_since: int = 0
    """Items that cleans removed since the jump."""
    ahead: timedelta | None = None
    """The time by which publishers say that the clock is ahead."""


@dataclass(frozen=True, slots=True)
class Jump:
    """A span without a visit: the machine was off, or its clock jumped."""

    before: datetime
    """The end of the last day with a visit before it."""
    after: datetime
    """The begin of the first day with a visit after it."""


def jump(visited: Iterable[date], *, now: datetime, confirmed: datetime | None) -> Jump | None:
    """The largest span of the last weeks in which no feed was visited, if it is a jump; None too where a
    person has `confirmed` a clean since. `visited` are the days on which feeds were visited."""
    days = sorted({day for day in visited if day <= now.date()} | {now.date()})
    seen = None if confirmed is None or confirmed > now else confirmed
    found = [
        Jump(_midnight(before + timedelta(days=1)), _midnight(after))
        for before, after in pairwise(days)
        if after - before >= JUMP and now.date() - after <= JUMP_SHOWS
    ]
    found = [each for each in found if seen is None or seen < each.after]
    return max(found, key=lambda each: each.after - each.before, default=None)


def ahead(
    dates: Collection[FarDate], *, now: datetime, last_visit: datetime | None, confirmed: datetime | None
) -> timedelta | None:
    """The time by which the clock is ahead, if the answers of several networks agree on it; else None.

    A clock that steps by some days is ahead by more after each step, and every answer shows it, whereas a
    machine that was off for so long is told the right time. `dates` has one of each network. They count for
    a day of visits, and until a person has `confirmed` a clean since: they may be wrong together.
    """
    if last_visit is None:
        return None
    said = sorted(
        date.ahead
        for date in dates
        if last_visit - DAY < date.at <= now and (confirmed is None or confirmed < date.at)
    )
    for first, last in zip(said, said[WITNESSES - 1 :], strict=False):
        if last - first <= AGREE.total_seconds():
            return timedelta(seconds=first)
    return None


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def refusal(extent: Extent) -> str | None:
    """The reason why this clean may not remove anything, with what to do; None if it may."""
    silence = None if extent.last_visit is None else extent.now - extent.last_visit
    if silence is None or silence > LONGEST_SILENCE:
        since = (
            "no feed was visited yet"
            if silence is None or extent.last_visit is None
            else f"the last visit of any feed was {duration(silence)} before ({instant(extent.last_visit)})"
        )
        return (
            f"the clean removed nothing: it is {instant(extent.now)} by this machine's clock, and {since}."
            " With a wrong clock it would remove what is not old. Check the clock (`date`, `timedatectl"
            f" set-ntp true`); if it is right, poll first (`rss-pipeline poll`), or {_CONFIRM}"
        )
    if extent.ahead is not None:
        return (
            f"the clean removed nothing: it is {instant(extent.now)} by this machine's clock, and the answers"
            f" of {WITNESSES} publishers or more say that it is {rough(extent.ahead)} earlier. Check the"
            f" clock (`date`, `timedatectl set-ntp true`); if it is right, {_CONFIRM}"
        )
    if extent.items_due >= FEW and MOST_AT_ONCE * extent.items_due > extent.items:
        return (
            f"the clean removed nothing: {extent.items_due:,} of {extent.items:,} items are past their time"
            f" at {instant(extent.now)}, more than a fifth. Check the clock (`date`), RSS_KEEP_DAYS and"
            " `keep` in feeds.yaml, and see `rss-pipeline clean --dry-run`; if it is intended,"
            f" {_CONFIRM}"
        )
    if extent.items_due and 2 * (extent.items_due + extent.removed) > extent.items + extent.removed:
        return (
            f"the clean removed nothing: {extent.items_due:,} of {extent.items:,} items are past their time"
            f" at {instant(extent.now)}{_with_removed(extent.removed, 'in the last 24 hours')}, more than"
            " half. Check the clock (`date`), RSS_KEEP_DAYS and `keep` in feeds.yaml, and see"
            f" `rss-pipeline clean --dry-run`; if all of them are as old as that, {_CONFIRM}"
        )
    if extent.items_due and extent.jumped is not None and _is_most_from_before(extent):
        return (
            f"the clean removed nothing: it is {instant(extent.now)} by this machine's clock, and no feed was"
            f" visited from {instant(extent.jumped.before)} to {instant(extent.jumped.after)}:"
            f" {extent.items_due:,} of the {extent.items_before:,} items from before are past their"
            f" time{_with_removed(extent.removed_since, 'since then')}, more than half. Check the clock"
            " (`date`, `timedatectl set-ntp true`); if the machine was off and its clock is right,"
            f" {_CONFIRM}"
        )
    return None


def _is_most_from_before(extent: Extent) -> bool:
    return 2 * (extent.items_due + extent.removed_since) > extent.items_before + extent.removed_since


def _with_removed(number: int, when: str) -> str:
    return f", and {number:,} were removed {when}" if number else ""


_CONFIRM = "confirm with `rss-pipeline clean --yes` (in the UI: the job clean_store with `yes: true`)."
