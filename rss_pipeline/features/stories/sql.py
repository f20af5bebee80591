"""Statements of the writer of stories: its lease, the items that come next, and the members it adds.

How stories are read is in storage/items/stories.py.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime, timedelta
from typing import Self

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.stories import views
from rss_pipeline.features.stories.model import Entry, Join, moment
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.feeds.predicates import OPEN
from rss_pipeline.storage.items.body_parts import body_text
from rss_pipeline.storage.items.cursor import highest_number
from rss_pipeline.storage.items.stories import JOINS, JOINT, REPLACED
from rss_pipeline.storage.sql import FIELD, NOW, NUMBER_FIELD, chunked, compact, number

ITEMS_AT_ONCE = 200
HTML_CHARACTERS = 8_000
"""The start of an item's HTML: enough for the text that is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The one that decides, as the row `stories` of the table `installation` has it."""

    arrived: int = 0
    """All items up to this arrival number are decided."""
    version: int = 0
    """The version of the method that decided last."""
    token: str = ""
    until: str = ""
    """The end of its lease."""
    again: str = ""
    """While what came back from backups is decided: the last day (UTC) that is done."""
    again_to: int = 0
    """The arrival number up to which that goes; 0 where nothing came back."""
    moves: str = ""
    """A mark of the moves so far."""
    last_move: int = 0
    """The number of the last move."""
    moving: int = 0
    """The number of a move that was begun; a negative one where it is taken back."""
    members: int = 0
    """The members that were stored so far: the order of their decisions."""
    is_restored: bool = False
    """The database was restored: there may be moves in the object store that it does not know."""

    @classmethod
    def read(cls, text: str | None) -> Self:
        # A newer method may have written more.
        known = {each.name for each in fields(cls)}
        return cls(**{name: value for name, value in json.loads(text or "{}").items() if name in known})

    def __str__(self) -> str:
        return compact(asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """The state of the database, all of one moment."""

    stored: str | None
    """The writer's row."""
    arrived: int
    """The highest arrival number."""
    now: str
    """By the database's clock."""
    identity: str
    """A mark of this database alone: when it was made."""
    is_wanted: bool
    """True if a user reads stories, or a topic publishes them."""

    @property
    def writer(self) -> Writer:
        return Writer.read(self.stored)

    @property
    def is_behind(self) -> bool:
        """True if there is something to decide, or to complete."""
        writer = self.writer
        return self.arrived > writer.arrived or writer.moving != 0 or writer.is_restored


def ends(database: Database) -> Ends:
    """Four rows are read, and those of users and topics up to the first one with stories."""
    writer, number, clock, wanted = database.batch(
        [
            Statement(
                "SELECT value FROM installation WHERE name = 'stories'", name="read the writer of stories"
            ),
            highest_number(),
            Statement(
                f"SELECT {NOW} AS now, applied_at FROM schema_migrations ORDER BY version LIMIT 1",
                name="read clock and birth of the database",
            ),
            # SQLite writes JSON without blanks, Postgres with one.
            Statement(
                """SELECT 1 FROM users WHERE replace(preferences, ': ', ':') LIKE '%"stories":true%'
                UNION ALL SELECT 1 FROM topics WHERE removed = 0 AND definition LIKE '%"stories":true%'
                LIMIT 1""",
                name="look for a reader of stories",
            ),
        ]
    )
    return Ends(
        stored=writer.rows[0]["value"] if writer.rows else None,
        arrived=int(number.rows[0]["number"]),
        now=str(clock.rows[0]["now"]),
        identity=str(clock.rows[0]["applied_at"]),
        is_wanted=bool(wanted.values),
    )


def take(before: str | None, after: Writer) -> Statement:
    """Replace the writer's row, unless another process has done that meanwhile: then no row is changed."""
    if before is None:
        return Statement(
            "INSERT INTO installation (name, value) VALUES ('stories', ?) ON CONFLICT (name) DO NOTHING",
            [str(after)],
            name="begin to write stories",
        )
    return Statement(
        "UPDATE installation SET value = ? WHERE name = 'stories' AND value = ?",
        [str(after), before],
        name="go on writing stories",
    )


_IS_WRITER = "EXISTS (SELECT 1 FROM installation WHERE name = 'stories' AND value = ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item as it is decided, and the story that it is in already."""

    entry: Entry
    arrived: int
    fetched_at: datetime
    story: str | None
    began: bool
    """It is in none, and there is one of its name: it went, and came again."""

    def is_back(self, now: datetime) -> bool:
        """True if it was fetched long before it was stored: a backup brought it back."""
        stored_at = datetime.fromtimestamp(self.arrived / 1_000_000, UTC)
        return min(stored_at, now) - self.fetched_at > _AT_ONCE


_AT_ONCE = timedelta(days=1)
"""Time within which an item is stored after it was fetched, and decided after that."""
_FETCHED = f"""{number("strftime('%s', i.created_at)")} * 1000000"""
_BACK = f"i.arrived - {_FETCHED} > {int(_AT_ONCE.total_seconds()) * 1_000_000}"
# What came back has the place of then; each another one.
_PLACE = f"CASE WHEN {_BACK} THEN {_FETCHED} + i.arrived % 1000000 ELSE i.arrived END"
_COLUMNS = f"""i.id, i.arrived, i.created_at, i.feed_id, i.title, i.link, i.pub_date, i.pub_date_source,
  f.language, {number(f"NOT {OPEN}")} AS is_closed, substr({body_text("i")}, 1, {HTML_CHARACTERS}) AS html"""
# A story of one that a user made of an item is no decision on it (acts.py).
_IN_STORY = "CASE WHEN m.version > 0 OR m.story_id <> m.item_id THEN m.story_id END"
_STORY = f"""{_IN_STORY} AS story_id,
  CASE WHEN m.item_id IS NULL AND EXISTS (SELECT 1 FROM story_members AS o WHERE o.story_id = i.id)
    THEN 1 ELSE 0 END AS began"""


def behind(database: Database, arrived: int, *, up_to: int, since: datetime, done: int) -> list[Item]:
    """The next items behind an arrival number that were fetched since then, in the order in which they were,
    those up to `done` first; of those behind it also what came back from a backup."""
    rows = database.query(
        f"""WITH next AS (
          SELECT i.rowid AS place, i.arrived FROM items AS i INDEXED BY items_arrived
          WHERE i.arrived > ? AND i.arrived <= ? AND (i.created_at >= ? OR (i.arrived > ? AND {_BACK}))
          ORDER BY i.arrived LIMIT {ITEMS_AT_ONCE})
        SELECT {_COLUMNS}, {_STORY}
        FROM next CROSS JOIN items AS i ON i.rowid = next.place CROSS JOIN feeds AS f ON f.id = i.feed_id
        LEFT JOIN story_members AS m ON m.item_id = i.id ORDER BY next.arrived""",
        [arrived, up_to, instant(since), done],
        name="read items for stories",
    ).rows
    # A poll stores side by side what it fetched; after a restore only this order is known.
    items = [_item(row, entry_of(row)) for row in rows]
    return sorted(
        items, key=lambda item: (item.arrived > done, item.fetched_at, item.entry.feed, item.arrived)
    )


def before_newest(database: Database, arrived: int, *, up_to: int, since: datetime, most: int) -> int:
    """The arrival number behind which there are `most` items up to another one that were fetched since then;
    `arrived` if there are fewer behind that."""
    rows = database.query(
        """SELECT i.arrived FROM items AS i INDEXED BY items_arrived
        WHERE i.arrived > ? AND i.arrived <= ? AND i.created_at >= ?
        ORDER BY i.arrived DESC LIMIT 1 OFFSET CAST(? AS INTEGER)""",
        [arrived, up_to, instant(since), most],
        name="find the first item of a window",
    ).rows
    return int(rows[0]["arrived"]) if rows else arrived


def days_behind(database: Database, arrived: int, *, up_to: int, after: str) -> list[date]:
    """The days (UTC) after this one on which items behind an arrival number were fetched."""
    rows = database.query(
        """SELECT DISTINCT substr(i.created_at, 1, 10) AS day FROM items AS i INDEXED BY items_arrived
        WHERE i.arrived > ? AND i.arrived <= ? AND substr(i.created_at, 1, 10) > ? ORDER BY day""",
        [arrived, up_to, after],
        name="find days of items that came back",
    ).rows
    return [date.fromisoformat(row["day"]) for row in rows]


def fetched_on(database: Database, day: date, *, up_to: int) -> Iterator[list[Item]]:
    """The items up to an arrival number that were fetched on a day (UTC), some at a time, in the order in
    which they were: as if each had arrived then."""
    ids = [
        row["id"]
        for row in database.query(
            """SELECT i.id FROM feeds AS f CROSS JOIN items AS i INDEXED BY items_age
              ON i.feed_id = f.id AND i.created_at >= ? AND i.created_at < ?
            WHERE i.arrived <= ? ORDER BY i.created_at, i.feed_id, i.arrived""",
            [f"{day}T00:00:00Z", f"{day + timedelta(days=1)}T00:00:00Z", up_to],
            name="find items of a day for stories",
        ).rows
    ]
    for some in batched(ids, ITEMS_AT_ONCE):
        rows = database.query(
            f"""SELECT {_COLUMNS}, {_STORY}
            FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
            CROSS JOIN feeds AS f ON f.id = i.feed_id LEFT JOIN story_members AS m ON m.item_id = i.id
            ORDER BY i.created_at, i.feed_id, i.arrived""",
            [compact(some)],
            name="read items of a day for stories",
        ).rows
        yield [
            _item(row, entry_of(row, seen=datetime.fromisoformat(row["created_at"]).timestamp()))
            for row in rows
        ]


def _item(row: Row, entry: Entry) -> Item:
    fetched_at = datetime.fromisoformat(row["created_at"])
    return Item(
        entry=entry,
        arrived=int(row["arrived"]),
        fetched_at=fetched_at,
        story=row["story_id"],
        began=bool(row["began"]),
    )


def entries(database: Database, ids: Sequence[str]) -> dict[str, Entry]:
    """These items as they are compared, by id."""
    rows = database.query(
        f"""SELECT {_COLUMNS} FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
        CROSS JOIN feeds AS f ON f.id = i.feed_id""",
        [compact(list(ids))],
        name="read items to compare",
    ).rows
    return {row["id"]: entry_of(row) for row in rows}


def entry_of(row: Row, *, seen: float | None = None) -> Entry:
    """An item as the method takes it; `seen` in place of the moment of its arrival."""
    from rss_pipeline.collector.sanitize.html import plain_text

    seen = int(row["arrived"] or 0) / 1_000_000 if seen is None else seen
    is_dated = row["pub_date_source"] == "feed"
    published = datetime.fromisoformat(row["pub_date"]).timestamp() if is_dated else None
    return Entry(
        id=row["id"],
        feed=row["feed_id"],
        title=row["title"] or "",
        text=plain_text(row["html"] or "")[:TEXT_CHARACTERS],
        link=row["link"],
        language=row["language"],
        time=moment(published, seen),
        published=published,
        arrived=int(row["arrived"] or 0),
        seen=seen,
        is_closed=bool(row["is_closed"]),
    )


TEXT_CHARACTERS = 1_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of an item that another one is most like."""

    story: str
    article: str
    members: int
    """The size of the story; 0 for an item that is in none, or in one of one that a user made."""


def places(database: Database, ids: Sequence[str]) -> dict[str, Place]:
    """The places of those of these items that are still there."""
    if not ids:
        return {}
    rows = database.query(
        """SELECT i.id, m.story_id, m.article, m.version,
          (SELECT count(*) FROM story_members AS o WHERE o.story_id = m.story_id) AS n
        FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
        LEFT JOIN story_members AS m ON m.item_id = i.id""",
        [compact(sorted(ids))],
        name="find the stories of items",
    ).rows
    return {
        row["id"]: Place(
            story=row["story_id"] or row["id"],
            article=row["article"] or row["id"],
            members=0 if row["version"] == 0 and int(row["n"]) == 1 else int(row["n"]),
        )
        for row in rows
    }


def full(database: Database, stories: Sequence[str], *, most: int) -> frozenset[str]:
    """Return those of these stories that have so many members, without those of closed feeds."""
    if not stories:
        return frozenset()
    rows = database.query(
        f"""SELECT m.story_id FROM json_each(?) AS j CROSS JOIN story_members AS m ON m.story_id = j.value
        CROSS JOIN feeds AS f ON f.id = m.feed_id WHERE {OPEN}
        GROUP BY m.story_id HAVING count(*) >= CAST(? AS INTEGER)""",
        [compact(list(stories)), most],
        name="find full stories",
    ).rows
    return frozenset(row["story_id"] for row in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A member to be stored. What else its row has is the item's."""

    item_id: str
    story_id: str
    article: str
    later: int
    """LATER for an item without a full text, else 0."""
    evidence: str | None
    joins: tuple[Join, ...] = ()
    ordinal: int | None = None
    """Its place in the order of decisions; None for the next one."""


def add_members(
    writer: Writer, before: str | None, members: Sequence[Member], *, version: int, follows: bool
) -> list[Statement]:
    """Store these members, and that the writer is so far; nothing where another process was first, which the
    first statement shows: it changes no row. `follows`: an item follows the first of its joins that a user
    has into the story that the user has chosen."""
    statements = [take(before, writer)]
    first = writer.members - len(members)
    for chunk in chunked(
        compact(
            {
                **asdict(each),
                "joins": compact(list(map(_as_json, each.joins))),
                "ordinal": first + place if each.ordinal is None else each.ordinal,
            }
        )
        for place, each in enumerate(members, start=1)
    ):
        statements += [
            Statement(
                f"""INSERT INTO story_members
                  (item_id, story_id, feed_id, arrived, article, lead, evidence, decided_at, version, joins,
                   ordinal)
                SELECT i.id, {FIELD.format("story_id")}, i.feed_id, i.arrived, {FIELD.format("article")},
                  {_PLACE} + {NUMBER_FIELD.format("later")}, {FIELD.format("evidence")}, {NOW},
                  CAST(? AS INTEGER), {FIELD.format("joins")}, {NUMBER_FIELD.format("ordinal")}
                FROM json_each(?) AS v CROSS JOIN items AS i ON i.id = {FIELD.format("item_id")}
                WHERE {_IS_WRITER} ON CONFLICT (item_id) DO UPDATE SET story_id = excluded.story_id,
                  article = excluded.article, lead = excluded.lead, evidence = excluded.evidence,
                  decided_at = excluded.decided_at, version = excluded.version, joins = excluded.joins,
                  ordinal = excluded.ordinal
                WHERE story_members.version = 0 AND story_members.story_id = story_members.item_id""",
                [version, chunk, str(writer)],
                name="add members of stories",
            )
        ]
    replaced = [id for each in members for join in each.joins if join.kind == "reissue" for id in join.items]
    if replaced:
        statements.append(
            Statement(
                f"""UPDATE story_members SET lead = lead + {REPLACED}
                WHERE item_id IN (SELECT value FROM json_each(?)) AND lead < {REPLACED} AND {_IS_WRITER}""",
                [compact(replaced), str(writer)],
                name="let new items lead those that they replace",
            )
        )
    for level in _levels(members):
        ids = [each.item_id for each in level]
        statements.append(views.follow(ids, _IS_WRITER, [str(writer)]))
        if follows:
            statements.append(
                Statement(
                    f"""INSERT INTO story_choices (user_id, item_id, story_id, act)
                    SELECT n.user_id, n.item_id, n.story_id, n.act FROM (
                      SELECT DISTINCT c.user_id, c.item_id AS joined, o.item_id, c.story_id, c.act,
                        {views.held("c.user_id")} AS held
                      FROM json_each(?) AS a CROSS JOIN story_members AS o ON o.item_id = a.value
                      CROSS JOIN json_each({JOINS.format("o")}) AS t CROSS JOIN json_each(t.value) AS n
                      CROSS JOIN story_choices AS c ON c.item_id = n.value) AS n
                    WHERE {views.is_held("n", "n.joined")} AND {_IS_WRITER}
                    ON CONFLICT (user_id, item_id) DO NOTHING""",
                    [compact(ids), str(writer)],
                    name="follow the choices of users",
                )
            )
    return statements


def _as_json(join: Join) -> list[str]:
    if len(join.items) == 1:
        return [join.items[0], join.kind]
    return [JOINT, join.kind, *join.items]


def _levels(members: Sequence[Member]) -> list[list[Member]]:
    """The members, each behind those of its joins."""
    level_of, levels = dict[str, int](), dict[int, list[Member]]()
    for each in members:
        before = [level_of[id] for join in each.joins for id in join.items if id in level_of]
        level = level_of[each.item_id] = max(before, default=-1) + 1
        levels.setdefault(level, []).append(each)
    return [levels[level] for level in sorted(levels)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A member in another story, with another reason."""

    item_id: str
    story_id: str
    was: str | None
    """The story that it leaves."""
    evidence: str | None


def move(writer: Writer, moved: Sequence[Moved]) -> list[Statement]:
    """Put these items, of which each has a story, into others; nothing where another is the writer."""
    if not moved:
        return []
    stories = {id for each in moved for id in (each.story_id, each.was) if id is not None}
    statements = [
        Statement(
            f"""UPDATE story_members SET story_id = {FIELD.format("story_id")},
              evidence = {FIELD.format("evidence")}
            FROM json_each(?) AS v
            WHERE story_members.item_id = {FIELD.format("item_id")} AND {_IS_WRITER}""",
            [chunk, str(writer)],
            name="move members of stories",
        )
        for chunk in chunked(compact(asdict(each)) for each in moved)
    ]
    return [*statements, *views.of_stories(sorted(stories))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A stored item, and where it stands."""

    item_id: str
    feed_id: str
    fetched_at: str
    arrived: int
    story: str | None
    """None for an item without a row among the members, or with that of a user's story of one."""
    evidence: str | None


def standing(database: Database, ids: Sequence[str]) -> dict[str, Standing]:
    """Return, by id, those of these items that are stored."""
    sql = f"""SELECT i.id AS item_id, i.feed_id, i.created_at AS fetched_at, i.arrived, {_IN_STORY} AS story,
      m.evidence
    FROM json_each(?) AS j CROSS JOIN items AS i ON i.id = j.value
    LEFT JOIN story_members AS m ON m.item_id = i.id"""
    found: dict[str, Standing] = {}
    for chunk in chunked(map(compact, ids)):
        rows = database.query(sql, [chunk], name="find where items stand").rows
        found |= {row["item_id"]: Standing(**{**row, "arrived": int(row["arrived"])}) for row in rows}
    return found


def is_restoring(database: Database) -> bool:
    """True while a user reads stories, and not all is decided that a restore or a replay brought back."""
    [row] = database.query(
        "SELECT (SELECT value FROM installation WHERE name = 'stories') AS value",
        name="read the writer of stories",
    ).rows
    writer = Writer.read(row["value"])
    return (writer.is_restored or writer.again_to > 0) and ends(database).is_wanted


def note_restored(database: Database) -> None:
    """Note that the database was restored, whoever writes stories at this moment."""
    while True:
        stored = ends(database).stored
        [taken] = database.batch([take(stored, replace(Writer.read(stored), is_restored=True))])
        if taken.changes:
            return


def released(writer: Writer) -> Writer:
    """The writer without its lease."""
    return replace(writer, token="", until="")


def members_of(database: Database, story_id: str) -> list[str]:
    """The ids of the items of a story."""
    rows = database.query(
        "SELECT item_id FROM story_members WHERE story_id = ? ORDER BY lead",
        [story_id],
        name="read members of a story",
    ).rows
    return [row["item_id"] for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The stories of a time."""

    stories: int
    items: int
    newest: int
    """The highest arrival number of an item of them; 0 for none."""


def count(database: Database, *, since: datetime, until: datetime) -> Counted:
    """Count the stories of two and more in which an item came in between, and their items of that time."""
    [row] = database.query(
        """SELECT count(DISTINCT m.story_id) AS stories, count(*) AS items,
          coalesce(max(m.arrived), 0) AS newest
        FROM story_members AS m WHERE m.arrived >= ? AND m.arrived < ? AND EXISTS (
          SELECT 1 FROM story_members AS o WHERE o.story_id = m.story_id AND o.item_id <> m.item_id)""",
        [int(since.timestamp()) * 1_000_000, int(until.timestamp()) * 1_000_000],
        name="count stories",
    ).rows
    return Counted(**{name: int(value) for name, value in row.items()})
