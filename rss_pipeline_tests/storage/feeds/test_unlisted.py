"""Unlisted feeds in the table: which of them the database has nothing of, on every database."""

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import forget
from rss_pipeline_tests.storage.values import change, claim_one, item, register, spec, visit


def test_a_feed_is_empty_once_it_is_unlisted_and_nothing_of_it_is_stored_or_on_its_way(
    database: Database,
) -> None:
    ids = ["claimed", "empty", "items", "retired", "unreadable", "listed"]
    register(database, *map(spec, ids))
    visit(database, [item("1")], id="items")
    claim_one(database, "claimed")
    change(database, "UPDATE feeds SET failed_hash = 'hash' WHERE id = 'unreadable'")
    change(database, "INSERT INTO expired_items (feed_id, guid, expired_at) VALUES ('retired', '1', '')")
    register(database, spec("listed"))
    assert [row["id"] for row in forget.unlisted(database)] == sorted(set(ids) - {"listed"})
    assert forget.empty(database) == ["empty"]
    assert forget.begin_removal(database, ids) == ["empty"], "the others are not, any more"
    assert (forget.empty(database), forget.begin_removal(database, ids)) == ([], [])
    assert forget.end_forget(database, *ids) == 1
    found = {row["id"]: int(row["items"]) for row in forget.unlisted(database)}
    assert found == {"claimed": 0, "items": 1, "retired": 0, "unreadable": 0}
