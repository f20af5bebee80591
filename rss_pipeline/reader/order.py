"""The order of a user's feeds: the places that change where one feed moves up or down.

Pure functions of the user's list of feeds.
"""

from collections.abc import Sequence
from typing import Literal

from rss_pipeline.storage.subscriptions.listing import FeedRow

Direction = Literal["up", "down"]


def moved(rows: Sequence[FeedRow], feed_id: str, direction: Direction) -> dict[str, int]:
    """The new places, by feed id, after a feed has changed places with its neighbour in the same folder.

    `rows` are all feeds in the user's order. Where some have the same place, all get new ones. Empty for the
    first feed that moves up, the last one that moves down, and a feed that is not in the list.
    """
    at = next((n for n, row in enumerate(rows) if row.feed_id == feed_id), None)
    if at is None:
        return {}
    ahead = range(at - 1, -1, -1) if direction == "up" else range(at + 1, len(rows))
    other = next((n for n in ahead if rows[n].folder == rows[at].folder), None)
    if other is None:
        return {}
    places = [row.position for row in rows]
    if len(set(places)) < len(places):
        places = list(range(1, len(rows) + 1))
    places[at], places[other] = places[other], places[at]
    return {row.feed_id: place for row, place in zip(rows, places, strict=True) if row.position != place}
