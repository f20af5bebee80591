"""Which text a request may bring."""

import re
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from rss_pipeline.api.request_values import ADDRESS_CHARACTERS, ADDRESS_PATTERN, Line
from rss_pipeline.reader.subscribe import Address, address_policy, read_address
from rss_pipeline.settings import Settings

LINE: TypeAdapter[str] = TypeAdapter(Line)
POLICY = address_policy(Settings.from_environ({}, cwd=Path("/")))


@pytest.mark.parametrize("text", ["", "News", "Œuvres", "新聞", "👩\u200d💻", "نی\u200cم", "a\u00adb"])
def test_text_of_every_script_is_taken(text: str) -> None:
    assert LINE.validate_python(text) == text


@pytest.mark.parametrize("text", ["\0", "a\x1bb", "\x7f", "\x9f", "\ud800"])
def test_what_no_store_takes_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        LINE.validate_python(text)


def test_a_line_has_no_breaks() -> None:
    for text in ("a\nb", "a\tb", "a\rb"):
        with pytest.raises(ValidationError):
            LINE.validate_python(text)


CHARACTERS = [chr(code) for code in range(0x21, 0xD800)]


def is_taken(text: str) -> bool:
    return isinstance(read_address(text, POLICY), Address)


def test_every_path_of_the_pattern_can_be_requested() -> None:
    start = "https://planet.example/"
    # What is behind a # is not looked at.
    found = [each for each in CHARACTERS if each != "#" and re.search(ADDRESS_PATTERN, start + each)]
    assert len(found) > 3_000
    for first in range(0, len(found), 1_900):
        assert is_taken(start + "".join(found[first : first + 1_900]))


@pytest.mark.parametrize("name", ["{}.example", "{}a.example", "a{}.example", "a{}a.example", "planet.a{}"])
def test_every_letter_of_a_name_in_the_pattern_can_be_requested(name: str) -> None:
    letters = [*CHARACTERS[:1_200], *CHARACTERS[1_200::7]]
    found = [each for each in letters if re.search(ADDRESS_PATTERN, name.format(each))]
    assert len(found) > 300
    assert [each for each in found if not is_taken(name.format(each))] == []


@pytest.mark.parametrize(
    "name",
    [
        ".".join(["a" * 31] * 3 + ["b" * 63] * 2 + ["c" * 24]),
        ".".join(["\u4fff\u4e00" * 6] * 4),
        ".".join(["\uaeff\uac00" * 6] * 4),
        ".".join(["\u4fffz\u044f\uac00" * 3] * 4),
    ],
    ids=["latin", "han", "hangul", "mixed"],
)
def test_the_longest_names_of_the_pattern_can_be_requested(name: str) -> None:
    assert re.search(ADDRESS_PATTERN, name)
    assert is_taken(name)
    assert is_taken((name + "/" + "a" * ADDRESS_CHARACTERS)[:ADDRESS_CHARACTERS])


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
