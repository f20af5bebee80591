"""The health checks' judgments: what the tables' answers mean, and what to do. Pure.

The facts come from storage.health and storage.condition; checks.py shows the verdicts in Dagster.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.pipeline.health.findings import Check
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.diagnostics import BackupLoss
from rss_pipeline.storage.reports.health import Concerned

Severity = Literal["warning", "error"]

OVERDUE = timedelta(minutes=30)
"""A poll starts within four minutes and takes a few more."""
OVERDUE_LONG = timedelta(hours=6)
IMAGES_OVERDUE = timedelta(hours=6)
IMAGES_OVERDUE_LONG = timedelta(days=2)
GAPS_WITHIN = timedelta(days=7)
GIVEN_UP_WITHIN = timedelta(days=7)
MANY_GIVEN_UP = 10
"""Images of one feed within that time; a few are lost everywhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a check found. `sentence` says what is wrong and what to do, or that all is well."""

    severity: Severity | None
    """None: it passed."""
    sentence: str
    figures: Mapping[str, int | float] = field(default_factory=dict)
    """Numbers under stable names, so that they plot."""
    rows: Sequence[Row] = ()
    """What is concerned, at most a hundred."""


def judge_overdue(found: Concerned, *, now: datetime) -> Verdict:
    """Of the feeds that have been due for longer than a poll takes to come."""
    lag = _lag(found, now)
    figures = {"feeds": found.count, "lag_seconds": round(lag.total_seconds())}
    if not found.count:
        return Verdict(severity=None, sentence="Every feed is visited when it is due.", figures=figures)
    return Verdict(
        severity="error" if lag >= OVERDUE_LONG else "warning",
        sentence=(
            f"{_feeds(found.count, 'has', 'have')} been due for more than {_span(OVERDUE)},"
            f" the longest for {_span(lag)}. Is the sensor `poll_feeds_when_due` on, do its runs fail or wait"
            " in the queue? Where polls run all the time, raise RSS_FETCH_CONCURRENCY or RSS_BATCH_SIZE."
        ),
        figures=figures,
        rows=found.rows,
    )


def judge_failing(found: Concerned) -> Verdict:
    """Of the feeds with ten failures in a row and more."""
    return _listing(
        found,
        right="No feed has failed ten times in a row.",
        wrong="failed ten times in a row or more; each is still asked once a day",
        mend="Look for the feed's new address, correct `url` in feeds.yaml (with `id:` to keep its items), or"
        " set `enabled: false`.",
        verb=("has", "have"),
    )


def judge_gone(found: Concerned) -> Verdict:
    """Of the feeds that answer 410."""
    return _listing(
        found,
        right="No publisher has said that a feed is gone.",
        wrong="gone: the publisher answers 410 and means it; each is still asked once a day",
        mend="Take it out of feeds.yaml (its items stay until they are past their time), or write its new"
        " address.",
        verb=("is", "are"),
    )


def judge_moved(moved: Concerned, redirecting: Concerned) -> Verdict:
    """Judge the feeds that have a new address for good, adopted or not."""
    figures = {"feeds": moved.count, "redirecting": redirecting.count}
    if not (moved.count or redirecting.count):
        return Verdict(severity=None, sentence="Every feed is where feeds.yaml says.", figures=figures)
    parts = [
        *([f"{_feeds(moved.count, 'has', 'have')} moved for good"] if moved.count else []),
        *(
            [f"{_feeds(redirecting.count, 'answers', 'answer')} with permanent redirects not adopted so far"]
            if redirecting.count
            else []
        ),
    ]
    return Verdict(
        severity="warning",
        sentence=(
            f"{'; '.join(parts)}. Write the new address (`address` below) as `url` into feeds.yaml, with `id`"
            " as it is to keep the feed's items."
        ),
        figures=figures,
        rows=[*moved.rows, *redirecting.rows],
    )


def judge_gaps(found: Concerned) -> Verdict:
    """Of the feeds that published faster than they were visited."""
    return _listing(
        found,
        right=f"No feed had a gap within {GAPS_WITHIN.days} days.",
        wrong="a document without any item of the one before: items were probably missed",
        mend="`auto` comes sooner by itself for some weeks; shorten an `interval` of feeds.yaml.",
        verb=("had", "had"),
    )


def judge_unstable(found: Concerned) -> Verdict:
    """Of the feeds whose guids change."""
    return _listing(
        found,
        right="Items keep their guids.",
        wrong="unstable guids: known items come again as new ones",
        mend="Set `key: link` or `key: title+date` for the feed in feeds.yaml.",
        verb=("has", "have"),
    )


def judge_undated(found: Concerned) -> Verdict:
    """Of the feeds without a date that can be read."""
    return _listing(
        found,
        right="Every feed with items has dates that can be read.",
        wrong="no date that can be read in its newest document: the fetch time stands in, and `auto` has no"
        " rhythm to go by",
        mend="Nothing is lost; set `interval:` for the feed if two hours are too many or too few. The raw"
        " dates stand in `pub_date_raw` of its items.",
        verb=("has", "have"),
    )


def judge_given_up(found: Concerned) -> Verdict:
    """Of the feeds whose images cannot be had."""
    days = GIVEN_UP_WITHIN.days
    return _listing(
        found,
        right=f"No feed lost {MANY_GIVEN_UP} images or more within {days} days.",
        wrong=f"lost {MANY_GIVEN_UP} images or more within {days} days, each after three attempts",
        mend="The table has an example of each. Where the host refuses everybody but its own pages, set"
        " `images: false` for the feed.",
        verb=("has", "have"),
    )


def judge_waiting_images(found: Concerned, *, now: datetime) -> Verdict:
    """Of the hosts with images that have waited for long."""
    lag = _lag(found, now)
    images = sum(int(row["images"]) for row in found.rows)
    many = f"{'At least ' if found.count > len(found.rows) else ''}{images:,} images"
    figures = {"hosts": found.count, "images": images, "lag_seconds": round(lag.total_seconds())}
    if not found.count:
        return Verdict(severity=None, sentence="Images are downloaded when they are due.", figures=figures)
    return Verdict(
        severity="error" if lag >= IMAGES_OVERDUE_LONG else "warning",
        sentence=(
            f"{many} of {_count(found.count, 'host', 'hosts')} have been due for more than"
            f" {_span(IMAGES_OVERDUE)}, the longest for {_span(lag)}. Are the sensor"
            " `download_images_when_waiting` and the schedule `retry_images` on? Where downloads run all the"
            " time, raise RSS_IMAGE_CONCURRENCY or RSS_IMAGES_PER_HOST."
        ),
        figures=figures,
        rows=found.rows,
    )


def judge_backups(loss: BackupLoss) -> Verdict:
    """Of the feeds that changed last: whether each has its newest backup."""
    figures = {
        "feeds_looked_at": loss.looked_at,
        "without_newest": len(loss.gone),
        "without_any": len(loss.never),
        "items_at_risk": loss.items,
    }
    rows = [{"feed": id, "backups": "the newest is gone"} for id in loss.gone]
    rows += [{"feed": id, "backups": "none"} for id in loss.never]
    if not rows:
        sentence = f"Of the {loss.looked_at} feeds that changed last, each has its newest backup."
        return Verdict(severity=None, sentence=sentence, figures=figures)
    return Verdict(
        severity="error",
        sentence=(
            f"{_feeds(len(rows), 'lacks its', 'lack their')} newest backup: should the database be lost, up"
            f" to {loss.items:,} items are. Look for who deletes objects under backups/: a lifecycle rule"
            " that is too short? The next new document of each is backed up again."
        ),
        figures=figures,
        rows=rows,
    )


def judge_room(checks: Sequence[Check], *, bytes_: int | None) -> Verdict:
    """Doctor's judgments of the database's size and of the disk that something lies on: the worst of them."""
    severities: dict[str, Severity | None] = {"ok": None, "warning": "warning", "failure": "error"}
    worst = max(checks, key=lambda check: list(severities).index(check.state))
    return Verdict(
        severity=severities[worst.state],
        sentence=f"{worst.found}. {worst.mend}".rstrip(),
        figures={} if bytes_ is None else {"bytes": bytes_},
    )


def _listing(found: Concerned, *, right: str, wrong: str, mend: str, verb: tuple[str, str]) -> Verdict:
    figures = {"feeds": found.count}
    if not found.count:
        return Verdict(severity=None, sentence=right, figures=figures)
    sentence = f"{_feeds(found.count, *verb)} {wrong}. {mend}"
    return Verdict(severity="warning", sentence=sentence, figures=figures, rows=found.rows)


def _lag(found: Concerned, now: datetime) -> timedelta:
    oldest = from_instant(found.rows[0]["due_since"]) if found.rows else None
    return timedelta() if oldest is None else max(timedelta(), now - oldest)


def _feeds(count: int, one: str, several: str) -> str:
    return f"{_count(count, 'feed', 'feeds')} {one if count == 1 else several}"


def _count(count: int, one: str, several: str) -> str:
    return f"{count:,} {one if count == 1 else several}"


def _span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    if minutes < 120:
        return _count(minutes, "minute", "minutes")
    hours = round(minutes / 60)
    return _count(hours, "hour", "hours") if hours < 48 else _count(round(hours / 24), "day", "days")
