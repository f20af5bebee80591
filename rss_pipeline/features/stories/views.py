"""A person's stories: made of the items of their own feeds alone, whatever items of other feeds tie.

In the order of the decisions, each item takes the story of the first of its joins that the person has, or
begins one. So a person's stories are parts of those of all. The first part has the name that the story has
for all, a further one that of the item that begins it (`PART`). What an operator put into a story is of the
first part.

`views` says so plainly. The statements store what differs from the stories of all in `story_views`: for new
members as they are written, and anew for stories of feeds that a user subscribes to or leaves, and for moves.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from rss_pipeline.features.stories.model import COPIES, WINDOW, Join
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.items.stories import JOINS, JOINT
from rss_pipeline.storage.sql import compact, number

PART = "{}-"
"""The story of a person that is a further part of one of all, by the item that begins it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A member of a story of all."""

    id: str
    feed: str
    story: str
    joins: tuple[Join, ...] = ()
    is_moved: bool = False
    """An operator put it there."""


def views(members: Iterable[Placed], feeds: Set[str]) -> dict[str, tuple[str, str]]:
    """Return, by id, the story and the article of these members that are in these feeds. They are in the
    order of their decisions."""
    found, stories, begun = dict[str, tuple[str, str]](), dict[str, str](), set[str]()
    for each in members:
        if each.feed not in feeds:
            continue
        held = next(
            (join for join in each.joins if all(stories.get(id) == each.story for id in join.items)), None
        )
        if held is not None:
            story, article = found[held.items[0]]
            found[each.id] = story, article if held.kind in COPIES else each.id
        else:
            is_part = each.story in begun and not each.is_moved
            found[each.id] = (PART.format(each.id) if is_part else each.story), each.id
        if not each.is_moved:
            begun.add(each.story)
        stories[each.id] = each.story
    return found


def _is_before(one: str, other: str) -> str:
    """The condition that a member was decided before another one."""
    return (
        f"({one}.ordinal < {other}.ordinal"
        f" OR ({one}.ordinal = {other}.ordinal AND {one}.arrived < {other}.arrived))"
    )


_IS_MOVED = "(coalesce(json_extract({0}.evidence, '$.kind'), '') = 'operator')"
_IS_EARLIER = f"x.story_id = o.story_id AND {_is_before('x', 'o')}"
_HAS = "CROSS JOIN subscriptions AS w ON w.user_id = {user} AND w.feed_id = x.feed_id"


def held(user: str) -> str:
    """The kind, a blank and the item of the first join of `story_members AS o` that this user has; NULL for
    none."""
    has = _HAS.format(user=user)
    return f"""(SELECT json_extract(j.value, '$[1]') || ' ' || x.item_id
      FROM json_each({JOINS.format("o")}) AS j
      CROSS JOIN story_members AS x ON x.item_id = CASE json_extract(j.value, '$[0]')
        WHEN '{JOINT}' THEN json_extract(j.value, '$[2]') ELSE json_extract(j.value, '$[0]') END
        AND {_IS_EARLIER}
      {has}
      WHERE json_extract(j.value, '$[0]') <> '{JOINT}' OR NOT EXISTS (
        SELECT 1 FROM json_each(j.value) AS v WHERE {number("v.key")} > 2 AND NOT EXISTS (
          SELECT 1 FROM story_members AS x {has} WHERE x.item_id = v.value AND {_IS_EARLIER}))
      ORDER BY {number("j.key")} LIMIT 1)"""


_IS_COPY = (
    f"""substr({{0}}.held, 1, instr({{0}}.held, ' ') - 1) IN ({", ".join(f"'{kind}'" for kind in COPIES)})"""
)
_PARENT = "substr({0}.held, instr({0}.held, ' ') + 1)"


def is_held(row: str, item: str) -> str:
    """The condition that `held` of a row is a join with this item."""
    return f"{_PARENT.format(row)} = {item}"


_STORE = "INSERT INTO story_views (user_id, item_id, story_id, article)"
_OR_UPDATE = """ON CONFLICT (user_id, item_id) DO UPDATE
  SET story_id = excluded.story_id, article = excluded.article"""
_DIFFERS = "(n.story <> n.story_id OR n.shown_article <> n.article)"


def follow(ids: Sequence[str], condition: str, params: Sequence[str]) -> Statement:
    """Store the views of these new members for all who have them, unless they are those of all. None of them
    is in a join of another one of them."""
    of_parent = f"v.user_id = h.user_id AND v.item_id = {_PARENT.format('h')}"
    view = f"SELECT v.{{}} FROM story_views AS v WHERE {of_parent}"
    return Statement(
        f"""{_STORE}
        SELECT n.user_id, n.item_id, n.story, n.shown_article FROM (
          SELECT h.user_id, h.item_id, h.story_id, h.article,
            CASE WHEN h.held IS NOT NULL THEN coalesce(({view.format("story_id")}), h.story_id)
              WHEN h.begins = 1 THEN h.story_id ELSE h.item_id || '{PART.format("")}' END AS story,
            CASE WHEN h.held IS NULL OR NOT {_IS_COPY.format("h")} THEN h.item_id ELSE coalesce(
              ({view.format("article")}),
              (SELECT p.article FROM story_members AS p WHERE p.item_id = {_PARENT.format("h")})
            ) END AS shown_article
          FROM (SELECT s.user_id, o.item_id, o.story_id, o.article, {held("s.user_id")} AS held,
              {
            number(f'''NOT EXISTS (SELECT 1 FROM story_members AS x {_HAS.format(user="s.user_id")}
                WHERE {_IS_EARLIER} AND NOT {_IS_MOVED.format("x")})''')
        } AS begins
            FROM json_each(?) AS j CROSS JOIN story_members AS o ON o.item_id = j.value
            CROSS JOIN subscriptions AS s ON s.feed_id = o.feed_id) AS h) AS n
        WHERE {_DIFFERS} AND {condition}
        {_OR_UPDATE}""",
        [compact(list(ids)), *params],
        name="store views of new members",
    )


_OF_FEEDS = f"""SELECT DISTINCT m.story_id FROM json_each(?) AS j
  CROSS JOIN story_members AS m INDEXED BY story_members_feed ON m.feed_id = j.value
    AND m.arrived > ({number("strftime('%s', 'now')")} - {int(WINDOW)}) * 1000000"""
_NAMED = "SELECT DISTINCT j.value AS story_id FROM json_each(?) AS j"


def of_feeds(feed_ids: Sequence[str], user_id: str | None = None) -> list[Statement]:
    """Make the views anew of the stories with an item of the last week in these feeds, for this user or for
    all: after they have subscribed to these feeds, or left them."""
    of_user, params = _of(user_id)
    return [
        Statement(
            f"""DELETE FROM story_views WHERE {of_user.format("story_views")} AND EXISTS (
              SELECT 1 FROM story_members AS m WHERE m.item_id = story_views.item_id
                AND m.feed_id IN (SELECT value FROM json_each(?)) AND NOT EXISTS (
                  SELECT 1 FROM subscriptions AS s
                  WHERE s.user_id = story_views.user_id AND s.feed_id = m.feed_id))""",
            [*params, compact(list(feed_ids))],
            name="forget views of feeds that were left",
        ),
        *_anew(_OF_FEEDS, compact(list(feed_ids)), user_id),
    ]


def of_stories(story_ids: Sequence[str]) -> list[Statement]:
    """Make the views of these stories anew, for all."""
    return _anew(_NAMED, compact(list(story_ids)), None)


def of_all() -> list[Statement]:
    """Make the views of the last week's stories anew, for all."""
    return _anew(
        _OF_FEEDS.replace(
            "json_each(?) AS j", "(SELECT DISTINCT s.feed_id AS value FROM subscriptions AS s) AS j"
        ),
        None,
        None,
    )


def _of(user_id: str | None) -> tuple[str, list[str]]:
    return ("true", []) if user_id is None else ("{}.user_id = ?", [user_id])


_OF_ONE_KIND = f"s.user_id, o.story_id, {_IS_MOVED.format('o')}"
_IS_FIRST = number(f"""{_IS_MOVED.format("o")}
  OR row_number() OVER (PARTITION BY {_OF_ONE_KIND} ORDER BY o.ordinal, o.arrived) = 1""")


def _anew(stories: str, param: str | None, user_id: str | None) -> list[Statement]:
    of_user, params = _of(user_id)
    given = [] if param is None else [param]
    return [
        Statement(
            f"""DELETE FROM story_views WHERE {of_user.format("story_views")} AND item_id IN (
              SELECT o.item_id FROM ({stories}) AS touched
              CROSS JOIN story_members AS o ON o.story_id = touched.story_id)""",
            [*params, *given],
            name="forget views of stories",
        ),
        # Each member climbs from join to join to the one that begins its part.
        Statement(
            f"""{_STORE}
            WITH RECURSIVE mine AS MATERIALIZED (
              SELECT new.user_id, new.item_id, new.story_id, new.article, new.is_first,
                {_PARENT.format("new")} AS parent,
                {number(f"coalesce({_IS_COPY.format('new')}, false)")} AS is_copy
              FROM (SELECT s.user_id, o.item_id, o.story_id, o.article, {held("s.user_id")} AS held,
                  {_IS_FIRST} AS is_first
                FROM ({stories}) AS touched
                CROSS JOIN story_members AS o ON o.story_id = touched.story_id
                CROSS JOIN subscriptions AS s ON s.feed_id = o.feed_id WHERE {of_user.format("s")}) AS new),
            climbed (user_id, item_id, place, parent, shown_article, is_copy) AS (
              SELECT own.user_id, own.item_id, own.item_id, own.parent, own.item_id, own.is_copy
              FROM mine AS own
              UNION ALL
              SELECT part.user_id, part.item_id, own.item_id, own.parent,
                CASE part.is_copy WHEN 1 THEN own.item_id ELSE part.shown_article END,
                part.is_copy * own.is_copy
              FROM climbed AS part
              CROSS JOIN mine AS own ON own.user_id = part.user_id AND own.item_id = part.parent)
            SELECT n.user_id, n.item_id, n.story, n.shown_article FROM (
              SELECT part.user_id, part.item_id, own.story_id, own.article, part.shown_article,
                CASE own_1.is_first WHEN 1 THEN own_1.story_id
                  ELSE own_1.item_id || '{PART.format("")}' END AS story
              FROM climbed AS part
              CROSS JOIN mine AS own ON own.user_id = part.user_id AND own.item_id = part.item_id
              CROSS JOIN mine AS own_1 ON own_1.user_id = part.user_id AND own_1.item_id = part.place
              WHERE part.parent IS NULL) AS n
            WHERE {_DIFFERS}
            {_OR_UPDATE}""",
            [*given, *params],
            name="store views of stories",
        ),
    ]
