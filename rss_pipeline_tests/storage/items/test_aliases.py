"""Aliases of items: the newest of each, as long as the item is known, and none of a feed that was lost."""

from datetime import timedelta

from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database
from rss_pipeline.storage.items.identities import ALIASES_KEPT, add_aliases, alias_counts, drop_unused
from rss_pipeline_tests.storage.values import NOW, change, item, register, spec, visit


def stored(database: Database) -> dict[str, str]:
    rows = database.query("SELECT guid, item_guid FROM item_aliases ORDER BY guid").rows
    return {row["guid"]: row["item_guid"] for row in rows}


def test_an_item_keeps_the_aliases_of_the_newest_documents(database: Database) -> None:
    register(database, spec("a"), spec("b"))
    add_aliases(database, "b", {"x": "1"}, fetched_at=NOW)
    for hours in (5, 1, 2, 3, 4):
        aliases = {f"{hours}-{n}": str(n) for n in range(3)}
        for _ in range(2):
            add_aliases(database, "a", aliases, fetched_at=NOW + timedelta(hours=hours))
    assert alias_counts(database, "a") == {str(n): ALIASES_KEPT for n in range(3)}
    assert stored(database).keys() == {f"{hours}-{n}" for hours in (3, 4, 5) for n in range(3)} | {"x"}


def test_a_guid_stays_the_alias_of_its_first_item(database: Database) -> None:
    register(database, spec("a"))
    add_aliases(database, "a", {"x": "1"}, fetched_at=NOW)
    add_aliases(database, "a", {"x": "2"}, fetched_at=NOW)
    assert stored(database) == {"x": "1"}


def test_thousands_of_long_guids_are_written(database: Database) -> None:
    register(database, spec("a"))
    long = "g" * 1_000
    aliases = {f"{n}{long}": f"{long}{n}" for n in range(MAX_PARAMETER_BYTES // 500)}
    add_aliases(database, "a", aliases, fetched_at=NOW)
    assert stored(database) == aliases


def test_nothing_is_written_after_the_lease_was_lost_or_the_feed_forgotten(database: Database) -> None:
    register(database, spec("a"))
    change(database, "UPDATE feeds SET lease_token = 'theirs'")
    add_aliases(database, "a", {"x": "1"}, fetched_at=NOW, token="mine")
    add_aliases(database, "gone", {"x": "1"}, fetched_at=NOW)
    assert stored(database) == {}
    add_aliases(database, "a", {"x": "1"}, fetched_at=NOW, token="theirs")
    assert stored(database) == {"x": "1"}


def test_aliases_go_with_what_is_known_of_their_item(database: Database) -> None:
    register(database, spec("a"))
    visit(database, [item("1")])
    database.query("INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('a', '2', 'then')")
    change(database, "UPDATE feeds SET lease_token = 'mine'")
    add_aliases(database, "a", {"x": "1", "y": "2", "z": "3"}, fetched_at=NOW)
    database.batch([drop_unused("a", "theirs")])
    assert len(stored(database)) == 3
    database.batch([drop_unused("a", "mine")])
    assert stored(database) == {"x": "1", "y": "2"}
