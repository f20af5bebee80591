"""The health checks as data: name, description, when each is evaluated for alerts, and how.

One list for the asset checks of the UI (orchestration/checks.py), `doctor`, the metrics and the alerts, so
that none of them misses an error of another. The verdicts are in verdicts.py and fleet_verdicts.py.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health import verdicts
from rss_pipeline.pipeline.health.findings import Check, check_d1_size, check_postgres_size, judge_disk
from rss_pipeline.pipeline.health.fleet_verdicts import TAKEN_OVER, judge_workers, what_to_add
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.fleet.machines import Fleet
from rss_pipeline.storage.fleet.workers import fleet
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.reports import health as tables

BACKUPS_LOOKED_AT = 25
"""The number of feeds with a look for their newest backup at each check: one request for each."""
IMAGES_LOOKED_AT = 20
"""The number of images that wait, of the longest due and of the last ones, at which each check looks where
reads are paid by the row."""
OFTEN = timedelta()
SELDOM = timedelta(minutes=75)
"""For a check that reads more than an index entry: the job `check_health` evaluates it each hour, and whoever
finds that it did not, does so instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The place and the time of an evaluation."""

    database: Database
    objects: Callable[[], ObjectStore]
    settings: Settings
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheck:
    """A check, and the way to evaluate it."""

    name: str
    description: str
    judge: Callable[[Look], Check]
    asset: Literal["feeds", "images"] = "feeds"
    kind: str = "sql"
    """The kind of its evaluation, as the UI shows it."""
    every: timedelta = SELDOM
    """The age at which a result is too old for alerts."""
    only_warns: bool = False
    """True if its result is never an error."""
    in_doctor: str | None = None
    """`doctor`'s name of it; None if it is never an error, or `doctor` has a form of its own."""


def health_checks(settings: Settings) -> tuple[HealthCheck, ...]:
    """All checks of an installation, in the order of the UI."""
    return tuple(check for check in _CHECKS if check.name != "workers_alive" or settings.fleet is not None)


def evaluate(check: HealthCheck, look: Look) -> Check:
    """The result; a check that cannot be evaluated has failed."""
    try:
        return check.judge(look)
    except (RssPipelineError, OSError) as error:
        return Check(check.name, "failure", str(error), "See the message; the other checks went on.")


def _judge_overdue(look: Look) -> Check:
    found = tables.overdue(look.database, since=look.now - verdicts.OVERDUE)
    advice = None
    if look.settings.fleet is not None and found.count:
        advice = what_to_add(fleet(look.database), shards=look.settings.shards)
    return verdicts.judge_overdue(found, now=look.now, advice=advice)


def check_machines(database: Database, machines: Fleet, settings: Settings, *, now: datetime) -> Check:
    """The machines of a fleet, what waits since one died, and the connections that all of them need."""
    waiting = 0
    if len(machines.living_workers) < len(machines.workers):
        waiting = tables.overdue(database, since=now - TAKEN_OVER).count
    connections = None if settings.postgres is None else probes.most_connections(database)
    return judge_workers(machines, waiting=waiting, connections=connections)


def _judge_backups(look: Look) -> Check:
    return verdicts.judge_backups(
        diagnostics.backup_loss(look.database, look.objects(), limit=BACKUPS_LOOKED_AT)
    )


def _judge_room(look: Look) -> Check:
    settings = look.settings
    checks = []
    if settings.d1 is not None:
        size = probes.query_proxy(settings.d1, ca_file=settings.ca_file).size_bytes
        checks.append(check_d1_size(size))
    elif settings.postgres is not None:
        size = probes.query_postgres(settings.postgres).size_bytes
        checks.append(check_postgres_size(size))
    else:
        size = settings.database_path.stat().st_size if settings.database_path.exists() else None
    if settings.has_embedded_database or settings.s3 is None:
        checks.append(judge_disk(settings.home, shutil.disk_usage(settings.home).free))
    return verdicts.judge_room(checks, bytes_=size)


def _judge_busiest(look: Look) -> Check:
    settings = look.settings
    found = tables.busiest(
        look.database,
        # Just after midnight no feed has taken anything yet.
        since=f"{look.now - timedelta(days=1):%Y-%m-%d}",
        items=settings.items_per_day,
        image_bytes=settings.image_mb_per_day * 1_000_000,
        backup_bytes=settings.most_backup_bytes,
    )
    return verdicts.judge_busiest(found)


def _judge_given_up(look: Look) -> Check:
    return verdicts.judge_given_up(
        tables.given_up_images(
            look.database, since=look.now - verdicts.GIVEN_UP_WITHIN, least=verdicts.MANY_GIVEN_UP
        )
    )


def _judge_waiting_images(look: Look) -> Check:
    most = IMAGES_LOOKED_AT if look.settings.pays_by_row else None
    found = tables.waiting_images(look.database, since=look.now - verdicts.IMAGES_OVERDUE, most=most)
    return verdicts.judge_waiting_images(found, now=look.now)


_CHECKS = (
    HealthCheck(
        name="no_feed_overdue",
        description=("No feed has waited for its visit longer than 30 minutes; an error after six hours."),
        judge=_judge_overdue,
        every=OFTEN,
        in_doctor="overdue feeds",
    ),
    HealthCheck(
        name="feeds_answer",
        description=(
            "No feed has failed three times in a row, or before it was ever read. The table has the kind and"
            " the reason of each failure, since when, and the next visit."
        ),
        judge=lambda look: verdicts.judge_not_answering(tables.not_answering(look.database)),
        only_warns=True,
    ),
    HealthCheck(
        name="feeds_not_gone",
        description="No publisher has answered that a feed is gone for good (HTTP status 410).",
        judge=lambda look: verdicts.judge_gone(tables.gone(look.database)),
        only_warns=True,
    ),
    HealthCheck(
        name="feeds_not_moved",
        description=(
            "Every feed is at its address in feeds.yaml; no permanent redirect leads to another address."
        ),
        judge=lambda look: verdicts.judge_moved(
            tables.moved(look.database), tables.redirecting(look.database)
        ),
        only_warns=True,
    ),
    HealthCheck(
        name="no_gaps",
        description=(
            "In the last week, each new document of a feed had an item in common with the one before, so none"
            " was missed."
        ),
        judge=lambda look: verdicts.judge_gaps(
            tables.with_gaps(look.database, since=look.now - verdicts.GAPS_WITHIN)
        ),
        only_warns=True,
    ),
    HealthCheck(
        name="guids_stable",
        description=(
            "Items keep their guids, and no two share one. If a server puts changing tokens into guids, known"
            " items may come again as new ones; if it gives two items one guid or link, the second is left"
            " out."
        ),
        judge=lambda look: verdicts.judge_unstable(tables.unstable(look.database)),
        only_warns=True,
    ),
    HealthCheck(
        name="dates_readable",
        description=("Every feed with items has dates in them; without a date, an item gets its fetch time."),
        judge=lambda look: verdicts.judge_undated(tables.undated(look.database)),
        only_warns=True,
    ),
    HealthCheck(
        name="workers_alive",
        description=(
            "The main machine and at least one worker were seen within a minute, no worker has died within"
            " the last day, and all have the version and the time of the main machine."
        ),
        judge=lambda look: check_machines(look.database, fleet(look.database), look.settings, now=look.now),
        every=OFTEN,
        in_doctor="machines",
    ),
    HealthCheck(
        name="backups_there",
        description=(
            f"The {BACKUPS_LOOKED_AT} feeds that changed last have their newest backup in the object store; a"
            " restore needs it."
        ),
        judge=_judge_backups,
        kind="file",
    ),
    HealthCheck(
        name="database_has_room",
        description=(
            "The database is below 80 % of D1's limit. If database or objects are on this machine, their disk"
            " has more than 1 GB left; an error below 100 MB."
        ),
        judge=_judge_room,
        kind="python",
    ),
    HealthCheck(
        name="no_feed_fills_the_disk",
        description=(
            "No feed reached its most new items, bytes of images or bytes of backups of a day. The table has"
            " those that took most."
        ),
        judge=_judge_busiest,
        in_doctor="room of feeds",
        only_warns=True,
    ),
    HealthCheck(
        name="images_had",
        description="In the last week, no feed lost ten images or more, each after three attempts.",
        judge=_judge_given_up,
        asset="images",
        only_warns=True,
    ),
    HealthCheck(
        name="no_image_backlog",
        description="No image has waited for its download longer than six hours; an error after two days.",
        judge=_judge_waiting_images,
        asset="images",
        in_doctor="overdue images",
    ),
)


def checks_of_doctor(look: Look) -> Iterator[Check]:
    """The checks that `doctor` takes from this list, under its own names."""
    for check in health_checks(look.settings):
        if check.in_doctor is not None:
            yield replace(evaluate(check, look), name=check.in_doctor)
