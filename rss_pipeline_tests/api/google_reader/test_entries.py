"""An item field by field, and each client that does not work without one (or with another form of it)."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from rss_pipeline.api.google_reader.parameters import READING_LIST
from rss_pipeline.api.google_reader.stream_entries import (
    Origin,
    StreamEntry,
    contents,
    entry_as_json,
    item_ids,
)
from rss_pipeline.collector.models.item import Enclosure

NUMBER = 1_763_822_000_123_456


def entry(**fields: Any) -> StreamEntry:
    origin = Origin(
        feed_id="example-org",
        title="Example & Co",
        url="https://example.org/feed",
        site="https://example.org/",
        folder="News",
    )
    defaults: dict[str, Any] = {
        "number": NUMBER,
        "origin": origin,
        "title": "A < B & C",
        "link": "https://example.org/1",
        "authors": ("Ann", "Bob"),
        "published": datetime(2025, 11, 1, tzinfo=UTC),
        "updated": datetime(2025, 11, 2, tzinfo=UTC),
        "html_json": (b'"<p>text', b'</p>"'),
        "categories": ("tech",),
        "enclosures": (Enclosure(url="https://example.org/a.mp3", type="audio/mpeg", length=12),),
        "is_read": False,
        "is_starred": False,
    }
    return StreamEntry(**{**defaults, **fields})


CASES: list[tuple[str, Callable[[dict[str, Any]], object], object]] = [
    (
        "Read You: a long id of 16 lower-case digits",
        lambda item: item["id"],
        f"tag:google.com,2005:reader/item/{NUMBER:016x}",
    ),
    ("Capy Reader: a title", lambda item: item["title"], "A < B & C"),
    ("newsboat: published is an integer", lambda item: item["published"], 1_761_955_200),
    ("Liferea: updated is an integer", lambda item: item["updated"], 1_762_041_600),
    ("NetNewsWire: crawlTimeMsec is a string", lambda item: item["crawlTimeMsec"], "1763822000123"),
    ("NetNewsWire: timestampUsec is a string", lambda item: item["timestampUsec"], str(NUMBER)),
    ("all: summary.content", lambda item: item["summary"]["content"], "<p>text</p>"),
    ("newsboat: content is the first key of summary", lambda item: min(item["summary"]), "content"),
    (
        "newsboat, Liferea, Capy, Fluent: canonical",
        lambda item: item["canonical"][0]["href"],
        "https://example.org/1",
    ),
    (
        "NetNewsWire, RSS Guard, Readrops: alternate",
        lambda item: item["alternate"][0]["href"],
        "https://example.org/1",
    ),
    ("RSS Guard: alternate is text/html", lambda item: item["alternate"][0]["type"], "text/html"),
    (
        "RSS Guard, Fluent, NetNewsWire: origin.streamId",
        lambda item: item["origin"]["streamId"],
        "feed/example-org",
    ),
    ("Capy Reader: origin.title", lambda item: item["origin"]["title"], "Example & Co"),
    ("Capy Reader: origin.htmlUrl", lambda item: item["origin"]["htmlUrl"], "https://example.org/"),
    (
        "newsboat: enclosures have href",
        lambda item: item["enclosure"][0]["href"],
        "https://example.org/a.mp3",
    ),
    ("enclosures have a type", lambda item: item["enclosure"][0]["type"], "audio/mpeg"),
    ("authors", lambda item: item["author"], "Ann, Bob"),
]


@pytest.mark.parametrize(
    ("field", "expected"), [pytest.param(field, value, id=name) for name, field, value in CASES]
)
def test_an_item_has_each_field_in_the_form_that_clients_take(
    field: Callable[[dict[str, Any]], object], expected: object
) -> None:
    found = field(orjson.loads(orjson.dumps(entry_as_json(entry()))))
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("is_read", "is_starred", "states"),
    [
        (False, False, []),
        (True, False, ["user/-/state/com.google/read"]),
        (False, True, ["user/-/state/com.google/starred"]),
        (True, True, ["user/-/state/com.google/read", "user/-/state/com.google/starred"]),
    ],
)
def test_newsboat_and_readrops_compare_whole_states(
    is_read: bool, is_starred: bool, states: list[str]
) -> None:
    found = entry_as_json(entry(is_read=is_read, is_starred=is_starred))["categories"]
    assert found == ["user/-/state/com.google/reading-list", *states, "user/-/label/News", "tech"]


def test_a_publisher_s_category_marks_no_item() -> None:
    sly = ("user/-/state/com.google/read", "user/-/label/Mine", "real")
    found = entry_as_json(entry(categories=sly))["categories"]
    assert found == ["user/-/state/com.google/reading-list", "user/-/label/News", "real"]


@pytest.mark.parametrize(
    "link", [None, "", "javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)", "file:///etc"]
)
def test_an_item_without_a_link_of_the_web_leads_to_its_feed_s_site(link: str | None) -> None:
    found = entry_as_json(entry(link=link))
    assert found["canonical"][0]["href"] == found["alternate"][0]["href"] == "https://example.org/"


def test_an_enclosure_that_a_client_would_run_is_left_out() -> None:
    assert entry_as_json(entry(enclosures=(Enclosure(url="javascript:alert(1)"),)))["enclosure"] == []


def test_an_empty_item_has_all_fields() -> None:
    empty = entry(title="", link=None, authors=(), html_json=(b'""',), categories=(), enclosures=())
    found = entry_as_json(empty)
    assert found.keys() == entry_as_json(entry()).keys()
    assert found["title"] == ""
    assert found["author"] == ""


def test_the_last_page_has_no_continuation_at_all() -> None:
    """NetNewsWire goes on for ever with an empty one."""
    assert "continuation" not in item_ids([NUMBER], None)
    assert "continuation" not in contents(READING_LIST, [], updated=1, title="")
    assert item_ids([NUMBER], "5")["continuation"] == "5"
    assert contents(READING_LIST, [], updated=1, title="", continuation="5")["continuation"] == "5"


def test_an_id_is_the_only_key_of_its_object() -> None:
    """Readrops reads one key of each object, and fails at a second."""
    assert orjson.loads(orjson.dumps(item_ids([NUMBER, 7], None))) == {
        "itemRefs": [{"id": str(NUMBER)}, {"id": "7"}]
    }


def test_contents_have_what_netnewswire_demands() -> None:
    found = contents(READING_LIST, [entry()], updated=1_763_822_000, title="All")
    assert found["id"] == "user/-/state/com.google/reading-list"
    assert found["updated"] == 1_763_822_000
    assert [item["id"] for item in found["items"]] == [f"tag:google.com,2005:reader/item/{NUMBER:016x}"]
