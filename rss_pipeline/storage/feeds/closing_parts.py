"""Whether a stored document had any item in common with the one before, as its closing statement finds out.

Which documents can show it, and what follows for the schedule, is decided in collector.gaps.
"""

from dataclasses import dataclass

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import Feed, FeedAddress, GapHistory, NextVisit
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.feed_row import ADDRESS_COLUMNS, address_row
from rss_pipeline.storage.sql import compact

SENTENCE = "no item in common with the document before: items were probably missed between the two"


@dataclass(frozen=True, slots=True, kw_only=True)
class IfGap:
    """What is written where all items of a document turn out to be new, and items were so probably missed."""

    next: NextVisit
    gaps: GapHistory


def gap_row(if_gap: IfGap | None) -> Row:
    """The fields that `GAP_FOUND` and `SET_GAP` read; None where it shows nothing that all items are new."""
    if if_gap is None:
        return {"may_be_gap": 0}
    return {
        "may_be_gap": 1,
        "gap_next": instant(if_gap.next.at),
        "gap_reason": if_gap.next.reason,
        "halvings": if_gap.gaps.halvings,
        "halved_at": None if if_gap.gaps.halved_at is None else instant(if_gap.gaps.halved_at),
    }


_V = "json_extract(v.value, '$.{}')"
_OF_DOCUMENT = "(SELECT value FROM json_each(listed.ids))"
# Of the feed's latest items before this document only: a title may well come again after a year.
_EARLIER = f"""SELECT title, link FROM items WHERE feed_id = {_V.format("id")} AND id NOT IN {_OF_DOCUMENT}
  ORDER BY created_at DESC LIMIT 1000"""
_OTHERWISE_KNOWN = f"""(SELECT count(*) FROM items WHERE id IN {_OF_DOCUMENT}
  AND (title IN (SELECT title FROM ({_EARLIER})) OR link IN (SELECT link FROM ({_EARLIER}))))"""
GAP_FOUND = f"""SELECT CASE WHEN {_V.format("may_be_gap")} AND fresh.n = {_V.format("listed")}
  THEN 2 * {_OTHERWISE_KNOWN} < fresh.n ELSE 0 END FROM listed, fresh, v"""
"""1 or 0, of `listed(ids)`, `fresh(n)` and `v(value)`: all items are new, and fewer than half of them have a
title or a link that is known. Else it is the guids that changed."""

# A feed that is warned of unstable guids shows new ones at each document.
_IS_GAP = "(gap.found AND warning IS NULL)"


def _if_gap(value: str, otherwise: str) -> str:
    return f"CASE WHEN {_IS_GAP} THEN {value} ELSE {otherwise} END"


SET_GAP = f"""next_fetch_at = {_if_gap(_V.format("gap_next"), _V.format("next"))},
  planned_at = {_if_gap(_V.format("gap_next"), _V.format("next"))},
  schedule_reason = {_if_gap(_V.format("gap_reason"), _V.format("reason"))},
  schedule_kind = {_V.format("next_kind")},
  gaps = gaps + {_IS_GAP},
  last_gap_at = {_if_gap("clock.now", "last_gap_at")},
  gap_halvings = {_if_gap(_V.format("halvings"), "gap_halvings")},
  halved_at = {_if_gap(_V.format("halved_at"), "halved_at")}"""
"""Assignments to columns of feeds, of `gap(found)`, `clock(now)` and the fields of `gap_row`."""
GAP_FACT = _if_gap(f"'{compact({'gap': SENTENCE})}'", "'{}'")
"""What a gap adds to the metadata of the event, as JSON."""


# Where a sync gave the feed another URL, or a password, while the visit went on, what it found is void.
_SAME_ENTRY = f"(url = {_V.format('url')} AND needs_access = {_V.format('needs_access')})"


SET_ADDRESS = ", ".join(
    f"{column} = CASE WHEN {_SAME_ENTRY} THEN {_V.format(column)} ELSE {column} END"
    for column in ADDRESS_COLUMNS
)
"""Assignments to columns of feeds, from the JSON `v.value` with the fields of `set_address_row`."""


def set_address_row(feed: Feed, found: FeedAddress | None) -> Row:
    """The address from now on (None: unchanged), and the registry entry that it follows from."""
    return {
        **address_row(found or feed.address),
        "url": feed.url,
        "needs_access": int(feed.needs_access),
    }
