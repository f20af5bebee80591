"""New entries in feeds.yaml: what was written before stays as it was, and the loader reads the new ones."""

import json
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.collector.registry.new_entries import NewEntry, lists_nothing, with_entries

ROOT = Path(__file__).parents[3]
NEW = [
    NewEntry(url="https://new.example/feed", title="News: today #1", folder="News/Europe"),
    NewEntry(url="https://plain.example/feed"),
]

LAYOUTS = {
    "the file of a fresh clone": (ROOT / "feeds.yaml").read_text("utf-8"),
    "a list without `feeds:`": "# mine\n- https://a.example/x   # why\n- url: https://b.example/y\n\n# end\n",
    "dashes below the key": "feeds:\n- https://a.example/x\n- url:   https://b.example   # odd\n  keep: 3d\n",
    "four blanks": "feeds:\n    -   url: https://b.example/y\n        title: 1_000.50\n    # - off\n\n\n",
    "more keys behind": "feeds:\n  - https://a.example/x\n\n  # between\ndefaults: {interval: 30m}   # all\n",
    "anchors": "defaults: &d\n  keep: 3d\nfeeds:\n  - url: https://a.example/x\n    <<: *d\n"
    "  - {url: 'https://b.example/x', title: \"B\"}\n",
    "a text of some lines": "feeds:\n  - url: https://a.example/x\n    title: |\n      long\n      title\n\n",
    "an alias at the end": "feeds:\n  - &a https://a.example/x\n  - url: https://b.example\n    title: *a\n",
    "an end of document": "%YAML 1.1\n---\nfeeds:\n  - https://a.example/é😀\n...\n",
    "lines of Windows": "feeds:\r\n  - https://a.example/x\r\n  # c\r\ndefaults: {}\r\n",
    "no last newline": "feeds:\n  - https://a.example/x",
    "an anchor and tags": "feeds: &all !!seq\n    # c\n    - !!str https://a.example/x\n",
    "tabs between values": "feeds:\t\n  - url:\thttps://a.example/x\t# c\n",
    "brackets": "feeds: [https://a.example/x]  # c\ndefaults: {keep: 3d}\n",
    "JSON": json.dumps(
        {"feeds": ["https://a.example/x", {"url": "https://b.example", "title": "x"}]}, indent=2
    ),
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_new_entries_come_behind_the_others_and_no_other_character_changes(text: str) -> None:
    before = parse_registry(text, path=Path("feeds.yaml"), environ={}).feeds
    after = with_entries(text, NEW)
    read = parse_registry(after, path=Path("feeds.yaml"), environ={}).feeds
    assert read[: len(before)] == before
    assert [(spec.url, spec.title, spec.folder) for spec in read[len(before) :]] == [
        ("https://new.example/feed", "News: today #1", "News/Europe"),
        ("https://plain.example/feed", None, None),
    ]
    start = next((i for i, (a, b) in enumerate(zip(text, after, strict=False)) if a != b), len(text))
    assert after.startswith(text[:start])
    assert after.endswith(text[start:]), "characters were only inserted, in one place"
    assert ("\r\n" in text) == ("\r\n" in after)
    assert "\n" not in after.replace("\r\n", "") or "\r\n" not in text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# mine\n",
        "# mine",
        "--- # mine\n",
        "feeds: []\n",
        "# a\nfeeds: []  # none yet\n# z\n",
        "feeds: [\n  # none yet\n]\n",
        "{feeds: [], defaults: {}}\n",
        "[]",
        "[]  # none yet\n",
        "defaults: {}\nfeeds: [\n]\n",
        "feeds: &x []\n",
        "feeds:",
        "feeds:   # mine\n  # - https://old.example/\ndefaults: {keep: 3d}\n",
        "# a\r\nfeeds: ~  # none yet\r\n",
    ],
)
def test_the_first_entries_of_an_empty_list(text: str) -> None:
    after = with_entries(text, NEW)
    read = parse_registry(after, path=Path("feeds.yaml"), environ={}).feeds
    assert [spec.url for spec in read] == ["https://new.example/feed", "https://plain.example/feed"]
    kept = [line.replace("[]", "").replace("~", "").split() for line in text.splitlines() if "#" in line]
    assert all(line in [each.replace("[]", "").split() for each in after.splitlines()] for line in kept)
    assert "\n" not in after.replace("\r\n", "") or "\r\n" not in text


@pytest.mark.parametrize(
    "text", ["[", "feeds: {}\n", "feeds: *x\n", "feeds: []\n", "x: 1\n", "- a\n", "text"]
)
def test_a_text_with_a_list_or_a_mistake_does_not_count_as_empty(text: str) -> None:
    assert not lists_nothing(text)


def test_a_list_that_cannot_be_continued_is_refused() -> None:
    with pytest.raises(ValueError, match="alias"):
        with_entries("x: &f [https://a.example/]\nfeeds: *f\n", NEW)


def test_a_text_from_outside_never_becomes_a_variable() -> None:
    entry = NewEntry(url="https://new.example/?$${TOKEN}", title="${TOKEN}", folder="a/${TOKEN}")
    (read,) = parse_registry(
        with_entries("", [entry]), path=Path("feeds.yaml"), environ={"TOKEN": "secret"}
    ).feeds
    assert (read.url, read.title, read.folder) == (
        "https://new.example/?${TOKEN}",
        "${TOKEN}",
        "a/${TOKEN}",
    )
