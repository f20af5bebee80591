"""The feeds of feeds.yaml as subscriptions of a new user: for who collects for themselves."""

from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.storage.database import Database, Result
from rss_pipeline.storage.subscriptions.subscriptions import (
    MAX_SUBSCRIPTIONS,
    Wanted,
    count_listed,
    joinable_listed,
    subscribe,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The numbers of feeds of feeds.yaml that a new user does not get."""

    closed: int
    """Users may not subscribe to them until it says `shared: true`."""
    too_many: int
    """More than the MAX_SUBSCRIPTIONS of a user."""


def subscribe_listed(database: Database, user_id: str, *, at: datetime) -> int:
    """Subscribe a user to the open feeds of feeds.yaml, in their folders; return their number.

    `left_out` has the number of the others.
    """
    [found] = database.batch([joinable_listed()])
    wanted = wanted_listed(found)
    if wanted:
        database.batch(subscribe(user_id, wanted, at=at))
    return len(wanted)


def left_out(database: Database) -> LeftOut:
    """The feeds of feeds.yaml that `subscribe_listed` leaves out."""
    [found] = database.batch([count_listed()])
    listed, joinable = int(found.rows[0]["listed"]), int(found.rows[0]["joinable"])
    return LeftOut(closed=listed - joinable, too_many=max(0, joinable - MAX_SUBSCRIPTIONS))


def wanted_listed(listed: Result) -> list[Wanted]:
    """The feeds that `joinable_listed` found, as they are subscribed."""
    return [Wanted(feed_id=row["id"], folder=row["folder"]) for row in listed.rows]
