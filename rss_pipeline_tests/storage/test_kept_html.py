"""The HTML of items in the database: written for the text that is stored, and gone with its item."""

from zlib import compress

import pytest

from rss_pipeline.collector.models.item import item_id
from rss_pipeline.storage import kept_html
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.forget import begin_forget
from rss_pipeline.storage.kept_html import FoundHtml, KeptHtml
from rss_pipeline_tests.storage.values import item, register, retire, spec, visit

KEY = "backups/a/2026-02-18T08:30:00Z.xml"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database that keeps HTML, with items 1 to 3 of feed a."""
    fixtures = {"sqlite": "sqlite", "postgres": "migrated_postgres"}
    found: Database = request.getfixturevalue(fixtures[request.param])
    register(found, spec("a"), spec("b"))
    visit(found, [item(guid) for guid in "123"])
    return found


def made(guid: str, html: bytes = b"<p>text", *, repaired: str | None = None) -> KeptHtml:
    return KeptHtml(
        item_id=item_id("a", guid),
        feed_bases=None,
        title=None,
        files=None,
        size=len(html),
        html=compress(html),
        repaired_at=repaired,
    )


def keep(database: Database, *some: KeptHtml, rules: str = "now") -> None:
    for statement in kept_html.keep_statements(some, rules=rules):
        database.batch([statement])


def numbers(database: Database) -> dict[str, int]:
    rows = database.query("SELECT guid, arrived FROM items WHERE feed_id = 'a'").rows
    return {row["guid"]: int(row["arrived"]) for row in rows}


def read(database: Database, *guids: str, rules: str = "now", most: int = 1_000) -> dict[str, FoundHtml]:
    places = numbers(database)
    wanted = [places[guid] for guid in guids]
    [result] = database.batch([kept_html.read(wanted, rules=rules, most_bytes=most)])
    names = {number: guid for guid, number in places.items()}
    return {names[number]: found for number, found in kept_html.found_of(result).items()}


def kept(database: Database) -> int:
    return int(database.query("SELECT count(*) AS n FROM item_html").rows[0]["n"])


def test_what_was_kept_is_read_by_number(database: Database) -> None:
    keep(database, made("1", b'<p>"\xc3\xa9'), made("2", b""))
    found = read(database, "1", "2", "3")
    assert {guid: one.marked for guid, one in found.items()} == {"1": b'<p>"\xc3\xa9', "2": b""}


def test_what_other_rules_made_is_not_read_and_is_replaced(database: Database) -> None:
    keep(database, made("1", b"old"), rules="before")
    assert read(database, "1") == {}
    keep(database, made("1", b"new"))
    assert read(database, "1")["1"].marked == b"new"
    assert kept(database) == 1


@pytest.mark.parametrize(("most", "whole"), [(0, 1), (11, 1), (12, 2), (17, 2), (18, 3)])
def test_html_is_read_as_far_as_it_fits_together(database: Database, most: int, whole: int) -> None:
    keep(database, *(made(guid, b"6bytes") for guid in "123"))
    found = read(database, "3", "1", "2", most=most)
    assert [guid for guid in "312" if found[guid].packed is not None] == list("312")[:whole]


def test_a_megabyte_of_html_is_written_at_a_time(database: Database) -> None:
    noise = bytes(range(256)) * 3_000
    large = [made(guid)._replace(html=noise) for guid in "123"]
    assert len(list(kept_html.keep_statements(large, rules="now"))) == 3
    keep(database, *large)
    assert kept(database) == 3


def test_rows_with_a_long_link_of_the_feed_are_written_a_megabyte_at_a_time(database: Database) -> None:
    large = [made(guid)._replace(feed_bases="x" * 700_000) for guid in "123"]
    assert len(list(kept_html.keep_statements(large, rules="now"))) == 3
    keep(database, *large)
    assert kept(database) == 3


def test_an_item_with_more_enclosures_than_a_statement_takes_is_left_out(database: Database) -> None:
    keep(database, made("1"), made("2")._replace(files="x" * 2_000_001), made("3"))
    assert read(database, "1", "2", "3").keys() == {"1", "3"}


def test_html_goes_with_its_item(database: Database) -> None:
    keep(database, *map(made, "123"))
    retire(database, item_id("a", "2"))
    assert kept(database) == 2
    begin_forget(database, "a")
    assert kept(database) == 0


def test_the_newest_items_without_html_are_found(database: Database) -> None:
    keep(database, made("1"), rules="before")
    keep(database, made("2"))
    places = numbers(database)
    newest = sorted(places, key=places.__getitem__, reverse=True)
    ids, lowest = kept_html.missing(database, rules="now", below=2**53, limit=10)
    assert ids == [item_id("a", guid) for guid in newest if guid != "2"]
    assert lowest == min(places.values())
    assert kept_html.missing(database, rules="now", below=min(places.values()), limit=10) == ([], None)
    one, _ = kept_html.missing(database, rules="now", below=places[newest[0]], limit=1)
    assert one == [item_id("a", guid) for guid in newest[1:2] if guid != "2"]


def test_d1_keeps_none(migrated_d1: Database) -> None:
    assert not kept_html.is_kept(migrated_d1)
