"""Every form in which a client sends an item's id is the number of one item; what is none is refused."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rss_pipeline.api.google_reader.answers import Refused
from rss_pipeline.api.google_reader.ids import item_number, item_numbers, long_id
from rss_pipeline.storage.database import MAX_INTEGER

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
    with pytest.raises(Refused) as refused:
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
    with pytest.raises(Refused):
        item_numbers(())
