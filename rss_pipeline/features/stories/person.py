"""A story as one user sees it: its items in the user's own feeds, and why they stand together.

The reasons are those of the user's items alone: the first join that the user has. Where that is not the one
of the decision, the two are compared once more.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rss_pipeline.collector.sanitize.text import one_line
from rss_pipeline.features.stories import sql
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.reading import in_own_story, own_story, place
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline.storage.feeds.subscribed import shown_url
from rss_pipeline.storage.items.stories import JOINS, StoredJoin, stored_joins
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.subscriptions.item_query import listed

_ADDS_CHARACTERS = 300
_WORDS = {
    "link": "A copy: it has the same link as",
    "text": "A copy: it has the same text as",
    "retitled": "A copy under another title of",
    "event": "The same event as",
    "reissue": "The same item again, changed: it replaces",
    "operator": "Put here by the operator of this reader.",
    "chosen": "You put it here.",
    "tied": "An item that is no longer here tied it to the others.",
}


class _Row(NamedTuple):
    story: str
    story_of_all: str | None
    """The one where polls and the operator have put it."""
    id: str
    feed_id: str
    feed_title: str | None
    feed_url: str
    title: str | None
    link: str | None
    published: str
    collected: str
    arrived: int
    evidence: str | None
    joins: str | None
    chosen: int
    is_read: int
    leads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason for which an item stands in a story."""

    kind: str
    """`first`, `link`, `text`, `retitled`, `reissue`, `event`, `operator`;
    `chosen` where the user said so; `tied` where what it was joined with is gone."""
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
    collected: str
    arrived: int
    is_read: bool
    leads: bool
    """The user wants items of this feed to lead."""
    reason: Reason
    why: str
    """The reason as a sentence."""
    adds: str = ""
    """A sentence of it that says what no item before it does, by `with_added`; empty for none."""


def story_of(caller: Caller, item_id: str) -> list[SeenItem]:
    """The items that stand together with this one, and the item itself, the leading one first; empty where it
    is no item of the user's feeds."""
    user_id = caller.user_id
    own = f"""SELECT i.id, coalesce({own_story("m", "s.user_id")}, i.id) AS story FROM items AS i
      CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
      LEFT JOIN story_members AS m ON m.item_id = i.id WHERE i.id = ?"""
    [found] = caller.read(_members(user_id, own, [user_id, item_id]))
    return next(iter(_seen(caller, found)), [])


def with_added(caller: Caller, story: Sequence[SeenItem]) -> list[SeenItem]:
    """The same items, with what each one adds to those before it."""
    entries = sql.entries(caller.database, [each.id for each in story])
    known = [each for each in story if each.id in entries]
    adds = added(entries[each.id] for each in known)
    return [
        replace(each, adds=one_line(text, limit=_ADDS_CHARACTERS))
        for each, text in zip(known, adds, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenStories:
    """A page of stories, the one with the newest item first."""

    stories: Sequence[Sequence[SeenItem]]
    next_key: int | None
    """None where this is the last page."""


def stories_of(caller: Caller, *, limit: int, below: int | None = None) -> SeenStories:
    """The stories of the user with newest items below this arrival number."""
    user_id = caller.user_id
    [listed] = caller.read(_newest(user_id, limit=limit + 1, below=below))
    keys = {str(story): int(newest) for story, newest in listed.values}
    page = [*keys][:limit]
    if not page:
        return SeenStories(stories=(), next_key=None)
    own = "SELECT j.value AS story FROM json_each(?) AS j"
    [found] = caller.read(_members(user_id, own, [compact(page)], with_first=False))
    stories = sorted(_seen(caller, found), key=lambda one: max(each.arrived for each in one), reverse=True)
    return SeenStories(stories=stories, next_key=keys[page[-1]] if len(keys) > limit else None)


def _newest(user_id: str, *, limit: int, below: int | None) -> Statement:
    """The stories of two items and more in the user's feeds, and their newest arrival numbers."""
    return Statement(
        f"""SELECT story, max(arrived) AS newest FROM (
          SELECT {own_story("m", "s.user_id")} AS story, m.arrived FROM subscriptions AS s
          CROSS JOIN story_members AS m INDEXED BY story_members_feed ON m.feed_id = s.feed_id
          WHERE s.user_id = ?{listed("s", "m", of_one_feed=False)}) AS mine
        GROUP BY story HAVING count(*) > 1 AND max(arrived) < CAST(? AS INTEGER)
        ORDER BY max(arrived) DESC LIMIT {limit}""",
        [user_id, 2**53 if below is None else below],
        name="list stories of a user",
    )


def _seen(caller: Caller, result: Result) -> list[list[SeenItem]]:
    """The stories of the rows that `_members` has read."""
    stories = dict[str, list[_Row]]()
    for row in map(_Row._make, result.columns(*_Row._fields)):
        stories.setdefault(row.story, []).append(row)
    kinds, compared = dict[str, Reason](), dict[str, StoredJoin]()
    for rows in stories.values():
        story_of = {row.id: row.story_of_all for row in rows}
        first = min(rows, key=lambda each: each.arrived)
        for row in rows:
            known: dict[str, Any] = json.loads(row.evidence or "{}")
            join = next(
                (
                    join
                    for join in stored_joins(row.joins)
                    if all(story_of.get(id) == row.story_of_all is not None for id in join.items)
                ),
                None,
            )
            if known.get("kind") == "operator" or (
                join is not None and (join.items[0], join.kind) == (known.get("nearest"), known.get("kind"))
            ):
                kinds[row.id] = _reason(known)
            elif join is not None:
                compared[row.id] = join
            elif row is first:
                kinds[row.id] = Reason(kind="first")
            else:
                is_chosen = row.chosen or row.story_of_all != first.story_of_all
                kinds[row.id] = Reason(kind="chosen" if is_chosen else "tied")
    kinds |= _compared(caller, compared)
    return [
        [_item(row, kinds[row.id], {each.id: each for each in rows}) for row in rows]
        for rows in stories.values()
    ]


def _item(row: _Row, reason: Reason, seen: dict[str, _Row]) -> SeenItem:
    return SeenItem(
        id=row.id,
        feed_id=row.feed_id,
        feed_title=row.feed_title,
        feed_url=shown_url(row.feed_url),
        title=row.title,
        link=row.link,
        published=row.published,
        collected=row.collected,
        arrived=row.arrived,
        is_read=bool(row.is_read),
        leads=bool(row.leads),
        reason=reason,
        why=_sentence(reason, seen),
    )


def _members(user_id: str, own: str, params: Sequence[Value], *, with_first: bool = True) -> Statement:
    """All items of the user in the stories that `own` gives, a query for `id` and `story`; with the item `id`
    itself, which may stand alone and which the user may not be shown in lists."""
    itself = "i.id IN (SELECT own.id FROM own) OR " if with_first else ""
    first = "SELECT own.story, own.id FROM own UNION " if with_first else ""
    return Statement(
        f"""WITH own AS MATERIALIZED ({own}),
        together AS MATERIALIZED (
          {first}SELECT own.story, o.item_id AS id FROM own
          CROSS JOIN users AS u
          CROSS JOIN story_members AS o ON {in_own_story("o", "own.story", "u.id")} WHERE u.id = ?)
        SELECT together.story, o.story_id AS story_of_all, i.id, i.feed_id,
          coalesce(s.title, f.title) AS feed_title, f.url AS feed_url,
          i.title, i.link, i.pub_date AS published, i.created_at AS collected, i.arrived, o.evidence,
          {JOINS.format("o")} AS joins, {
            number('''EXISTS (SELECT 1 FROM story_choices AS c
            WHERE c.user_id = s.user_id AND c.item_id = i.id)''')
        } AS chosen,
          coalesce(t.is_read, CAST(i.arrived <= s.read_up_to AS INTEGER)) AS is_read,
          s.leads
        FROM together CROSS JOIN items AS i ON i.id = together.id
        CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        CROSS JOIN feeds AS f ON f.id = i.feed_id
        LEFT JOIN story_members AS o ON o.item_id = i.id
        LEFT JOIN item_states AS t
          ON t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.arrived = i.arrived
        WHERE {itself}(true{listed("s", "i", of_one_feed=False)})
        ORDER BY coalesce({place("o")}, i.arrived)""",
        [*params, user_id, user_id],
        name="read stories of a user",
    )


def _reason(known: dict[str, Any]) -> Reason:
    names, numbers, terms = (tuple(known.get(name, ())) for name in ("names", "numbers", "terms"))
    return Reason(kind=known["kind"], nearest=known.get("nearest"), names=names, numbers=numbers, terms=terms)


def _compared(caller: Caller, pairs: Mapping[str, StoredJoin]) -> dict[str, Reason]:
    """By item, the reasons of these joins with items of the user: nothing of a third one is in them."""
    if not pairs:
        return {}
    from rss_pipeline.features.stories.window import why

    others = {id: join.items[0] for id, join in pairs.items()}
    entries, reasons = sql.entries(caller.database, [*others, *others.values()]), dict[str, Reason]()
    for id, other in others.items():
        kind = pairs[id].kind
        if id not in entries or other not in entries:
            reasons[id] = Reason(kind=kind, nearest=other)
            continue
        found = why(entries[id], entries[other])
        reasons[id] = Reason(
            kind=kind, nearest=other, names=found.names, numbers=found.numbers, terms=found.terms
        )
    return reasons


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


_LEAST_WORDS, _LEAST_PART = 3, 0.4
"""The words of a sentence that are new at least, and the part of its words."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")


def added(entries: Iterable[Entry]) -> Iterator[str]:
    """By item, in this order, its sentence that adds most to those before it; empty for one that adds
    nothing, and for the first."""
    known: set[str] = set()
    for entry in entries:
        is_first = not known
        known |= _words(entry.title)
        sentences = {each: _words(each) for each in map(str.strip, _SENTENCE_END.split(entry.text))}
        new = {each: len(words - known) for each, words in sentences.items()}
        told = [each for each in new if new[each] >= max(_LEAST_WORDS, _LEAST_PART * len(sentences[each]))]
        yield "" if is_first else max(told, key=lambda each: new[each], default="")
        known.update(*sentences.values())


def _words(text: str) -> set[str]:
    from rss_pipeline.features.stories.vocabulary import FUNCTION_WORDS
    from rss_pipeline.features.stories.words import PAIRED_SCRIPTS, TOKEN, script, stem

    found = set[str]()
    for token in TOKEN.findall(text):
        if not token.isascii() and script(token) in PAIRED_SCRIPTS:
            found.update(token[at : at + 2] for at in range(len(token) - 1))
        elif token[-1].isalnum() and (key := stem(token)) not in FUNCTION_WORDS:
            found.add(key)
    return found
