"""Streams proposed for a feed: what is pasted into feeds.yaml is read without a mistake, and selects."""

from pathlib import Path

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.features.streams.model import FieldMatcher, StreamSpec, streams_of
from rss_pipeline.features.streams.survey import MOST, CountedValue, Tally, as_yaml, proposed_streams

FEED = "feeds:\n  - url: https://a.example/feed\n    id: a\n"


def counted(*values: str) -> list[CountedValue]:
    return [CountedValue(value, 3) for value in values]


def names(*authors: str, taken: tuple[str, ...] = ()) -> list[str]:
    return [stream.name for stream in proposed_streams("author", counted(*authors), taken=taken)]


def pasted(block: str) -> tuple[StreamSpec, ...]:
    """The streams of feeds.yaml with this block below its feed; the terminal may have changed it."""
    lines = "\n".join(one_line(line) for line in block.split("\n"))
    return streams_of(parse_registry(f"{FEED}{lines}\n", path=Path("feeds.yaml"), environ={}).feeds[0])


def test_names_are_the_letters_of_the_authors_and_unique() -> None:
    assert names("Jane Doe", "JANE-DOE!", "Zoë Müller") == ["jane-doe", "jane-doe-2", "zoe-muller"]
    assert names("Søren Kierkegaard", "A" * 200)[1] == "a" * 40


def test_authors_without_latin_letters_are_numbered() -> None:
    assert names("小嶋 陽菜", "高橋 みなみ", "ann") == ["author-1", "author-2", "ann"]
    assert names("小嶋 陽菜 (AKB48)", "高橋 みなみ (AKB48)") == ["author-1", "author-2"]


def test_names_of_the_feeds_other_streams_are_left() -> None:
    assert names("Jane", "小嶋", taken=("jane", "author-1")) == ["jane-2", "author-2"]


def test_values_of_one_item_are_proposed_only_if_all_are_such() -> None:
    some = [CountedValue("A", 5), CountedValue("B", 2), CountedValue("C", 1)]
    assert [stream.written() for stream in proposed_streams("category", some)] == [
        {"name": "a", "category": ["A"]},
        {"name": "b", "category": ["B"]},
    ]
    assert [stream.name for stream in proposed_streams("author", some[2:])] == ["c"]


def test_many_authors_give_a_block_of_bearable_length() -> None:
    assert len(names(*(f"author {n}" for n in range(500)))) == MOST


def test_the_block_is_as_a_person_would_write_it() -> None:
    streams = proposed_streams("author", counted("小嶋 陽菜", "Jane: 'D' #1", "yes"))
    assert as_yaml(streams) == (
        "    streams:\n"
        "      author-1: {author: 小嶋 陽菜}\n"
        "      jane-d-1: {author: 'Jane: ''D'' #1'}\n"
        "      'yes': {author: 'yes'}"
    )
    assert pasted(as_yaml(streams)) == streams
    assert as_yaml(streams, with_key=False).splitlines()[0] == "      author-1: {author: 小嶋 陽菜}"


# The parser drops U+0000.
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), max_size=8
    )
)
@example(["${HOME}", "$${A}"])
@example(["\u200fאבג", "\u202eabc", "a\u2028b"])
@example(["null", "123", "- x", "{a: b}", "*", "&a", "😀", "\x85", "\x9b[31m", "!tag"])
@example(["x" * 3_000, "ok", "b"])
def test_what_is_pasted_is_valid_and_selects_its_authors(authors: list[str]) -> None:
    tally = Tally()
    for author in authors:
        tally.add([author, author])
    streams = proposed_streams("author", tally.counted())
    if not streams:
        return
    read = pasted(as_yaml(streams))
    assert [stream.name for stream in read] == [stream.name for stream in streams]
    matcher = FieldMatcher(read)
    items_of: dict[str, int] = dict.fromkeys(matcher.names, 0)
    for author in authors:
        for name in matcher.match(title=None, link=None, authors=[author], categories=[]):
            items_of[name] += 1
    proposed = dict(zip(items_of, [n.items for n in tally.counted() if len(n.value) <= 2_000], strict=False))
    assert all(items_of[name] >= items for name, items in proposed.items())


def test_spellings_that_no_selector_distinguishes_are_counted_together() -> None:
    tally = Tally()
    for values in (
        ["Jane Doe", "jane  doe"],
        ["JANE\u3000DOE"],
        ["JANE\u3000DOE"],
        ["ｊａｎｅ doe"],
        ["Bo", " "],
    ):
        tally.add(values)
    assert tally.counted() == (CountedValue("JANE DOE", 4), CountedValue("Bo", 1))


def test_the_block_is_plain_yaml() -> None:
    block = as_yaml(proposed_streams("author", counted("a", "b")))
    assert yaml.safe_load(block) == {"streams": {"a": {"author": "a"}, "b": {"author": "b"}}}
