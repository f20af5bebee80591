"""As much of an item as its store has room for: a text that can be read, whatever is large about it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rss_pipeline.storage.database import LARGE_ITEM_BYTES, MAX_VALUE_BYTES
from rss_pipeline.storage.items.items import COLUMNS, fitted, start_of_html
from rss_pipeline_tests.support.cost import costs_less_than


def row(**values: str) -> dict[str, str | None]:
    return {**dict.fromkeys(COLUMNS), "guid": "1", "enclosures": "[]", "categories": "[]", **values}


def test_a_row_that_fits_stays_as_it_is() -> None:
    for each in (row(), row(content_html="x" * 1_990_000), row(summary="x" * 1_990_000)):
        assert fitted(each, item_bytes=MAX_VALUE_BYTES) == each
    large = row(content_html="x" * 7_000_000, summary="s" * 900_000)
    assert fitted(large, item_bytes=LARGE_ITEM_BYTES) == large


def test_the_text_has_half_the_row_and_the_rest_goes_before_it() -> None:
    both = fitted(row(content_html="x" * 3_000_000, summary="s" * 900_000), item_bytes=MAX_VALUE_BYTES)
    assert [len(both[name] or "") for name in ("content_html", "summary")] == [1_097_995, 900_000]
    text = fitted(row(content_html="x" * 3_000_000, summary="s" * 1_100_000), item_bytes=MAX_VALUE_BYTES)
    assert [len(text[name] or "") for name in ("content_html", "summary")] == [1_997_995, 0]
    assert text["content_omitted"] == (
        "4,102,005 bytes do not fit into a row of 2,000,000; its text ends after 1,997,995 bytes; left out:"
        " summary"
    )
    short = fitted(row(content_html="short", summary="s" * 2_000_000), item_bytes=MAX_VALUE_BYTES)
    assert (short["content_html"], short["summary"]) == ("short", None)


def test_twice_is_as_once() -> None:
    large = row(content_html="<p>word</p>" * 300_000, title="t" * 1_500_000)
    once = fitted(large, item_bytes=MAX_VALUE_BYTES)
    assert once != large
    assert fitted(once, item_bytes=MAX_VALUE_BYTES) == once
    assert fitted(once, item_bytes=LARGE_ITEM_BYTES) == once


@pytest.mark.parametrize(
    ("html", "start"),
    [
        ("<p>one</p><p>two</p>", "<p>one</p><p>two</p>"),
        ("<p>one</p>" * 9, "<p>one</p><p>one</p>"),
        ("<p>123456789012</p><a href='x'>", "<p>123456789012</p>"),
        ("0123456789012345 &amp; b c d", "0123456789012345 "),
        ("012345678901234567 & b c d e", "012345678901234567 "),
        ("12 < 13 and 14 and 15 and 16", "12 "),
        ("ééééééééééééééééé", "éééééééééé"),
    ],
)
def test_the_start_of_a_text_ends_before_what_would_be_cut(html: str, start: str) -> None:
    assert start_of_html(html, 20) == start


@pytest.mark.parametrize("item_bytes", [MAX_VALUE_BYTES, LARGE_ITEM_BYTES])
def test_images_within_a_large_text_go_before_its_words(item_bytes: int) -> None:
    """Readers show none of them, and would have to read past them to the words."""
    image = f'<img alt="a" src="data:image/png;base64,{"iVBORw0KGgo" * 100_000}">'
    large = row(content_html=f"{image}<p>The first words.</p>{image}<p>The last words.</p>")
    cut = fitted(large, item_bytes=item_bytes)
    assert cut["content_html"] == (
        '<img alt="a" src="data:,"><p>The first words.</p><img alt="a" src="data:,"><p>The last words.</p>'
    )
    assert cut["content_omitted"].endswith("a row of 2,000,000; images within its text are left out")
    one = row(content_html=f"{image}<p>The only words.</p>")
    assert fitted(one, item_bytes=item_bytes) == one


@example("&&;", 2)
@example("&\n;", 2)
@given(st.text("ab<>&;\"'=é\n ", max_size=60), st.integers(0, 80))
def test_it_is_never_larger_and_always_a_start(html: str, most: int) -> None:
    start = start_of_html(html, most)
    assert len(start.encode()) <= most
    assert html.startswith(start)
    if len(start) < len(html):
        assert not re.search(r"<[^<>]*\Z", start)
        assert not re.search(r"&[#0-9A-Za-z]*\Z", start) or re.match(r"[^#0-9A-Za-z;]", html[len(start) :])


@pytest.mark.parametrize("part", ['"data:', "data:", "<", "&", '"', "\n", "é"])
def test_no_text_takes_long(part: str) -> None:
    with costs_less_than(2):
        fitted(row(content_html=part * (10_000_000 // len(part))), item_bytes=MAX_VALUE_BYTES)
