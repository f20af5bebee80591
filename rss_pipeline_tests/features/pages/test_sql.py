"""The statements of pages in each store: settings, what is known of a list, rules for robots, backups."""

from dataclasses import replace
from datetime import timedelta

from rss_pipeline.features.pages.known import Known, mark
from rss_pipeline.features.pages.sql import (
    accept_page,
    drop_robots,
    keep_robots,
    pages_to_confirm,
    restore_page,
    robots_since,
)
from rss_pipeline.pipeline.adding.offer import Offer
from rss_pipeline.storage.backups.expiry import thinned_backups
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feed_row import feeds_by_id
from rss_pipeline.storage.feeds.subscribed import set_key
from rss_pipeline.storage.subscriptions.listing import named_feeds
from rss_pipeline_tests.storage.values import NOW, change, claim, feed_row, register, spec

PAGE = {"page": "auto"}
KNOWN = Known.of_list(["//a.example/1", "//a.example/2"], home="a.example")


def remember(database: Database, settings: str = "auto") -> None:
    known = replace(KNOWN, settings=mark(settings)).to_text()
    database.query(
        """UPDATE feeds SET page_known = ?, content_hash = 'c', failed_hash = 'f', last_etag = 'e',
        last_modified = 'm', last_visited_at = ?, next_fetch_at = ? WHERE id = 'a'""",
        [known, "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"],
    )


def test_key_and_memory_of_a_page_travel_with_the_claim(database: Database) -> None:
    register(database, spec("a", feature_keys=PAGE), spec("b"))
    remember(database)
    change(database, "UPDATE feeds SET next_fetch_at = '2026-01-01T00:00:00Z'")
    [feed] = [each for each in claim(database).feeds if each.id == "a"]
    assert feed.feature_keys == PAGE
    assert Known.of_text(feed.memories["page"]) == replace(KNOWN, settings=mark("auto"))
    assert feeds_by_id(database, ["b"])["b"].memories == {}


def test_other_settings_read_the_page_anew_and_keep_its_home(database: Database) -> None:
    register(database, spec("a", feature_keys=PAGE))
    remember(database)
    register(database, spec("a", feature_keys=PAGE, title="Other"))
    assert feed_row(database, "a")["content_hash"] == "c"
    register(database, spec("a", feature_keys={"page": "confirmed"}))
    row = feed_row(database, "a")
    assert [row[name] for name in ("content_hash", "failed_hash", "last_etag")] == [None, None, None]
    assert row["page_known"] == '{"home":"a.example"}'
    assert row["next_fetch_at"] == "2026-01-01T00:00:00Z"


def test_a_page_that_becomes_a_feed_is_read_anew_and_one_that_leaves_the_list_stays_a_page(
    database: Database,
) -> None:
    register(database, spec("a", feature_keys=PAGE))
    remember(database)
    register(database, spec("a"))
    assert feed_row(database, "a")["content_hash"] is None
    database.batch([set_key(["a"], "page", "auto")])
    assert feed_row(database, "a")["page"] is None, "feeds.yaml lists it"
    change(database, "UPDATE feeds SET listed = 0")
    database.batch([set_key(["a"], "page", "auto")])
    assert feed_row(database, "a")["page"] == "auto"


def test_an_offer_is_accepted_and_a_lost_memory_restored_once(database: Database) -> None:
    register(database, spec("a", feature_keys=PAGE))
    remember(database, "other")
    offer = Offer.__new__(Offer)
    object.__setattr__(offer, "memory", KNOWN.to_text())
    database.batch(accept_page("a", PAGE["page"], offer))
    row = feed_row(database, "a")
    accepted = replace(KNOWN, settings=mark("auto"), is_confirmed=True)
    assert Known.of_text(row["page_known"]) == accepted
    assert (row["content_hash"], row["next_fetch_at"]) == (None, "2026-01-01T00:00:00Z")
    change(database, "UPDATE feeds SET page_known = NULL")
    for known in ("first", "second"):
        restore_page(database, "a", settings="auto", known=known)
    assert feed_row(database, "a")["page_known"] == "first"


def test_the_rules_of_a_host_are_known_for_their_time(database: Database) -> None:
    database.batch([keep_robots("https://a.example", rules='["-/x"]', refusal=None, at=NOW)])
    day = timedelta(days=1)
    assert robots_since(database, "https://a.example", NOW - day) == ('["-/x"]', None)
    assert robots_since(database, "https://a.example", NOW) is None
    database.batch(
        [
            drop_robots(NOW - day),
            keep_robots("https://a.example", rules=None, refusal="It failed.", at=NOW + day),
        ]
    )
    assert robots_since(database, "https://a.example", NOW) == (None, "It failed.")


def test_the_backups_that_a_page_s_items_name_are_found(database: Database) -> None:
    register(database, spec("a", feature_keys=PAGE), spec("b"))
    at = "2026-01-01T00:00:00Z"
    for number, feed in enumerate("ab"):
        database.query(
            """INSERT INTO items (id, feed_id, guid, guid_source, pub_date_source, pub_date, created_at,
              backup_key, arrived) VALUES (?, ?, 'x', 'link', 'feed', ?, ?, ?, ?)""",
            [f"{number}", feed, at, at, f"backups/{feed}/1.xml", number],
        )
    assert thinned_backups(database) == {"a": frozenset({"backups/a/1.xml"})}


def test_pages_without_their_list_are_found_and_may_be_accepted_by_users(database: Database) -> None:
    assert pages_to_confirm(database) is None
    register(database, *(spec(id, feature_keys=PAGE) for id in ("fine", "lost")))
    assert pages_to_confirm(database) == []
    change(
        database, "UPDATE feeds SET consecutive_failures = 1, last_error_kind = 'list_lost' WHERE id = 'lost'"
    )
    url = "https://lost.example/lost"
    assert pages_to_confirm(database) == [{"feed": "lost", "url": url, "kind": "list_lost"}]
    [found] = database.batch([named_feeds("ann", ["lost.example", "fine.example"])])
    assert {row["id"]: bool(row["may_accept"]) for row in found.rows} == {"fine": False, "lost": True}
