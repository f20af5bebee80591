"""The feeds of feeds.yaml as subscriptions of users: for who collects for themselves.

Such a subscription is recorded as one that came with the file: it goes when the feed is taken out, unless the
user has made it an own one.
"""

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.settings import Settings
from rss_pipeline.storage.accounts import users
from rss_pipeline.storage.database import Database, Result
from rss_pipeline.storage.subscriptions.listing import subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Wanted,
    count_listed,
    joinable_listed,
    joinable_named,
    subscribe,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The numbers of feeds of feeds.yaml that a new user does not get."""

    closed: int
    """Users may not subscribe to them until it says `shared: true`."""
    too_many: int
    """More than `most`."""
    most: int = MAX_SUBSCRIPTIONS
    """The most subscriptions of a user."""


def read_list(database: Database, settings: Settings, *, now: datetime) -> None:
    """Bring the database up to date with feeds.yaml. A file that cannot be used changes nothing: then the
    feeds are those of the last poll."""
    try:
        sync_registry(database, settings, now=now, environ=os.environ)
    except RegistryError as error:
        logger.warning("%s\nThe feeds are those that the last poll has read.", error)


def subscribe_listed(
    database: Database, user_id: str, *, at: datetime, only: Collection[str] | None = None
) -> int:
    """Subscribe a user to the open feeds of feeds.yaml, or to those of these ids, in their folders; return
    how many of them the user subscribes to now.

    `left_out` has the number of the others.
    """
    [found] = database.batch([joinable_listed()])
    wanted = [each for each in wanted_listed(found) if only is None or each.feed_id in only]
    _subscribe(database, user_id, wanted, at=at)
    return len(wanted)


def subscribe_named(
    database: Database, user_id: str, feed_ids: Sequence[str], *, at: datetime
) -> tuple[int, int]:
    """Subscribe a user to these feeds by choice; return how many of them any user may subscribe to, and how
    many subscriptions are new."""
    [found] = database.batch([joinable_named(feed_ids)])
    wanted = [Wanted(feed_id=row["id"], folder=row["folder"]) for row in found.rows]
    return len(wanted), _subscribe(database, user_id, wanted, at=at)


def only_user(database: Database, *, at: datetime) -> tuple[str, str] | None:
    """Id and name of the user of an installation that has just one."""
    found = users.accounts(database, now=at)
    return (found[0].id, found[0].name) if len(found) == 1 else None


def left_out(database: Database) -> LeftOut:
    """The feeds of feeds.yaml that `subscribe_listed` leaves out."""
    [found] = database.batch([count_listed()])
    listed, joinable = int(found.rows[0]["listed"]), int(found.rows[0]["joinable"])
    return LeftOut(closed=listed - joinable, too_many=max(0, joinable - MAX_SUBSCRIPTIONS))


def wanted_listed(listed: Result) -> list[Wanted]:
    """The feeds that `joinable_listed` found, as they are subscribed."""
    return [Wanted(feed_id=row["id"], folder=row["folder"], origin="list") for row in listed.rows]


def _subscribe(database: Database, user_id: str, wanted: Sequence[Wanted], *, at: datetime) -> int:
    if not wanted:
        return 0
    count = subscription_count(user_id)
    before, *_, after = database.batch(
        [count, *subscribe(user_id, wanted, at=at), users.note_change(user_id), count]
    )
    return int(after.rows[0]["n"]) - int(before.rows[0]["n"])
