"""Stories as one user reads them: in lists of several feeds a story is one entry, of the user's own feeds.

A story is the user's choice, else their view of it (views.py), else that of all. In a list it is made of
its members in the feeds of that list. A copy is no news where an earlier one was read that it is a copy of,
nor is an item that a newer one of its feed replaces, where that was read. A list of unread items shows a
story once, while some of its news is unread: by the one of these that leads.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.items.stories import JOINS, REPLACED, paired
from rss_pipeline.storage.sql import compact, number
from rss_pipeline.storage.subscriptions.chosen import Scope
from rss_pipeline.storage.subscriptions.folding import Folding, HiddenUnread, is_old_by
from rss_pipeline.storage.subscriptions.item_query import listed


def own_story(member: str, user: str) -> str:
    """The story of a member as this user has it."""
    return f"""coalesce((SELECT c.story_id FROM story_choices AS c
      WHERE c.user_id = {user} AND c.item_id = {member}.item_id), (SELECT v.story_id FROM story_views AS v
      WHERE v.user_id = {user} AND v.item_id = {member}.item_id), {member}.story_id)"""


def in_own_story(member: str, story: str, user: str) -> str:
    """The condition that a member belongs to a story of this user, by an index."""
    return f"""{member}.item_id IN (SELECT x.item_id FROM story_members AS x WHERE x.story_id = {story}
      UNION ALL SELECT c.item_id FROM story_choices AS c WHERE c.user_id = {user} AND c.story_id = {story}
      UNION ALL SELECT v.item_id FROM story_views AS v WHERE v.user_id = {user} AND v.story_id = {story})
    AND {own_story(member, user)} = {story}"""


def own_article(member: str, user: str) -> str:
    """The article of a member as this user has it."""
    return f"""coalesce((SELECT v.article FROM story_views AS v
      WHERE v.user_id = {user} AND v.item_id = {member}.item_id), {member}.article)"""


PREFERRED = 2**53
"""Subtracted from the place of an item of a feed that leads: such an item is before all others."""


def place(member: str, subscription: str = "s") -> str:
    """The place of a member in its story, for one user: the lowest one leads."""
    return f"({member}.lead - {subscription}.leads * {PREFERRED})"


_LISTED = listed("s", "o", of_one_feed=False)
"""` AND` with the conditions that the user is shown a member at all."""
_IS_READ = """coalesce((SELECT t.is_read FROM item_states AS t WHERE t.user_id = s.user_id
      AND t.feed_id = {0}.feed_id AND t.arrived = {0}.arrived),
    CAST({0}.arrived <= s.read_up_to AS INTEGER)) = {1}"""
_IS_UNREAD = _IS_READ.format("o", 0)
_BEFORE = f"""NOT EXISTS (SELECT 1 FROM (
    SELECT x.item_id, x.feed_id, x.arrived, x.article, x.lead, x.joins, x.evidence,
      {place("x", "w")} AS place, {{user}} AS user_id, {own_story("x", "{user}")} AS story
    FROM story_members AS x
    CROSS JOIN subscriptions AS w ON w.user_id = {{user}} AND w.feed_id = {{feed}}
    WHERE x.feed_id = {{feed}} AND x.arrived = {{arrived}}) AS m
  CROSS JOIN story_members AS o ON {in_own_story("o", "m.story", "m.user_id")}
  CROSS JOIN subscriptions AS s ON s.feed_id = o.feed_id
  WHERE {{scope}} AND ({{before}}){_LISTED})"""


def _is_old_by(member: str, other: str, user: str) -> str:
    """The condition that a member is no news to somebody who has read the other one: `folding.is_old_by`."""
    of_copies = f"""{other}.arrived < {member}.arrived
      AND {own_article(other, user)} = {own_article(member, user)}"""
    of_reissues = f"""{member}.lead >= {REPLACED} AND {other}.feed_id = {member}.feed_id
      AND {other}.arrived > {member}.arrived"""
    return f"(({of_copies}) OR ({of_reissues})) AND {paired(member, other)}"


_IS_OLD = f"""EXISTS (SELECT 1 FROM story_members AS p CROSS JOIN subscriptions AS s ON s.feed_id = p.feed_id
    WHERE {{scope}} AND {in_own_story("p", "m.story", "m.user_id")} AND {_IS_READ.format("p", 1)}
      AND {_is_old_by("o", "p", "s.user_id")}{listed("s", "p", of_one_feed=False)})"""
_OF_ALL = _BEFORE.replace("{before}", f"{place('o')} < m.place")
_OF_UNREAD = _BEFORE.replace(
    "{before}",
    f"""({_IS_READ.format("o", 1)} AND {_is_old_by("m", "o", "s.user_id")})
      OR ({place("o")} < m.place AND {_IS_UNREAD} AND NOT {_IS_OLD})""",
)


def _unread(user_id: str) -> Statement:
    """The items of the stories with an unread one, in the user's feeds; none where the user wants none."""
    wanted = f"""FROM users AS u CROSS JOIN subscriptions AS s ON s.user_id = u.id {{}}
      WHERE u.id = ? AND {number("json_extract(u.preferences, '$.stories')")} = 1"""
    above = """CROSS JOIN story_members AS m INDEXED BY story_members_feed
      ON m.feed_id = s.feed_id AND m.arrived > s.read_up_to"""
    below = """CROSS JOIN item_states AS t
        ON t.user_id = s.user_id AND t.feed_id = s.feed_id AND t.is_read = 0
      CROSS JOIN story_members AS m ON m.item_id = t.item_id"""
    return Statement(
        f"""WITH fresh AS MATERIALIZED (
          SELECT s.user_id, {own_story("m", "s.user_id")} AS story {wanted.format(above)}
            AND NOT EXISTS (SELECT 1 FROM item_states AS t WHERE t.user_id = s.user_id
              AND t.feed_id = m.feed_id AND t.arrived = m.arrived AND t.is_read = 1)
          UNION SELECT s.user_id, {own_story("m", "s.user_id")} {wanted.format(below)})
        SELECT fresh.story, s.feed_id, s.folder, {own_article("o", "s.user_id")} AS article, o.arrived,
          {place("o")} AS place, {number(_IS_UNREAD)} AS unread, o.item_id AS id,
          {number(f"o.lead >= {REPLACED}")} AS replaced, {JOINS.format("o")} AS joins FROM fresh
        CROSS JOIN story_members AS o ON {in_own_story("o", "fresh.story", "fresh.user_id")}
        CROSS JOIN subscriptions AS s ON s.user_id = fresh.user_id AND s.feed_id = o.feed_id
        WHERE true{_LISTED}""",
        [user_id, user_id],
        name="read unread stories of a user",
        is_kept=True,
    )


def _hidden_unread(result: Result) -> HiddenUnread:
    """The unread items that lists of several feeds do not count, by folder and of all feeds."""
    members = list(map(_Member._make, result.columns(*_Member._fields)))
    folders = {each.folder for each in members if each.folder is not None}
    of_all = _hidden(members)
    return HiddenUnread(
        of_all=len(of_all),
        of_folders={
            name: len(_hidden([each for each in members if each.folder == name])) for name in folders
        },
        of_feeds=Counter(each.feed_id for each in of_all),
    )


class _Member(NamedTuple):
    story: str
    feed_id: str
    folder: str | None
    article: str
    arrived: int
    place: int
    unread: int
    id: str
    replaced: int
    joins: str | None


def _hidden(members: Sequence[_Member]) -> list[_Member]:
    """The unread ones but those that a list of these shows."""
    read = dict[str, list[_Member]]()
    for each in members:
        if not each.unread:
            read.setdefault(each.story, []).append(each)
    shown = dict[str, _Member]()
    for each in members:
        if each.unread and not any(is_old_by(each, other) for other in read.get(each.story, ())):
            shown[each.story] = min(each, shown.get(each.story, each), key=lambda one: one.place)
    return [each for each in members if each.unread and shown.get(each.story) is not each]


def _read(user_id: str, scope: Scope, shown: Sequence[str]) -> Statement:
    """All members, in the feeds of a list, of the stories that it shows by these items."""
    condition, params = scope.of(user_id)
    return Statement(
        f"""WITH m AS MATERIALIZED (
          SELECT x.item_id, u.id AS user_id, {own_story("x", "u.id")} AS story
          FROM users AS u CROSS JOIN json_each(?) AS j
          CROSS JOIN story_members AS x ON x.item_id = j.value WHERE u.id = ?)
        SELECT m.item_id AS shown_id, o.item_id AS id, o.arrived, o.feed_id,
          coalesce(s.title, f.title) AS feed_title, f.url AS feed_url, i.title, i.link,
          i.pub_date AS published, {own_article("o", "m.user_id")} AS article, {number(_IS_UNREAD)} AS unread,
          {number(f"o.lead >= {REPLACED}")} AS replaced, {JOINS.format("o")} AS joins
        FROM m CROSS JOIN story_members AS o ON {in_own_story("o", "m.story", "m.user_id")}
        CROSS JOIN subscriptions AS s ON s.feed_id = o.feed_id
        CROSS JOIN feeds AS f ON f.id = o.feed_id CROSS JOIN items AS i ON i.id = o.item_id
        WHERE {condition}{_LISTED} ORDER BY m.item_id, {place("o")}""",
        [compact(list(shown)), user_id, *params],
        name="read stories of a list",
        is_kept=True,
    )


_ENTRY = f"json_array({place('o')}, o.item_id, o.arrived, {number(paired('o', 'm'))})"
_IDS = f"""(SELECT json_group_array({_ENTRY}) FROM (
    SELECT x.item_id, x.joins, x.evidence, {{user}} AS user_id, {own_story("x", "{user}")} AS story
    FROM story_members AS x WHERE x.item_id = {{item}}) AS m
  CROSS JOIN story_members AS o ON {in_own_story("o", "m.story", "m.user_id")}
  CROSS JOIN subscriptions AS s ON s.user_id = m.user_id AND s.feed_id = o.feed_id WHERE true{_LISTED})"""

FOLDING = Folding(
    shown=_OF_ALL, shown_unread=_OF_UNREAD, count=_unread, counted=_hidden_unread, ids=_IDS, read=_read
)
