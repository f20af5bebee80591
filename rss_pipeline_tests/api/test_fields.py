"""Which text a request may bring."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis.strategies import from_regex
from pydantic import TypeAdapter, ValidationError

from rss_pipeline.api.fields import ADDRESS_CHARACTERS, ADDRESS_PATTERN, Line, Text
from rss_pipeline.pipeline.reading.addresses import Address, address_policy, read_address
from rss_pipeline.settings import Settings

LINE: TypeAdapter[str] = TypeAdapter(Line)
TEXT: TypeAdapter[str] = TypeAdapter(Text)
POLICY = address_policy(Settings.from_environ({}, cwd=Path("/")))


@pytest.mark.parametrize("text", ["", "News", "Œuvres", "新聞", "👩\u200d💻", "نی\u200cم", "a\u00adb"])
def test_text_of_every_script_is_taken(text: str) -> None:
    assert LINE.validate_python(text) == TEXT.validate_python(text) == text


@pytest.mark.parametrize("text", ["\0", "a\x1bb", "\x7f", "\x9f", "\ud800"])
def test_what_no_store_takes_is_refused(text: str) -> None:
    for adapter in (LINE, TEXT):
        with pytest.raises(ValidationError):
            adapter.validate_python(text)


def test_a_line_has_no_breaks_and_a_text_may() -> None:
    assert TEXT.validate_python("a\n\tb") == "a\n\tb"
    for text in ("a\nb", "a\tb", "a\rb"):
        with pytest.raises(ValidationError):
            LINE.validate_python(text)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(from_regex(re.compile(ADDRESS_PATTERN.removesuffix("$") + r"\Z")))
def test_every_address_of_the_pattern_is_one_that_can_be_requested(text: str) -> None:
    assert isinstance(read_address(text[:ADDRESS_CHARACTERS], POLICY), Address)


@pytest.mark.parametrize(
    "text",
    [
        "planet.example",
        "https://www.planet.example/feed?of=all",
        "http://xn--bcher-kva.example/",
        "bücher.example",
    ],
)
def test_usual_addresses_are_in_the_pattern(text: str) -> None:
    assert re.search(ADDRESS_PATTERN, text)


@pytest.mark.parametrize("text", ["planet", "ftp://planet.example/", "ann:secret@planet.example", "10.0.0.1"])
def test_what_is_never_requested_is_not_in_the_pattern(text: str) -> None:
    assert not re.search(ADDRESS_PATTERN, text)
