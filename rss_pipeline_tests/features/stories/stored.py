"""Stories of items that are stored, for tests. No test is in here."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.stories import moves, service, sql
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.sql import compact
from rss_pipeline_tests.support.stored import add_items, item

NOW = datetime.now(UTC).replace(microsecond=0)
LANDSLIDE = (
    "Landslide blocks road into Ravensdale",
    "<p>A landslide has blocked the only road into Ravensdale on Tuesday. Mayor Orla Brandt said that forty"
    " residents of Ravensdale are cut off, and that engineers from Tarnwick will begin to clear the debris"
    " tomorrow morning.</p>",
)
AGAIN = (
    "Ravensdale cut off as landslide closes road",
    "<p>Forty residents of Ravensdale were cut off on Tuesday after a landslide closed the only road."
    " Engineers from Tarnwick are to clear the debris, said the mayor, Orla Brandt.</p>",
)
OTHER = ("A recipe for pears", "<p>Peel six pears, add sugar and cinnamon, and bake them for an hour.</p>")


def arrive(
    database: Database, feed: str, guid: str, text: tuple[str, str], *, minutes: float, days_ago: float = 0
) -> str:
    """An item of a feed that comes in so many minutes from now, maybe fetched so many days before."""
    at = NOW + timedelta(minutes=minutes)
    fetched_at = instant(at - timedelta(days=days_ago))
    row = item(feed, guid, fetched_at, title=text[0], content_html=text[1])
    number = int(at.timestamp() * 1_000_000)
    add_items(database, [{**row, "arrived": number}])
    database.query(
        "INSERT INTO sequences (name, value) VALUES ('items', CAST(? AS INTEGER))"
        " ON CONFLICT (name) DO UPDATE SET value = max(sequences.value, excluded.value)",
        [number],
    )
    return str(row["id"])


def ids(database: Database, *places: str) -> list[str]:
    """The ids of items, each by its feed and guid: `a1`."""
    rows = database.query("SELECT id, feed_id, guid FROM items").rows
    known = {f"{row['feed_id']}{row['guid']}": row["id"] for row in rows}
    return [known[place] for place in places]


def one_story(database: Database, *places: str) -> list[str]:
    """Make these items one story, each by the first and by some of those before it; their ids."""
    members = ids(database, *places)
    why = json.dumps({"kind": "event", "nearest": members[0], "names": ["ravensdale"], "numbers": ["40"]})
    for place, id in enumerate(members):
        before = dict.fromkeys([members[0], *members[max(0, place - 7) : place]]) if place else {}
        joins = compact([[each, "event"] for each in before])
        database.query(
            """INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, evidence, decided_at, version, joins,
               ordinal)
            SELECT id, ?, feed_id, arrived, id, arrived, ?, '2026-03-02T12:00:00Z', 1, ?, CAST(? AS INTEGER)
            FROM items WHERE id = ?""",
            [members[0], None if id == members[0] else why, joins, place + 1, id],
        )
    return members


def decide(database: Database, objects: ObjectStore, window: Path) -> None:
    while not service.catch_up(database, objects, window).is_complete:
        pass


def together(database: Database) -> set[frozenset[str]]:
    """The items of each story of two and more."""
    grouped: dict[str, set[str]] = {}
    for row in database.query("SELECT item_id, story_id FROM story_members").rows:
        grouped.setdefault(row["story_id"], set()).add(row["item_id"])
    return {frozenset(each) for each in grouped.values() if len(each) > 1}


def lose(database: Database, *ids: str) -> None:
    """Items, or all of them, go and come back from backups; with all of them, the writer's row goes, too."""
    rows = database.query("SELECT * FROM items ORDER BY arrived").rows
    gone = [row for row in rows if not ids or row["id"] in ids]
    for row in gone:
        database.query("DELETE FROM items WHERE id = ?", [row["id"]])
    if not ids:
        database.query("DELETE FROM installation WHERE name = 'stories'")
        moves.restored(database)
    number = max(int(time.time()) * 1_000_000, sql.ends(database).arrived)
    for place, row in enumerate(gone, start=1):
        add_items(database, [{**row, "arrived": number + place}])
    database.query("UPDATE sequences SET value = (SELECT max(arrived) FROM items) WHERE name = 'items'")
