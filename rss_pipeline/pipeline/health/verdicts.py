"""The health checks of the UI: the meaning of what storage.reports.health found, and how to fix it. Pure.

Each is a `Check` under the name that orchestration.checks shows; `doctor`'s checks are findings.py's.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant
from rss_pipeline.collector.models.feed import NOT_ANSWERING_FAILURES
from rss_pipeline.pipeline.health.findings import Check, State, counted, fix_of_copy
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.diagnostics import BackupLoss
from rss_pipeline.storage.reports.health import FROM_USERS, Concerned

OVERDUE = timedelta(minutes=30)
"""A poll starts within four minutes and takes a few more."""
OVERDUE_LONG = timedelta(hours=6)
IMAGES_OVERDUE = timedelta(hours=6)
IMAGES_OVERDUE_LONG = timedelta(days=2)
GAPS_WITHIN = timedelta(days=7)
GIVEN_UP_WITHIN = timedelta(days=7)
MANY_GIVEN_UP = 10
"""Images of one feed within that time; a few are lost everywhere."""


def judge_overdue(found: Concerned, *, now: datetime, advice: str | None = None) -> Check:
    """Feeds that have been due for longer than a poll takes to start. `advice` is that of a fleet."""
    name = "no_feed_overdue"
    lag = _lag(found, now)
    figures = {"feeds": found.count, "lag_seconds": round(lag.total_seconds())}
    if not found.count:
        return Check(name, "ok", "Every feed is visited when it is due", figures=figures)
    return Check(
        name,
        "failure" if lag >= OVERDUE_LONG else "warning",
        f"{_feeds(found.count, 'has', 'have')} been due for more than {_span(OVERDUE)}, the longest for"
        f" {_span(lag)}",
        advice
        or "Is the sensor `poll_feeds_when_due` on, do its runs fail or wait in the queue? Where polls run"
        " all the time, raise RSS_FETCH_CONCURRENCY or RSS_BATCH_SIZE.",
        figures,
        found.rows,
    )


def judge_not_answering(found: Concerned) -> Check:
    """Feeds that failed again and again, or were never read."""
    return _listing(
        "feeds_answer",
        found,
        right=f"Every feed was read at one of its last {NOT_ANSWERING_FAILURES} visits",
        wrong=f"failed {NOT_ANSWERING_FAILURES} times in a row or more, or before any success",
        fix=_fix(
            found.rows,
            "`reason` below says what can be done. Look for the feed's new address and correct `url` in"
            " feeds.yaml (with `id:` to keep its items), or set `enabled: false`.",
            "Users who brought a feed see the reason on the page of failing feeds, and change its address"
            " there or unsubscribe.",
        )
        + " Each is visited again at `next_visit`, after longer and longer waits of at most a day.",
        verb=("has", "have"),
    )


def judge_gone(found: Concerned) -> Check:
    """Feeds that answer 410 Gone."""
    return _listing(
        "feeds_not_gone",
        found,
        right="No publisher has said that a feed is gone",
        wrong="gone: the publisher answers 410 Gone; each is still visited once a day",
        fix=_fix(
            found.rows,
            "Remove it from feeds.yaml (its items stay until they are past their age), or write its new"
            " address.",
            "Users who brought a feed may unsubscribe.",
        ),
        verb=("is", "are"),
    )


def judge_moved(moved: Concerned, redirecting: Concerned) -> Check:
    """Feeds that have a new address for good, adopted or not."""
    name = "feeds_not_moved"
    figures = {"feeds": moved.count, "redirecting": redirecting.count}
    parts = [
        *([f"{_feeds(moved.count, 'has', 'have')} moved for good"] if moved.count else []),
        *(
            [f"{_feeds(redirecting.count, 'answers', 'answer')} with permanent redirects not adopted so far"]
            if redirecting.count
            else []
        ),
    ]
    if not parts:
        return Check(name, "ok", "Every feed is where feeds.yaml says", figures=figures)
    return Check(
        name,
        "warning",
        "; ".join(parts),
        _fix(
            [*moved.rows, *redirecting.rows],
            "Write the new address (`address` below) as `url` into feeds.yaml, with `id` as it is to keep the"
            " feed's items.",
            "Of a feed that users brought nothing is lost as it is.",
        ),
        figures,
        [*moved.rows, *redirecting.rows],
    )


def judge_gaps(found: Concerned) -> Check:
    """Feeds that published faster than they were visited."""
    return _listing(
        "no_gaps",
        found,
        right=f"No feed had a gap within {GAPS_WITHIN.days} days",
        wrong="a document without any item of the one before: items were probably missed",
        fix="`auto` comes sooner by itself for some weeks; shorten an `interval` of feeds.yaml.",
        verb=("had", "had"),
    )


def judge_unstable(found: Concerned) -> Check:
    """Feeds with guids that change, or that several items of a document share."""
    return _listing(
        "guids_stable",
        found,
        right="Items keep their guids, and no two share one",
        wrong="unstable or shared guids: known items may come again as new ones, or new ones are left out",
        fix="Set `key: link` or `key: title+date` for the feed in feeds.yaml; `warning` below says which.",
        verb=("has", "have"),
    )


def judge_undated(found: Concerned) -> Check:
    """Feeds without a date that can be read."""
    return _listing(
        "dates_readable",
        found,
        right="Every feed with items has dates that can be read",
        wrong="no date that can be read in its newest document: the fetch time is used, and `auto` has no"
        " rhythm to go by",
        fix="Nothing is lost; set `interval:` for the feed if two hours are too many or too few. The raw"
        " dates are in `pub_date_raw` of its items.",
        verb=("has", "have"),
    )


def judge_given_up(found: Concerned) -> Check:
    """Feeds with images that cannot be downloaded."""
    days = GIVEN_UP_WITHIN.days
    return _listing(
        "images_had",
        found,
        right=f"No feed lost {MANY_GIVEN_UP} images or more within {days} days",
        wrong=f"lost {MANY_GIVEN_UP} images or more within {days} days, each after three attempts",
        fix="The table has an example of each. Where the host serves images to its own pages only, set"
        " `images: false` for the feed.",
        verb=("has", "have"),
    )


def judge_waiting_images(found: Concerned, *, now: datetime) -> Check:
    """Hosts with images that have waited for long."""
    name = "no_image_backlog"
    lag = _lag(found, now)
    images = sum(int(row["images"]) for row in found.rows)
    many = f"{'At least ' if found.count > len(found.rows) else ''}{images:,} images"
    figures = {"hosts": found.count, "images": images, "lag_seconds": round(lag.total_seconds())}
    if not found.count:
        return Check(name, "ok", "Images are downloaded when they are due", figures=figures)
    return Check(
        name,
        "failure" if lag >= IMAGES_OVERDUE_LONG else "warning",
        f"{many} of {counted(found.count, 'host', 'hosts')} have been due for more than"
        f" {_span(IMAGES_OVERDUE)}, the longest for {_span(lag)}",
        "Are the sensor `download_images_when_waiting` and the schedule `retry_images` on? Where downloads"
        " run all the time, raise RSS_IMAGE_CONCURRENCY or RSS_IMAGES_PER_HOST.",
        figures,
        found.rows,
    )


def judge_backups(loss: BackupLoss) -> Check:
    """The newest backups of the feeds that changed last."""
    name = "backups_there"
    figures = {
        "feeds_looked_at": loss.looked_at,
        "without_newest": len(loss.gone),
        "without_any": len(loss.never),
        "items_at_risk": loss.items,
    }
    rows = [{"feed": id, "backups": "the newest is gone"} for id in loss.gone]
    rows += [{"feed": id, "backups": "none"} for id in loss.never]
    if not rows:
        found = f"Each of the {loss.looked_at} feeds that changed last has its newest backup"
        return Check(name, "ok", found, figures=figures)
    return Check(
        name,
        "failure",
        f"{_feeds(len(rows), 'lacks its', 'lack their')} newest backup: if the database is lost, up to"
        f" {loss.items:,} items are lost too",
        fix_of_copy(None)
        if loss.is_store_empty
        else "Look for what deletes objects under backups/: a lifecycle rule that is too short? The next new"
        " document of each feed is backed up again.",
        figures,
        rows,
    )


def judge_room(checks: Sequence[Check], *, bytes_: int | None) -> Check:
    """The worst of doctor's checks of the database's size and of the disk."""
    states: list[State] = ["ok", "warning", "failure"]
    worst = max(checks, key=lambda check: states.index(check.state))
    figures = {} if bytes_ is None else {"bytes": bytes_}
    return replace(worst, name="database_has_room", figures=figures)


_NAMED_BUSIEST = 6


def _taken(row: Row) -> str:
    parts = [f"{int(row['items']):,} items"] if row["items"] else []
    parts += [f"{row[f'{kind}_mb']:,} MB of {kind}s" for kind in ("image", "backup") if row[f"{kind}_mb"]]
    return f"{row['feed']} ({', '.join(parts) or 'little'})"


def judge_busiest(found: Concerned) -> Check:
    """The feeds that took most room today; a warning where one is at a limit. The rows come either way."""
    name, figures = "no_feed_fills_the_disk", {"feeds": int(found.count)}
    most = "; ".join(map(_taken, found.rows[:_NAMED_BUSIEST]))
    most = f"; most in a day: {most}" if most else ""
    if not found.count:
        sentence = f"No feed reached its most new items or bytes of a day{most}"
        return Check(name, "ok", sentence, figures=figures, rows=found.rows)
    return Check(
        name,
        "warning",
        f"{_feeds(int(found.count), 'has', 'have')} reached the most new items or bytes of a day{most}",
        "Nothing that was fetched is lost. If the feed is sound, raise RSS_ITEMS_PER_DAY,"
        " RSS_IMAGE_MB_PER_DAY or RSS_BACKUP_MB_PER_DAY; else set `images: false`, remove it from feeds.yaml,"
        " or ask its users to unsubscribe.",
        figures,
        found.rows,
    )


def _listing(
    name: str, found: Concerned, *, right: str, wrong: str, fix: str, verb: tuple[str, str]
) -> Check:
    figures = {"feeds": found.count}
    if not found.count:
        return Check(name, "ok", right, figures=figures)
    return Check(name, "warning", f"{_feeds(found.count, *verb)} {wrong}", fix, figures, found.rows)


def _fix(rows: Sequence[Row], ours: str, of_users: str) -> str:
    """The advice for feeds of feeds.yaml, for those that users brought, or both."""
    brought = sum(row["brought_by"] == FROM_USERS for row in rows)
    return " ".join([*([ours] if brought < len(rows) else []), *([of_users] if brought else [])])


def _lag(found: Concerned, now: datetime) -> timedelta:
    oldest = from_instant(found.rows[0]["due_since"]) if found.rows else None
    return timedelta() if oldest is None else max(timedelta(), now - oldest)


def _feeds(count: int, one: str, several: str) -> str:
    return f"{counted(count, 'feed', 'feeds')} {one if count == 1 else several}"


def _span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    if minutes < 120:
        return counted(minutes, "minute", "minutes")
    hours = round(minutes / 60)
    return counted(hours, "hour", "hours") if hours < 48 else counted(round(hours / 24), "day", "days")
