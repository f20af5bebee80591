"""Stories of items that are stored, for tests. No test is in here."""

import json
import time
from pathlib import Path

from rss_pipeline.features.stories import moves, service, sql
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.support.stored import add_items


def ids(database: Database, *places: str) -> list[str]:
    """The ids of items, each by its feed and guid: `a1`."""
    rows = database.query("SELECT id, feed_id, guid FROM items").rows
    known = {f"{row['feed_id']}{row['guid']}": row["id"] for row in rows}
    return [known[place] for place in places]


def one_story(database: Database, *places: str) -> list[str]:
    """Make these items one story, each compared with the first; their ids."""
    members = ids(database, *places)
    why = json.dumps({"kind": "event", "nearest": members[0], "names": ["ravensdale"], "numbers": ["40"]})
    for id in members:
        database.query(
            """INSERT INTO story_members
              (item_id, story_id, feed_id, arrived, article, lead, evidence, decided_at, version)
            SELECT id, ?, feed_id, arrived, id, arrived, ?, '2026-03-02T12:00:00Z', 1
            FROM items WHERE id = ?""",
            [members[0], None if id == members[0] else why, id],
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
