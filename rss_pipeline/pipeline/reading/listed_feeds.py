"""The feeds of feeds.yaml as subscriptions of a new user: for who collects for themselves."""

from datetime import datetime

from rss_pipeline.storage.database import Database, Result
from rss_pipeline.storage.subscriptions.subscriptions import (
    Wanted,
    closed_listed,
    joinable_listed,
    subscribe,
)


def subscribe_listed(database: Database, user_id: str, *, at: datetime) -> int:
    """Subscribe all feeds of feeds.yaml that users may subscribe, in their folders; return their number."""
    [found] = database.batch([joinable_listed()])
    wanted = wanted_listed(found)
    if wanted:
        database.batch(subscribe(user_id, wanted, at=at))
    return len(wanted)


def count_closed(database: Database) -> int:
    """The number of feeds of feeds.yaml that users may not subscribe until it says `shared: true`."""
    [found] = database.batch([closed_listed()])
    return int(found.rows[0]["n"])


def wanted_listed(listed: Result) -> list[Wanted]:
    """The feeds that `joinable_listed` found, as they are subscribed."""
    return [Wanted(feed_id=row["id"], folder=row["folder"]) for row in listed.rows]
