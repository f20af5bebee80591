"""The time at which a feed is due again, and the reason, a sentence with the inputs. Pure functions.

after_visit.py chooses by the outcome of a visit. What
is due now is the claim's, and the length of a hold is in collector.fetch.holds.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter

from rss_pipeline.collector.models.clock import LONGEST, duration, instant, rough, whole_second
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed, NextVisit
from rss_pipeline.collector.models.hold import FeedHold, HostHold
from rss_pipeline.collector.models.item import PublisherHints
from rss_pipeline.collector.schedule import auto_interval, gaps
from rss_pipeline.collector.schedule.auto_interval import LONGEST_ALIVE, SHORTEST, AutoInterval
from rss_pipeline.features import FEED_KEYS

FIRST_BACKOFF = timedelta(minutes=30)
CHALLENGE_BACKOFF = timedelta(hours=6)
OUTAGE_PAUSE = timedelta(minutes=5)
LONGEST_OUTAGE_PAUSE = timedelta(hours=1)
UNREADABLE_PAUSE = timedelta(minutes=5)

FULL_RATE_CUTS = 2
"""Documents in a row that may come cut off before the interval grows: each of them is fetched whole."""
IN_VAIN = timedelta(hours=1)
"""`auto` at least, for a feed whose same bytes came again because no validator spares them."""

SPREAD_PER_CENT = 3
MEGABYTE = 1_000_000


def next_after_success(
    feed: Feed,
    hints: PublisherHints,
    *,
    now: datetime,
    retry_after: int | None = None,
    cuts: int = 0,
    came_in_vain: bool = False,
    answered_by: str | None = None,
) -> NextVisit:
    """The visit after a document was stored or confirmed, by the hints of the document and of its answer.

    `retry_after` is in seconds. At most 24 h away and otherwise never sooner than the server demands;
    skipHours and skipDays (RSS 2.0, UTC) move the visit to the first hour that is allowed. `cuts` counts the
    documents in a row that were cut off, this one included: the third doubles the interval, and so does each
    one after it. `came_in_vain`: the same bytes came again, and will, whenever they are asked for.
    `answered_by` is the URL of the answer: feeds that lead to one are spread alike, so that they stay in one
    round, which requests it once.
    """
    name = answered_by or feed.id
    own, own_reason, shortest = _own_interval(feed, now=now, updates=hints.updates, came_in_vain=came_in_vain)
    if cuts > FULL_RATE_CUTS:
        own = min(own * 2 ** min(cuts - FULL_RATE_CUTS, 7), LONGEST)
        own_reason, shortest = f"cut off {cuts} times in a row: {duration(own)}", None
    demands = (
        ("max-age", _seconds(hints.max_age)),
        ("ttl", hints.ttl),
        ("Retry-After", _seconds(retry_after)),
    )
    longer = [(name, demand) for name, demand in demands if demand is not None and demand > own]
    least = max((demand for _, demand in demands if demand is not None), default=timedelta(0))
    base = min(max(own, least), LONGEST)
    least = min(least, LONGEST)
    reasons = [longer_interval(base, longer, otherwise=own_reason) if longer else own_reason]
    per_cent = _spread_within(
        name,
        base,
        shortest=max(least, shortest or least),
        longest=auto_interval.LONGEST_ALIVE if shortest and base <= auto_interval.LONGEST_ALIVE else LONGEST,
    )
    delay = min(_whole(base * (1 + per_cent / 100)), LONGEST)
    at = _allowed(now + delay, name, hints)
    if at != now + delay:
        reasons.append("skipHours/skipDays of the feed")
        if at > now + LONGEST:
            reasons.append(f"at most {duration(LONGEST)}")
            at = now + LONGEST
    not_before = whole_second(now + least) if least else None
    return NextVisit(at=whole_second(at), reason="; ".join(reasons), not_before=not_before)


def next_after_failure(
    feed: Feed, failure: Failure, *, now: datetime, hold: HostHold | None = None
) -> NextVisit:
    """The visit after failure n in a row: 30 min * 2^(n-1), at most 24 h, at least the requested wait.

    Not spread. 410 waits a day; a challenge at least 6 h. `hold` is the hold of the host that answered.
    """
    count = feed.failures.in_a_row + 1
    # Six doublings pass 24 h; the exponent of a feed that failed 10,000 times overflows otherwise.
    delay = min(FIRST_BACKOFF * 2 ** min(count - 1, 6), LONGEST)
    # Without the kind: users see the reason, and for them not all kinds are apart (reader/failures.py).
    reasons = [f"failure {count} in a row: {duration(delay)}"]
    if failure.kind == "gone":
        delay = LONGEST
        reasons.append(f"410 Gone waits {duration(LONGEST)}")
    elif failure.kind == "challenge" and delay < CHALLENGE_BACKOFF:
        delay = CHALLENGE_BACKOFF
        reasons.append(f"a challenge waits at least {duration(CHALLENGE_BACKOFF)}")
    demanded = _seconds(failure.retry_after)
    if demanded is not None and demanded > delay:
        delay = min(demanded, LONGEST)
        reasons.append(f"the server requests a wait of {duration(delay)}")
    at = whole_second(now + delay)
    if hold is not None and hold.until > at:
        at = hold.until
        reasons.append(_on_hold(hold))
    if (planned := _planned(feed, now=now)) > at:
        at = planned
        reasons.append("not before it was due")
    return NextVisit(at=at, reason="; ".join(reasons), kind="failure")


def end_of_backups(feed: Feed, came: int, *, most: int, now: datetime) -> datetime | None:
    """The end of the day (UTC), if new backups of so many bytes make `most` bytes of it; else None."""
    return _midnight(now) if _backups_of_day(feed, came, now=now) >= most else None


def within_backups(feed: Feed, next: NextVisit, came: int, *, most: int, now: datetime) -> NextVisit:
    """This visit, or a later one after which backups of a day will not have passed `most` bytes, where each
    document is as new, and as large, as the one that came.

    Visits are spread over the rest of the day: were they as frequent as ever until its bytes are used up, a
    publisher's short list would lose items in the hours after. What was fetched is kept in any case.
    """
    left = most - _backups_of_day(feed, came, now=now)
    midnight = _midnight(now)
    if left <= 0:
        at = midnight + timedelta(minutes=_minute(feed.id))
    else:
        at = now + (midnight - now) * min(came / left, 1.0)
    at = whole_second(at)
    if at <= next.at:
        return next
    reason = f"at most {most // MEGABYTE:,} MB of new documents a day"
    if left > 0:
        reason += f"; the last one had {came / MEGABYTE:,.1f} MB"
    return replace(next, at=at, reason=f"{next.reason}; {reason}", not_before=at)


def _backups_of_day(feed: Feed, came: int, *, now: datetime) -> int:
    return came + (feed.day_backup_bytes if feed.counted_day == now.date().isoformat() else 0)


def _midnight(now: datetime) -> datetime:
    return now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def next_after_hold(
    feed: Feed, hold: HostHold | FeedHold, *, now: datetime, not_before: datetime | None = None
) -> NextVisit:
    """The visit of a feed that this hold stopped: after the hold, spread, so that not all feeds come at once,
    and not before the feed was due. Until `not_before` a redirect that led to the host asks to wait."""
    spread = abs(_spread_per_cent(feed.id)) / 100 * (hold.until - now)
    at = max(whole_second(hold.until + spread), _planned(feed, now=now))
    if not_before is not None and not_before > at:
        return next_after_redirect(not_before)
    return NextVisit(at=at, reason=_on_hold(hold), kind="hold")


def next_after_redirect(not_before: datetime) -> NextVisit:
    """The visit of a feed whose redirect asks to wait, where the request that it led to was not made."""
    at = whole_second(not_before)
    return NextVisit(at=at, reason=f"its redirect asks to wait until {instant(at)}", kind="hold")


def _on_hold(hold: HostHold | FeedHold) -> str:
    return f"{hold.of} is on hold until {instant(hold.until)}: {hold.reason}"


def outage_pause(pauses: int) -> timedelta:
    """The pause of an outage of our own network after so many: 5 min, 10 min and so on up to an hour."""
    return min(OUTAGE_PAUSE * (1 << min(pauses, 4)), LONGEST_OUTAGE_PAUSE)


def next_after_our_outage(
    feed: Feed, now: datetime, *, before_any_answer: bool = False, retry_after: int | None = None
) -> NextVisit:
    """The visit after a round in which our own network was down. No failure is counted.

    Before the first answer of any feed it is not known that it was the network, and each pause is the first.
    `retry_after` are the seconds that a redirect asked to wait.
    """
    pause = OUTAGE_PAUSE if before_any_answer else outage_pause(feed.schedule.outage_pauses)
    why = "no feed could be reached" if before_any_answer else "our network was down"
    at = now + max(pause, _seconds(retry_after) or pause)
    return NextVisit(at=at, reason=f"{why}: {duration(pause)}", kind="our_outage")


def next_after_unreadable_registry(now: datetime) -> NextVisit:
    """The visit of a feed with headers or a password while feeds.yaml, which has them, cannot be read.

    Still due, it would make the sensor start a run every minute.
    """
    return NextVisit(
        at=now + UNREADABLE_PAUSE,
        reason="the list with its headers or password could not be read: 5 min",
        kind="unreadable_registry",
    )


def after_skipped_hours(feed: Feed, *, now: datetime) -> NextVisit | None:
    """The visit of a due feed in an hour or a day that it skips (skipHours, skipDays); None in any other.

    A visit that is late, or comes after a back-off, may fall into such an hour although it was not planned
    there. 24 h after its last visit a feed is visited in any hour.
    """
    if feed.schedule.last_visited_at is None:
        return None
    at = _allowed(now, feed.id, feed.schedule.hints)
    at = min(at, feed.schedule.last_visited_at + LONGEST)
    if at <= now:
        return None
    return NextVisit(at=whole_second(at), reason="skipHours/skipDays of the feed", kind="skip_hours")


def _planned(feed: Feed, *, now: datetime) -> datetime:
    """The time at which a feed was due: a refresh by hand does not bring the next visit nearer."""
    planned = feed.schedule.next_fetch_at
    return now if planned is None or planned > now + LONGEST else planned


def _own_interval(
    feed: Feed, *, now: datetime, updates: Sequence[datetime], came_in_vain: bool
) -> tuple[timedelta, str, timedelta | None]:
    """The interval without the server's demands, at most 24 h, its reason, and, if it is `auto`'s, the
    shortest that this may be now.

    Of feeds.yaml's interval and the shortest that subscribers wish the shorter one. A wish that is longer
    than `auto` counts only where no one leaves the interval to `auto`: one slow reader delays no one else.
    """
    wished, least = feed.wished_interval, _least(feed)
    if wished is not None:
        wished = min(max(wished, auto_interval.SHORTEST if least is None else least[1]), LONGEST)
    if feed.interval is not None:
        interval = min(feed.interval, LONGEST)
        if wished is not None and wished < interval:
            return wished, interval_by_wish(wished), None
        return interval, registered_interval(interval), None
    if wished is not None and not feed.auto_is_wished:
        return wished, interval_by_wish(wished), None
    own = auto_interval.auto_interval(updates, now=now)
    if least is not None and own.interval < least[1]:
        return least[1], f"{_every(least[1])}: the shortest of `auto` with `{least[0]}`", least[1]
    whole = max(own.interval, IN_VAIN) if came_in_vain else own.interval
    halvings = gaps.halvings(feed.schedule.gaps, now=now) if whole > auto_interval.SHORTEST else 0
    interval = max(whole / 2**halvings, auto_interval.SHORTEST)
    if wished is not None and wished < interval:
        return wished, interval_by_wish(wished), None
    reason = interval_by_rhythm(own, interval, halvings=halvings, came_in_vain=whole > own.interval)
    return interval, reason, interval if whole > own.interval else auto_interval.SHORTEST


def _least(feed: Feed) -> tuple[str, timedelta] | None:
    """The key of the feed with the longest of its shortest intervals, and that."""
    found = ((name, FEED_KEYS[name].least_interval) for name in feed.feature_keys)
    return max(((name, each) for name, each in found if each is not None), key=itemgetter(1), default=None)


def _spread_within(name: str, base: timedelta, *, shortest: timedelta, longest: timedelta) -> float:
    """The feed's per cent, turned round where it would lead beyond a bound; `shortest` before `longest`."""
    per_cent = _spread_per_cent(name)
    if base * (1 + per_cent / 100) > longest:
        per_cent = -abs(per_cent)
    if base * (1 + per_cent / 100) < shortest:
        per_cent = abs(per_cent)
    return per_cent


def _spread_per_cent(name: str) -> float:
    """-3.0 to 3.0 in tenths, always the same for a name: neighbours drift apart and stay apart."""
    steps = 10 * SPREAD_PER_CENT
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
    return (number % (2 * steps + 1) - steps) / 10


def _allowed(at: datetime, name: str, hints: PublisherHints) -> datetime:
    """`at`, or a minute in the first hour after it that is not to be skipped."""
    hour = at.replace(minute=0, second=0, microsecond=0)
    for ahead in range(24 * 7):
        candidate = hour + timedelta(hours=ahead)
        if candidate.hour not in hints.skip_hours and candidate.weekday() not in hints.skip_days:
            if ahead == 0:
                return at
            # Not all of them at the full hour.
            return candidate + timedelta(minutes=_minute(name))
    return at  # every hour of the week is to be skipped: such a wish is a mistake


def _minute(name: str) -> int:
    """0 to 9, always the same for a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[4:6], "big") % 10


def _seconds(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(seconds=value)


def _whole(value: timedelta) -> timedelta:
    return timedelta(seconds=round(value.total_seconds()))


# The words for the interval of a feed that answers: how often it is visited, and why. Pure functions.
# The spread of some per cent is in no sentence: it explains nothing that a person wants to know.

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
