"""The version of a page: another one for every change that a page shows, and for no other."""

from rss_pipeline.storage.database import Database
from rss_pipeline.storage.subscriptions import item_lists, listing
from rss_pipeline.storage.subscriptions.chosen import Filter, Page, Scope
from rss_pipeline.storage.subscriptions.item_lists import PageVersion
from rss_pipeline_tests.storage.subscriptions.readers import arrive, numbers, subscribe
from rss_pipeline_tests.storage.values import change

OF_A = Filter(scope=Scope(feed_id="a"))


def version(database: Database, filter: Filter = OF_A, *, limit: int = 2) -> PageVersion | None:
    statement = item_lists.page_version("ann", filter, Page(limit=limit))
    return item_lists.page_version_of(database.batch([statement])[0])


def test_a_page_has_another_version_once_something_of_it_changes(two: Database) -> None:
    subscribe(two, "ann", "a")
    versions = [version(two)]
    arrive(two, "a", "1", "2", "3")
    versions.append(version(two))
    change(two, "UPDATE feeds SET title = 'Another' WHERE id = 'a'")
    versions.append(version(two))
    change(two, "UPDATE users SET state_version = state_version + 1 WHERE id = 'ann'")
    versions.append(version(two))
    change(two, "DELETE FROM items WHERE guid = '3'")
    versions.append(version(two))
    assert None not in versions
    assert len(set(versions)) == len(versions)
    arrive(two, "b", "1")
    assert version(two) == versions[-1]


def test_a_feed_that_the_user_does_not_subscribe_has_no_page(two: Database) -> None:
    arrive(two, "a", "1")
    subscribe(two, "bob", "a")
    assert version(two) is None
    assert version(two, Filter(scope=Scope(feed_id="no such feed"))) is None
    everything = version(two, Filter())
    assert everything is not None
    assert everything.items == ""


def test_ids_are_known_and_feeds_newer_only_to_who_subscribes(two: Database) -> None:
    subscribe(two, "ann", "a")
    arrive(two, "a", "1")
    arrive(two, "b", "1")
    ids = [row["id"] for row in two.query("SELECT id FROM items").rows]
    [known] = two.batch([item_lists.known_ids("ann", [*ids, "no such item"])])
    assert [row["id"] for row in known.rows] == [
        row["id"] for row in two.query("SELECT id FROM items WHERE feed_id = 'a'").rows
    ]
    newest = numbers(two, "a")["1"]
    for since, expected in ((newest - 1, ["a"]), (newest, [])):
        [listed] = two.batch([listing.list_feeds("ann", newer_than=since)])
        assert [row.feed_id for row in listing.feed_rows(listed)] == expected
    assert [len(two.batch([listing.look_for_feed("ann", id)])[0].rows) for id in ("a", "b")] == [1, 0]
