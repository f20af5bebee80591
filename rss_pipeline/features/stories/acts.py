"""The acts of one user on stories: "not the same", "the same", and undo. Nobody else sees anything of it.

A choice puts an item into another story, for this user and for good. What comes later follows the item that
it is most like (sql.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.stories import sql
from rss_pipeline.features.stories.lease import FULL_TEXT
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.reading import in_own_story, own_story
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.query import Query
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.items.stories import LATER
from rss_pipeline.storage.sql import NOW, NUMBER_FIELD, compact, number

ALONE = "{}~"
"""The story of an item that a user, or an operator, took out of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """The stories of some items for a user, with all of their members."""

    story_of: dict[str, str]
    """The stories of the items that are in the user's feeds; its own id for one that stands alone."""
    members: dict[str, list[str]]


def _known(user_id: str, ids: Sequence[str]) -> Query[_Known]:
    asked = compact(list(ids))
    stories = f"""SELECT DISTINCT u.id AS user_id, coalesce({own_story("m", "u.id")}, i.id) AS story
      FROM users AS u CROSS JOIN json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
      LEFT JOIN story_members AS m ON m.item_id = i.id"""
    items = Statement(
        f"""SELECT i.id, coalesce({own_story("m", "s.user_id")}, i.id) AS story
        FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
        CROSS JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
        LEFT JOIN story_members AS m ON m.item_id = i.id""",
        [asked, user_id],
        name="find the stories of a user's items",
    )
    members = Statement(
        f"""WITH own AS MATERIALIZED (
          {stories} WHERE u.id = ?)
        SELECT m.item_id, own.story FROM own
        CROSS JOIN story_members AS m ON {in_own_story("m", "own.story", "own.user_id")}""",
        [asked, user_id],
        name="read members of a user's stories",
    )

    def read(found: Sequence[Result]) -> _Known:
        of_items, of_members = found
        grouped = dict[str, list[str]]()
        for row in of_members.rows:
            grouped.setdefault(row["story"], []).append(row["item_id"])
        return _Known(story_of={row["id"]: row["story"] for row in of_items.rows}, members=grouped)

    return Query((items, members), read)


def apart(caller: Caller, item_id: str) -> bool:
    """Say "not the same": the item stands alone from now on, if it did not already. False where it is no item
    of the user's feeds."""
    known = caller.ask(_known(caller.user_id, [item_id]))
    story = known.story_of.get(item_id)
    if story is not None and len(known.members.get(story, ())) > 1:
        _choose(caller, "apart", item_id, {item_id: 0}, ALONE.format(item_id))
    return story is not None


def together(caller: Caller, item_id: str, other_id: str) -> bool:
    """Say "the same": the other item, with its story, belongs to the story of this one. False where one of
    them is no item of the user's feeds, or they are together."""
    known = caller.ask(_known(caller.user_id, [item_id, other_id]))
    story, other = known.story_of.get(item_id), known.story_of.get(other_id)
    if story is None or other is None or story == other:
        return False
    # All members move, seen or not: what comes later and is like one of them follows it.
    moved = [other_id, *known.members.get(other, ()), item_id, *known.members.get(story, ())]
    texts = sql.entries(caller.database, [item_id, other_id])
    _choose(caller, "together", item_id, {id: _later(texts.get(id)) for id in moved}, story)
    return True


def _later(entry: Entry | None) -> int:
    return LATER if entry is not None and len(entry.text) < FULL_TEXT else 0


def undo(caller: Caller) -> str | None:
    """Take back what was said last; its item. None where there is nothing to undo."""
    user_id = caller.user_id
    last = Statement(
        "SELECT act, item_id, before FROM story_acts WHERE user_id = ? ORDER BY act DESC LIMIT 1",
        [user_id],
        name="find the last choice of stories",
    )
    [found] = caller.read(last)
    if not found.rows:
        return None
    [row] = found.rows
    act = int(row["act"])
    caller.write(
        Statement(
            "DELETE FROM story_choices WHERE user_id = ? AND act = CAST(? AS INTEGER)",
            [user_id, act],
            name="undo a choice of stories",
        ),
        Statement(
            f"""INSERT INTO story_choices (user_id, item_id, story_id, act)
            SELECT ?, i.id, json_extract(v.value, '$.story'), {NUMBER_FIELD.format("act")}
            FROM json_each(?) AS v CROSS JOIN items AS i ON i.id = json_extract(v.value, '$.item')
            WHERE true ON CONFLICT (user_id, item_id) DO NOTHING""",
            [user_id, row["before"]],
            name="put earlier choices of stories back",
        ),
        Statement(
            "DELETE FROM story_acts WHERE user_id = ? AND act = CAST(? AS INTEGER)",
            [user_id, act],
            name="forget a choice of stories",
        ),
    )
    return str(row["item_id"])


def lead(caller: Caller, feed_id: str, *, leads: bool) -> bool:
    """Let items of this feed lead the stories that they are in, or no longer. False where the user does not
    subscribe to it."""
    [changed] = caller.write(
        Statement(
            "UPDATE subscriptions SET leads = CAST(? AS INTEGER) WHERE user_id = ? AND feed_id = ?",
            [int(leads), caller.user_id, feed_id],
            name="prefer a feed in stories",
        )
    )
    return changed.changes > 0


def can_undo(user_id: str) -> Query[str | None]:
    """The item of what was said last; None for nothing."""
    return Query.of(
        Statement(
            "SELECT item_id FROM story_acts WHERE user_id = ? ORDER BY act DESC LIMIT 1",
            [user_id],
            name="look for a choice of stories",
        ),
        lambda found: str(found.values[0][0]) if found.values else None,
    )


def _choose(caller: Caller, said: str, item_id: str, items: Mapping[str, int], story: str) -> None:
    """`items` with the LATER of those that stood alone."""
    user_id, names = caller.user_id, compact(list(items))
    caller.write(
        # Another tab may say something at the same moment: numbers and choices are those of the write.
        Statement(
            """INSERT INTO story_acts (user_id, act, said, item_id, said_at, before)
            SELECT ?, coalesce(max(a.act), 0) + 1, ?, ?, ?, (
              SELECT json_group_array(json_object('item', c.item_id, 'story', c.story_id, 'act', c.act))
              FROM story_choices AS c
              WHERE c.user_id = ? AND c.item_id IN (SELECT value FROM json_each(?)))
            FROM story_acts AS a WHERE a.user_id = ?""",
            [user_id, said, item_id, instant(caller.clock()), user_id, names, user_id],
            name="note a choice of stories",
        ),
        # One that stood alone so far is a story of one, which is none for anybody else.
        Statement(
            f"""INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
            SELECT i.id, i.id, i.feed_id, i.arrived, i.id, i.arrived + {number("j.value")}, {NOW}, 0
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.key
            WHERE i.arrived IS NOT NULL ON CONFLICT (item_id) DO NOTHING""",
            [compact(dict(items))],
            name="add stories of one",
        ),
        Statement(
            """INSERT INTO story_choices (user_id, item_id, story_id, act)
            SELECT ?, i.id, ?, (SELECT max(a.act) FROM story_acts AS a WHERE a.user_id = ?)
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value WHERE true
            ON CONFLICT (user_id, item_id) DO UPDATE SET story_id = excluded.story_id, act = excluded.act""",
            [user_id, story, user_id, names],
            name="choose the story of items",
        ),
    )


def restore_choices(user_id: str, chosen: str) -> list[Statement]:
    """Put items into the stories that the user chose, by a JSON list of pairs of ids; one without a story is
    a story of one."""
    items = """FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = json_extract(j.value, '$[0]')
      WHERE i.arrived IS NOT NULL"""
    return [
        Statement(
            f"""INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
            SELECT i.id, i.id, i.feed_id, i.arrived, i.id, i.arrived, {NOW}, 0 {items}
            ON CONFLICT (item_id) DO NOTHING""",
            [chosen],
            name="restore stories of one",
        ),
        Statement(
            f"""INSERT INTO story_choices (user_id, item_id, story_id, act)
            SELECT ?, i.id, json_extract(j.value, '$[1]'), 0 {items}
            ON CONFLICT (user_id, item_id) DO NOTHING""",
            [user_id, chosen],
            name="restore choices of stories",
        ),
    ]
