"""A story as one user sees it: its items in the user's own feeds, and why they stand together.

The reasons are those of the user's items alone: where the one that decided is in a feed of others, two of the
user's are compared once more.
"""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from rss_pipeline.features.stories import sql
from rss_pipeline.features.stories.reading import in_own_story, own_story
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.feeds.subscribed import shown_url

_WORDS = {
    "link": "A copy: it has the same link as",
    "text": "A copy: it has the same text as",
    "retitled": "A copy under another title of",
    "event": "The same event as",
    "operator": "Put here by the operator of this reader.",
}


class _Row(NamedTuple):
    id: str
    feed_id: str
    feed_title: str | None
    feed_url: str
    title: str | None
    link: str | None
    published: str
    arrived: int
    evidence: str | None
    is_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason for which an item stands in a story."""

    kind: str
    """`first`, `link`, `text`, `retitled`, `event`, `operator`; `chosen` where the user said so."""
    nearest: str | None = None
    """The item of the user that it is most like."""
    names: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenItem:
    """An item of a story in a feed of the user's."""

    id: str
    feed_id: str
    feed_title: str | None
    feed_url: str
    title: str | None
    link: str | None
    published: str
    is_read: bool
    reason: Reason
    why: str
    """The reason as a sentence."""


def story_of(caller: Caller, item_id: str) -> list[SeenItem]:
    """The items that stand together with this one, and the item itself, the leading one first; empty where it
    is no item of the user's feeds."""
    user_id = caller.user_id
    [found] = caller.read(_members(user_id, item_id))
    rows = list(map(_Row._make, found.columns(*_Row._fields)))
    seen, reasons = {row.id: row for row in rows}, dict[str, Reason]()
    for row in sorted(rows, key=lambda each: each.arrived):
        known: dict[str, Any] = json.loads(row.evidence or "{}")
        earlier = list(reasons)
        if known.get("nearest") in seen or known.get("kind") == "operator":
            reasons[row.id] = _reason(known)
        elif not earlier:
            reasons[row.id] = Reason(kind="first")
        else:
            reasons[row.id] = _compared(caller, row.id, earlier[-1])
    return [
        SeenItem(
            id=row.id,
            feed_id=row.feed_id,
            feed_title=row.feed_title,
            feed_url=shown_url(row.feed_url),
            title=row.title,
            link=row.link,
            published=row.published,
            is_read=bool(row.is_read),
            reason=reasons[row.id],
            why=_sentence(reasons[row.id], seen),
        )
        for row in rows
    ]


def _members(user_id: str, item_id: str) -> Statement:
    return Statement(
        f"""WITH own AS MATERIALIZED (
          SELECT i.id, coalesce({own_story("m", "?")}, i.id) AS story FROM items AS i
          CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
          LEFT JOIN story_members AS m ON m.item_id = i.id WHERE i.id = ?),
        together AS MATERIALIZED (
          SELECT own.id FROM own
          UNION SELECT o.item_id FROM own
          CROSS JOIN story_members AS o ON {in_own_story("o", "own.story", "?")})
        SELECT i.id, i.feed_id, coalesce(s.title, f.title) AS feed_title, f.url AS feed_url, i.title, i.link,
          i.pub_date AS published, i.arrived, o.evidence,
          coalesce(t.is_read, CAST(i.arrived <= s.read_up_to AS INTEGER)) AS is_read
        FROM together CROSS JOIN items AS i ON i.id = together.id
        CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        CROSS JOIN feeds AS f ON f.id = i.feed_id
        LEFT JOIN story_members AS o ON o.item_id = i.id
        LEFT JOIN item_states AS t
          ON t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived
        ORDER BY coalesce(o.lead, i.arrived)""",
        [user_id, user_id, item_id, user_id, user_id, user_id],
        name="read a story of a user",
    )


def _reason(known: dict[str, Any]) -> Reason:
    names, numbers, terms = (tuple(known.get(name, ())) for name in ("names", "numbers", "terms"))
    return Reason(kind=known["kind"], nearest=known.get("nearest"), names=names, numbers=numbers, terms=terms)


def _compared(caller: Caller, id: str, other: str) -> Reason:
    """The reason between two items of the user: nothing of a third one is in it."""
    from rss_pipeline.features.stories.window import why

    entries = sql.entries(caller.database, [id, other])
    if len(entries) < 2:
        return Reason(kind="event", nearest=other)
    found = why(entries[id], entries[other])
    return Reason(kind=found.kind, nearest=other, names=found.names, numbers=found.numbers, terms=found.terms)


def _sentence(reason: Reason, seen: dict[str, _Row]) -> str:
    if reason.kind == "first":
        return "The first that came in."
    words = _WORDS.get(reason.kind, _WORDS["event"])
    if reason.nearest is None:
        return words
    row = seen[reason.nearest]
    shared = ", ".join((*reason.names, *reason.numbers)) or ", ".join(reason.terms)
    by = f" Both have: {shared}." if shared else ""
    return f"{words} that of {row.feed_title or shown_url(row.feed_url)}.{by}"
