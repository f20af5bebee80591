"""The statements by which features note that what they made of a feed's items is stale, such as documents of
topics, for the batch of whatever changes what these show; or make it again, as subscriptions change.

There is one for each feature that has a `stale`, so mostly one, and none without such a feature.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from rss_pipeline.features import FEATURES
from rss_pipeline.storage.database import Statement, Value
from rss_pipeline.storage.sql import compact


@cache
def _statements() -> tuple[Statement, ...]:
    return tuple(feature.stale.load() for feature in FEATURES if feature.stale is not None)


def mark_stale(feed_ids: str) -> list[Statement]:
    """Note a change of these feeds, a JSON list of their ids."""
    return mark_stale_of("SELECT value FROM json_each(?)", [feed_ids])


def mark_stale_of(feeds: str, params: Sequence[Value]) -> list[Statement]:
    """Note a change of the feeds that this query names."""
    return [
        replace(each, sql=each.sql.format(feeds=f"IN ({feeds})"), params=params) for each in _statements()
    ]


def mark_items_stale(ids: Sequence[str]) -> list[Statement]:
    """Note that items are shown in another way."""
    among = "SELECT i.feed_id FROM items AS i WHERE i.id IN (SELECT value FROM json_each(?))"
    return mark_stale_of(among, [compact(list(ids))])


def mark_stale_if(
    feed_id: str, condition: str, params: Sequence[Value], *, before: str = "", first: Sequence[Value] = ()
) -> list[Statement]:
    """Note a change of this feed where a condition holds, which is not looked at for a feed in no topic.

    `before` is a WITH clause for the condition, with its own parameters `first`.
    """
    return [
        replace(
            each,
            sql=f"{before} {each.sql.format(feeds='= ?')} AND {condition}",
            params=[*first, feed_id, *params],
            planned_once=True,
        )
        for each in _statements()
    ]


def follow_subscriptions(feed_ids: Sequence[str], user_id: str | None = None) -> list[Statement]:
    """Statements behind those by which a user, or with None several users, subscribe to these feeds or leave
    them."""
    return [
        statement
        for feature in FEATURES
        if feature.follow_subscriptions is not None
        for statement in feature.follow_subscriptions.load()(feed_ids, user_id)
    ]
