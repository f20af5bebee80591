"""Google Reader's Atom, which is all that newsboat before 2.24 reads of a feed."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from lxml import etree

from rss_pipeline.api.google_reader.listings import atom_document
from rss_pipeline.api.google_reader.parameters import FeedStream
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline_tests.api.google_reader.test_entries import NUMBER, entry

GRAMMAR = etree.RelaxNG(etree.parse(Path(__file__).parents[2] / "support" / "rfc4287.rng"))
NAMES: Any = {"a": "http://www.w3.org/2005/Atom", "gr": "http://www.google.com/schemas/reader/atom/"}


def document(*entries: Any, continuation: str | None = None) -> bytes:
    stream = FeedStream("example-org")
    return atom_document(
        stream, entries, title="Example", site="https://example.org/", continuation=continuation
    )


def texts(body: bytes, path: str) -> list[str]:
    return [str(found) for found in etree.fromstring(body).xpath(path, namespaces=NAMES)]


@pytest.mark.parametrize(
    ("is_read", "is_starred", "labels"),
    [
        (True, False, ["reading-list", "read"]),
        (False, False, ["reading-list", "fresh", "kept-unread"]),
        (False, True, ["reading-list", "fresh", "kept-unread", "starred"]),
        (True, True, ["reading-list", "read", "starred"]),
    ],
)
def test_an_entry_has_the_states_that_newsboat_reads(
    is_read: bool, is_starred: bool, labels: list[str]
) -> None:
    body = document(entry(is_read=is_read, is_starred=is_starred))
    assert texts(body, "//a:entry/a:category[@scheme='http://www.google.com/reader/']/@label") == labels


def test_an_entry_has_the_id_that_newsboat_sends_back() -> None:
    assert texts(document(entry()), "//a:entry/a:id/text()") == [
        f"tag:google.com,2005:reader/item/{NUMBER:016x}"
    ]


def test_the_document_is_atom() -> None:
    body = document(
        entry(), entry(number=NUMBER + 1, authors=(), enclosures=(), html_json=(b'""',)), continuation="5"
    )
    GRAMMAR.assertValid(etree.fromstring(body))
    assert texts(body, "/a:feed/gr:continuation/text()") == ["5"]


def test_a_stream_without_items_is_atom_and_has_no_continuation() -> None:
    GRAMMAR.assertValid(etree.fromstring(document()))
    assert texts(document(), "//gr:continuation") == []


def test_equal_entries_give_equal_bytes_and_a_read_state_gives_others() -> None:
    """The ETag is made of the bytes: newsboat sends it, and has to see what was read elsewhere."""
    assert document(entry()) == document(entry())
    assert document(entry()) != document(entry(is_read=True))
    assert document(entry()) != document(entry(is_starred=True))


def test_what_xml_cannot_hold_ends_no_document() -> None:
    odd = entry(
        title="a\x0bb\x00c\ufffe & <d>",
        html_json=(orjson.dumps("<p>\x08x ]]></p>"),),
        categories=("\x1b[31m",),
        link="https://example.org/a b\x07",
        authors=("\x01Ann",),
        enclosures=(Enclosure(url="https://example.org/\x02.mp3", type="audio/\x03mpeg"),),
    )
    body = document(odd)
    assert texts(body, "//a:entry/a:title/text()") == ["abc & <d>"]
    assert texts(body, "//a:entry/a:content/text()") == ["<p>x ]]></p>"]


def test_a_link_that_newsboat_would_open_as_a_program_is_none() -> None:
    body = document(entry(link="javascript:alert(1)"))
    assert texts(body, "//a:entry/a:link[@rel='alternate']/@href") == ["https://example.org/"]
