"""The meaning of an answer, read from a publisher's bytes: the scorer's own reading of the RFCs.

Nothing of the product is used here: a mistake in its reading would otherwise excuse itself.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import pairwise

from rss_pipeline_tests.support.server import Answer

DAY = timedelta(hours=24)
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer: status, headers by lower-case name, and whether a whole readable document came with it."""

    status: int
    headers: Mapping[str, str]
    document: "Wishes | None" = None
    digest: int = 0
    """A hash of the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """The limits that a document sets its readers (RSS 2.0: ttl, skipHours, skipDays)."""

    ttl: timedelta = timedelta(0)
    hours: frozenset[int] = frozenset()
    days: frozenset[int] = field(default=frozenset())
    """Monday 0."""
    dates: tuple[datetime, ...] = ()
    """Dates of its items, each once, oldest first."""


def read(answer: Answer, *, deadline: float) -> Said:
    """The answer of `answer` to a client that waits `deadline` seconds and no longer."""
    if answer.raw is not None:
        head, _, body = answer.raw.partition(b"\r\n\r\n")
        if not head:
            return Said(status=0, headers={})
        line, *fields = head.decode("latin-1").split("\r\n")
        pairs = [(name, value.strip()) for name, _, value in (text.partition(":") for text in fields)]
        status = int(line.split(" ")[1])
    else:
        given = answer.headers.items() if isinstance(answer.headers, Mapping) else answer.headers
        pairs, body, status = list(given), answer.body, answer.status
    headers = {name.lower(): value for name, value in pairs if value}
    seconds = answer.delay
    if answer.drip is not None:
        seconds += len(body) / answer.drip[0] * answer.drip[1]
    if seconds > deadline:
        return Said(status=0, headers={})
    whole = answer.cut_after is None
    document = _wishes(body) if status == 200 and whole else None
    return Said(status=status, headers=headers, document=document, digest=hash(body))


def _wishes(body: bytes) -> Wishes | None:
    """None for what is no feed."""
    try:
        root = ET.fromstring(body)
    except ET.ParseError:
        return None
    if root.tag != "rss":
        return None
    ttl = root.findtext("channel/ttl")
    return Wishes(
        ttl=timedelta(minutes=int(ttl)) if ttl else timedelta(0),
        hours=frozenset(int(each.text or "") for each in root.iterfind("channel/skipHours/hour")),
        days=frozenset(_WEEKDAYS.index(each.text or "") for each in root.iterfind("channel/skipDays/day")),
        dates=tuple(sorted({at for each in root.iter("pubDate") if (at := _date(each.text)) is not None})),
    )


def usable(etag: str | None, modified: str | None, *, dated: datetime) -> tuple[str | None, str | None]:
    """The validators that can be true: an ETag with a character, a Last-Modified from 1990 on that is at most
    a day after the Date of its answer (`dated`). What is no date is a mark like any other."""
    year = re.search(r"[A-Z][a-z]{2} ([0-9]{4}) ", modified or "")
    is_early = year is not None and int(year[1]) < 1990
    is_late = (at := _date(modified)) is not None and at - dated > DAY
    return None if etag in ('""', 'W/""') else etag, None if is_early or is_late else modified


def checked_after(dates: Sequence[datetime]) -> timedelta:
    """The time without a document after which one request has no validators: four usual gaps, between a week
    and 30 days."""
    gaps = sorted(b - a for a, b in pairwise(dates))
    return min(max(4 * gaps[len(gaps) // 2], timedelta(days=7)) if gaps else DAY * 30, DAY * 30)


def freshness(headers: Mapping[str, str], *, at: datetime) -> timedelta:
    """The seconds for which an answer is fresh (RFC 9111 4.2.1), less its Age; at most a day."""
    control = headers.get("cache-control", "")
    if re.search(r"\bno-(store|cache)\b", control):
        return timedelta(0)
    if (found := re.search(r"(?<![\w-])max-age=(\d+)", control)) is not None:
        left = int(found[1]) - int(headers.get("age", "0"))
        return min(max(timedelta(seconds=left), timedelta(0)), DAY)
    if (expires := _date(headers.get("expires"))) is not None:
        return min(max(expires - (_date(headers.get("date")) or at), timedelta(0)), DAY)
    return timedelta(0)


def retry_after(headers: Mapping[str, str], *, at: datetime) -> timedelta | None:
    """RFC 9110 10.2.3, at most a day; None where there is none."""
    text = headers.get("retry-after")
    if text is None:
        return None
    if text.isdecimal():
        return min(timedelta(seconds=int(text)), DAY)
    date = _date(text)
    return None if date is None else min(max(date - at, timedelta(0)), DAY)


def rate_limit_reset(headers: Mapping[str, str]) -> timedelta | None:
    """The seconds after a 429 until its limit is reset, at most a day; None if it does not say."""
    text = headers.get("x-ratelimit-reset", "")
    return min(timedelta(seconds=int(text)), DAY) if text.isdecimal() else None


def date_of(headers: Mapping[str, str], *, at: datetime) -> datetime:
    """The Date of an answer, or its time."""
    return _date(headers.get("date")) or at


def _date(text: str | None) -> datetime | None:
    with suppress(ValueError, TypeError):
        return None if text is None else parsedate_to_datetime(text).astimezone(UTC)
    return None
