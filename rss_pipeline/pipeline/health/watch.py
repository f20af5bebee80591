"""A look at everything that may need an alert, and the thread that looks while a process runs.

The daemon looks by a sensor (orchestration/alerts.py). The reader and the workers look as well, because a
daemon that has ended cannot say so. They share the cursor of alerts.py: each thing is reported once.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health.alerts import (
    OVERLAP,
    AlertCursor,
    Alerted,
    AlertFact,
    CursorStore,
    OwnCursor,
    StoredCursor,
    alert,
)
from rss_pipeline.pipeline.health.evaluation import OFTEN, HealthCheck, Look, evaluate, health_checks
from rss_pipeline.pipeline.health.findings import Check
from rss_pipeline.pipeline.health.webhook import Fact
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.reports.health import just_prominent

LOOK_SECONDS = 60.0
LOOK_SECONDS_PAID = 600.0
"""The seconds between two looks where each request and each row is paid for."""

_PASSING = frozenset({"no_feed_overdue", "workers_alive"})
"""Checks of what may be over in a moment: a poll begins, a machine is back."""

_logger = logging.getLogger(__name__)


def seconds_between_looks(settings: Settings) -> float:
    """The time from one look to the next."""
    return LOOK_SECONDS_PAID if settings.pays_by_row else LOOK_SECONDS


def look(database: Database, settings: Settings, *, now: datetime) -> Alerted:
    """Evaluate the checks that are due, look for feeds with a tenth failure, and alert.

    Raises:
        InfrastructureError: the database cannot be used.
    """
    store = StoredCursor(database)
    cursor = AlertCursor.read(store.read(), now)
    place = Look(database=database, objects=lambda: open_objects(settings), settings=settings, now=now)
    due = [
        check
        for check in health_checks(settings)
        if not check.only_warns and _age(cursor, check, now) >= check.every
    ]
    feeds = [_feed_fact(row) for row in just_prominent(database, since=cursor.since - OVERLAP)]
    return report_checks(place, [(check, evaluate(check, place)) for check in due], more=feeds)


def report_checks(
    place: Look, found: Sequence[tuple[HealthCheck, Check]], *, more: Sequence[AlertFact] = ()
) -> Alerted:
    """Send an alert about the checks that failed, and `more`. Nothing where no webhook is set."""
    found = [(health, check) for health, check in found if not health.only_warns]
    if place.settings.alert_webhook is None or not (found or more):
        return Alerted()
    return alert(
        place.settings,
        StoredCursor(place.database),
        [*(check_fact(check) for _, check in found if check.state == "failure"), *more],
        now=place.now,
        well=[check_id(check.name) for _, check in found if check.state != "failure"],
        looked_at=[health.name for health, _ in found if health.every != OFTEN],
    )


def report_unusable(settings: Settings, store: CursorStore, error: Exception, *, now: datetime) -> Alerted:
    """Send an alert about stores that have not been usable for a while, by a cursor that is not in them."""
    fact = AlertFact(
        kind="check", key="stores", fields=[("stores", str(error))], changes=instant(now), goes_on=True
    )
    return alert(settings, store, [fact], now=now)


def check_id(name: str) -> str:
    """The id of the fact that a check has failed."""
    return f"check {name}"


def check_fact(check: Check) -> AlertFact:
    """A check that has failed, as a fact. Feeds may wait, and machines be away, for a moment."""
    changes = None
    if check.name in _PASSING:
        changes = str(check.rows[0]["due_since"]) if check.rows and "due_since" in check.rows[0] else ""
    return AlertFact(
        kind="check",
        key=check.name,
        fields=[(check.name, check.sentences)],
        changes=changes,
        goes_on=True,
    )


@contextmanager
def watching(
    settings: Settings,
    *,
    clock: Clock,
    is_ours: Callable[[Database], bool] = lambda _: True,
    seconds: float | None = None,
) -> Iterator[None]:
    """Look again and again in a thread, as long as the block. Nothing where no webhook is set.

    `is_ours` is asked before each look: False leaves it to others.
    """
    if settings.alert_webhook is None:
        yield
        return
    over = threading.Event()
    thread = threading.Thread(
        target=_watch,
        args=(settings, clock, is_ours, over, seconds or seconds_between_looks(settings)),
        name="alerts",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        over.set()


def _watch(
    settings: Settings,
    clock: Clock,
    is_ours: Callable[[Database], bool],
    over: threading.Event,
    seconds: float,
) -> None:
    own = OwnCursor()
    # The first look is soon, the second confirms what it saw.
    wait = min(seconds, LOOK_SECONDS) / 6
    while not over.wait(wait):
        wait = seconds
        try:
            try:
                with open_database(settings) as database:
                    if is_ours(database):
                        refused = look(database, settings, now=clock()).refused
                        if refused is not None:
                            _logger.warning("%s", refused)
                own = OwnCursor()
            except (RssPipelineError, OSError) as error:
                report_unusable(settings, own, error, now=clock())
        # The process that this thread is beside goes on, whatever is wrong with a check.
        except Exception:
            _logger.exception("no look for alerts")


def _age(cursor: AlertCursor, check: HealthCheck, now: datetime) -> timedelta:
    at = cursor.looked_at.get(check.name)
    return timedelta.max if at is None else now - at


def _feed_fact(row: Row) -> AlertFact:
    return AlertFact(kind="feed", key=f"{row['id']} {row['prominent_at']}", fields=[_feed_field(row)])


def _feed_field(row: Row) -> Fact:
    title = (row["title"] or "").strip() or row["id"]
    # A long URL must not leave the reason out.
    url, reason = row["url"][:200], (row["last_error"] or "no reason is recorded")[:300]
    return title, f"{url} — {reason} (last success: {row['last_success_at'] or 'never'})"
