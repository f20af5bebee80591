"""The ids of streams and tags as clients write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rss_pipeline.api.google_reader.forms import query_fields
from rss_pipeline.api.google_reader.parameters import (
    COMMIT_MICROSECONDS,
    READING_LIST,
    FeedByUrl,
    FeedStream,
    Label,
    OtherState,
    State,
    StreamPage,
    Tag,
    arrivals_since,
    in_microseconds,
    is_arrival,
    item_number,
    item_numbers,
    long_id,
    microseconds,
    read_label,
    read_page,
    read_stream,
    read_tag,
)
from rss_pipeline.api.google_reader.responses import RefusedCall
from rss_pipeline.storage.database import MAX_INTEGER


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        pytest.param("feed/example-org", FeedStream("example-org"), id="a feed by its id"),
        pytest.param("feed%2Fexample-org", FeedStream("example-org"), id="Liferea: escaped twice"),
        pytest.param("feed/1", FeedStream("1"), id="a feed whose id is a number"),
        pytest.param(
            "feed/https://example.org/a?b=1&c=2",
            FeedByUrl("https://example.org/a?b=1&c=2"),
            id="Readrops: a feed by its address",
        ),
        pytest.param("feed/example.org/rss", FeedByUrl("example.org/rss"), id="an address without a scheme"),
        pytest.param("feed/feed/example-org", FeedByUrl("feed/example-org"), id="a feed of a feed"),
        pytest.param("user/-/state/com.google/reading-list", READING_LIST, id="all"),
        pytest.param("user/1001/state/com.google/read", State("read"), id="Reeder: a user's number"),
        pytest.param("user/me@example.org/state/com.google/starred", State("starred"), id="a user's name"),
        pytest.param("user//state/com.google/kept-unread", State("kept-unread"), id="no user"),
        pytest.param("user/-/state/com.google/fresh", State("fresh"), id="newsboat: fresh"),
        pytest.param("user/-/state/com.google/broadcast", OtherState("broadcast"), id="newsboat: share"),
        pytest.param(
            "user/-/state/com.google/tracking-kept-unread",
            OtherState("tracking-kept-unread"),
            id="Liferea: tracking-kept-unread",
        ),
        pytest.param("user/-/label/Tech/News", Label("Tech/News"), id="a folder in a folder"),
        pytest.param("user/-/label/Ümläute & Co", Label("Ümläute & Co"), id="a folder with signs"),
        pytest.param("user/-/label/  a  b ", Label("a b"), id="a folder with blanks"),
        pytest.param(
            "user/-/label/state/com.google/read", Label("state/com.google/read"), id="a folder like a state"
        ),
        pytest.param("\nfeed/example-org\n", FeedStream("example-org"), id="a newline"),
    ],
)
def test_a_tag_is_read(text: str, tag: Tag) -> None:
    assert read_tag(text) == tag


@pytest.mark.parametrize(
    "text",
    [
        "",
        "feed/",
        "feeds/x",
        "user/-/label/",
        "user/-/label/  ",
        "user/-/state/com.google/",
        "user/-/state/org/read",
        "example-org",
        "null",
        "splice/a|b",
        "pop/topic/x",
        "feed/" + "a" * 5000 + ".org",
        "feed/a\x00b",
    ],
)
def test_what_is_no_tag_is_refused(text: str) -> None:
    with pytest.raises(RefusedCall) as refused:
        read_tag(text)
    assert refused.value.status == 400


def test_a_state_that_no_item_has_is_no_stream_and_not_an_empty_one() -> None:
    with pytest.raises(RefusedCall) as refused:
        read_stream("user/-/state/com.google/broadcast-friends")
    assert refused.value.status == 404


@pytest.mark.parametrize("text", [None, "", " "])
def test_a_stream_has_to_be_named(text: str | None) -> None:
    with pytest.raises(RefusedCall):
        read_stream(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        pytest.param("user/-/label/News", Label("News"), id="a tag"),
        pytest.param("News", Label("News"), id="a bare name"),
        pytest.param("user/1/label/News", Label("News"), id="another user's number"),
    ],
)
def test_a_folder_is_read(text: str, label: Label) -> None:
    assert read_label(text) == label


@pytest.mark.parametrize("text", [None, "", "feed/x", "user/-/state/com.google/starred"])
def test_what_is_no_folder_is_refused(text: str | None) -> None:
    with pytest.raises(RefusedCall):
        read_label(text)


@pytest.mark.parametrize("tag", [FeedStream("a-b"), Label("x y"), State("read"), FeedByUrl("https://a.b/?c")])
def test_a_tag_is_written_as_it_is_read(tag: Tag) -> None:
    assert read_tag(str(tag)) == tag


# Every form in which a client sends an item's id is the number of one item; what is none is refused.

NUMBER = 1_763_822_000_123_456

FORMS = [
    pytest.param("1763822000123456", NUMBER, id="NetNewsWire, Read You: decimal"),
    pytest.param("tag:google.com,2005:reader/item/000644300da00e40", 0x644300DA00E40, id="Fluent: long"),
    pytest.param(
        "tag%3Agoogle.com%2C2005%3Areader%2Fitem%2F000644300da00e40",
        0x644300DA00E40,
        id="escaped once more than the form",
    ),
    pytest.param(
        "TAG".lower() + ":google.com,2005:reader/item/000644300DA00E40", 0x644300DA00E40, id="upper case"
    ),
    pytest.param("000644300da00e40", 0x644300DA00E40, id="Read You: 16 hexadecimal digits"),
    pytest.param("0006443001234567", 0x6443001234567, id="16 hexadecimal digits without a letter"),
    pytest.param("644300da00e40", 0x644300DA00E40, id="Readrops: hexadecimal, not padded"),
    pytest.param("6612615767442", 0x6612615767442, id="Readrops: hexadecimal, not padded, without a letter"),
    pytest.param("12345", 12345, id="miniflux: decimal"),
    pytest.param("tag:google.com,2005:reader/item/00000000148b9369", 344691561, id="miniflux: long"),
    pytest.param("tag:google.com,2005:reader/item/2f2", 754, id="miniflux: long, not padded"),
    pytest.param("tag:google.com,2005:reader/item/12", 18, id="long, digits only"),
    pytest.param("tag:google.com,2005:reader/item/1763822000123456", NUMBER, id="decimal behind the tag"),
    pytest.param("000000000000046f", 1135, id="miniflux: hexadecimal, padded"),
    pytest.param(" 12345\n", 12345, id="with a newline"),
]


@pytest.mark.parametrize(("text", "number"), FORMS)
def test_an_id_is_read_in_every_form(text: str, number: int) -> None:
    assert item_number(text) == number


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("-8357651456789012345", id="RSS Guard, of another server: negative"),
        pytest.param("-123456789012", id="negative, of 12 digits"),
        pytest.param("0", id="zero"),
        pytest.param("9007199254740992", id="2^53"),
        pytest.param("18446744073709551615", id="2^64 - 1"),
        pytest.param("tag:google.com,2005:reader/item/ffffffffffffffff", id="hexadecimal, 2^64 - 1"),
    ],
)
def test_an_id_that_no_item_can_have_is_an_unknown_one(text: str) -> None:
    assert item_number(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abcxyz",
        "tag:google.com,2005:reader/item/",
        "tag:example.org,2005:reader/item/12",
        "1.5",
        "--1",
        "+1",
        "0x12",
        "00000000000000000001",
        "١٢",
        "null",
        "1;drop table items",
        "%",
        "%2e%2e/1",
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(RefusedCall) as refused:
        item_number(text)
    assert refused.value.status == 400


@example(0x6612615767442)
@given(st.integers(10**15, MAX_INTEGER - 1))
def test_a_number_comes_back_from_all_forms_in_which_it_is_given(number: int) -> None:
    for form in (str(number), long_id(number), f"{number:x}", f"{number:016x}", f"{number:016X}"):
        assert item_number(form) == number
    assert len(long_id(number).rpartition("/")[2]) == 16


def test_an_item_that_is_named_twice_is_one_and_unknown_ids_are_left_out() -> None:
    assert item_numbers((str(NUMBER), long_id(NUMBER), "-5", "12345")) == (NUMBER, 12345)


def test_a_request_that_names_no_item_is_refused() -> None:
    with pytest.raises(RefusedCall):
        item_numbers(())


# Instants in four units, known by their digits.

MICRO = 1_763_822_000_123_456


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1763822000", 1_763_822_000_000_000, id="seconds (NetNewsWire, from the Date header)"),
        pytest.param("1763822000123", 1_763_822_000_123_000, id="milliseconds"),
        pytest.param("1763822000123456", MICRO, id="News+, Reeder: microseconds"),
        pytest.param("1763822000123456789", MICRO, id="The Old Reader's document: nanoseconds"),
        pytest.param("1763822000.5", 1_763_822_000_000_000, id="a fraction is cut off"),
        pytest.param(" 1763822000\n", 1_763_822_000_000_000, id="with a newline"),
        pytest.param("0", 0, id="zero"),
        pytest.param("0001763822000", 1_763_822_000_000_000, id="leading zeros"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="missing"),
    ],
)
def test_the_digits_give_the_unit(text: str | None, expected: int | None) -> None:
    assert microseconds(text, "ts") == expected


@pytest.mark.parametrize("text", ["now", "-1", "1e9", "null", "9" * 21, "2026-11-22"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(RefusedCall):
        microseconds(text, "ts")


def test_since_a_client_s_own_second_takes_in_what_was_being_written_then() -> None:
    assert arrivals_since("1763822000") == 1_763_822_000_000_000 - COMMIT_MICROSECONDS


def test_since_a_number_of_arrival_is_exact() -> None:
    assert arrivals_since(str(MICRO)) == MICRO
    assert is_arrival(str(MICRO))
    assert not is_arrival("1763822000")


def test_since_the_epoch_is_everything() -> None:
    assert arrivals_since("0") == 0
    assert arrivals_since("1") == 0


def test_an_instant_is_exact_to_the_microsecond() -> None:
    assert in_microseconds(datetime(2025, 11, 22, 14, 33, 20, 123456, tzinfo=UTC)) == MICRO


# Filters, times and pages: what a client requests of a stream.

ALL = "user/-/state/com.google/reading-list"
STATE = "user/-/state/com.google"


def page(stream: str, query: str, most: int = 1_000) -> StreamPage:
    return read_page(read_stream(stream), query_fields(query.encode()), most=most)


@pytest.mark.parametrize(
    ("stream", "query", "expected"),
    [
        pytest.param(ALL, "", StreamPage(), id="all"),
        pytest.param(
            ALL, f"n=1000&xt={STATE}/read", StreamPage(count=1_000, is_read=False), id="NetNewsWire: unread"
        ),
        pytest.param(
            f"{STATE}/read", "n=10", StreamPage(count=10, is_read=True), id="RSS Guard, Read You: read"
        ),
        pytest.param(ALL, f"it={STATE}/read", StreamPage(is_read=True), id="Read You's FreshRSS mode"),
        pytest.param(
            ALL,
            f"xt={STATE}/read&xt={STATE}/starred&n=2500",
            StreamPage(is_read=False, is_starred=False, count=1_000),
            id="Readrops: xt twice",
        ),
        pytest.param(ALL, f"xt={STATE}/unread", StreamPage(is_read=True), id="Readrops: xt=unread"),
        pytest.param(f"{STATE}/starred", "", StreamPage(is_starred=True), id="starred"),
        pytest.param(
            f"{STATE}/starred",
            f"xt={STATE}/read",
            StreamPage(is_starred=True, is_read=False),
            id="and unread",
        ),
        pytest.param(f"{STATE}/kept-unread", "", StreamPage(is_read=False), id="kept-unread is unread"),
        pytest.param(f"{STATE}/fresh", "", StreamPage(is_read=False), id="fresh is unread"),
        pytest.param(ALL, f"xt={STATE}/kept-unread", StreamPage(is_read=True), id="not unread"),
        pytest.param(
            "feed/a-b", "n=20&r=o", StreamPage(place=FeedStream("a-b"), oldest_first=True), id="oldest first"
        ),
        pytest.param("feed/a-b", "r=n", StreamPage(place=FeedStream("a-b")), id="newest first"),
        pytest.param("user/-/label/X", "", StreamPage(place=Label("X")), id="a folder"),
        pytest.param(ALL, "it=user/-/label/X", StreamPage(place=Label("X")), id="a folder by a filter"),
        pytest.param(
            ALL,
            f"xt={STATE}/read&it={STATE}/read",
            StreamPage(is_read=False, is_empty=True),
            id="contradiction",
        ),
        pytest.param(ALL, f"it={STATE}/broadcast", StreamPage(is_empty=True), id="a state that nothing has"),
        pytest.param(ALL, f"xt={ALL}", StreamPage(is_empty=True), id="all but all"),
        pytest.param(ALL, "c=1763822000123456", StreamPage(behind=1_763_822_000_123_456), id="the next page"),
        pytest.param(ALL, "c=&xt=&it=&ot=&n=", StreamPage(), id="empty fields"),
        pytest.param(ALL, "n=200000", StreamPage(count=1_000), id="RSS Guard: n=200000"),
        pytest.param(
            ALL, "client=liferea&merge=true&ck=1&output=json", StreamPage(), id="Liferea: other fields"
        ),
        pytest.param(ALL, "ot=1763822000123456", StreamPage(since=1_763_822_000_123_456), id="since"),
        pytest.param(ALL, "nt=1763822000", StreamPage(until=1_763_822_000_000_000), id="until"),
    ],
)
def test_a_page_is_what_the_client_requests(stream: str, query: str, expected: StreamPage) -> None:
    assert page(stream, query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "n=many",
        "n=-1",
        "n=0",
        "c=abc",
        "c=99999999999999999",
        "c=-1",
        "ot=yesterday",
        "nt=x",
        "xt=nonsense",
        "xt=feed/a",
        "xt=user/-/label/X",
        "it=feed/a&it=feed/b",
    ],
)
def test_what_is_not_understood_is_refused_and_not_left_out(query: str) -> None:
    with pytest.raises(RefusedCall) as refused:
        page(ALL, query)
    assert refused.value.status == 400
