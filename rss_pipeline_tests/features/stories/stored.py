"""Stories of items that are stored, for tests. No test is in here."""

import json

from rss_pipeline.storage.database import Database


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
