"""`streams:` of feeds.yaml: each mistake with its line, and their text in the database."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from rss_pipeline.collector.models.feed import Registry
from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.errors import RegistryError
from rss_pipeline.features.streams.model import (
    FieldSelector,
    StreamSpec,
    streams_of,
    streams_of_json,
    streams_to_json,
)

SEED = """
- url: https://blog.example.jp/idol/index.rdf
  id: idol
  streams:
    haruna: {author: 小嶋 陽菜}
    minami: {author: [高橋 みなみ, たかみな]}
    staff:  {category: スタッフ, not: {title: "*お知らせ*"}}
    sound:  {xpath: "//item[enclosure]"}
- url: https://natalie.example/owarai.xml
  id: natalie
"""


def read(text: str, environ: Mapping[str, str] | None = None) -> Registry:
    return parse_registry(text, path=Path("feeds.yaml"), environ=environ or {})


def mistakes(text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    with pytest.raises(RegistryError) as caught:
        read(text, environ)
    return caught.value.mistakes


def stream(selector: str) -> str:
    return f"- url: https://a.example/\n  id: a\n  streams:\n    one: {selector}\n"


def test_the_streams_of_the_manual_arrive() -> None:
    registry = read(SEED)
    idol, natalie = registry.feeds
    assert {each.name: each.selector for each in streams_of(idol)} == {
        "haruna": FieldSelector(author=("小嶋 陽菜",)),
        "minami": FieldSelector(author=("高橋 みなみ", "たかみな")),
        "staff": FieldSelector(category=("スタッフ",), negated=FieldSelector(title=("*お知らせ*",))),
        "sound": "//item[enclosure]",
    }
    assert natalie.feature_keys == {}


@pytest.mark.parametrize(
    ("selector", "line", "mistake"),
    [
        ("{autor: x}", 4, 'one.autor: unknown key; did you mean "author"?'),
        ("{tags: x}", 4, 'one.tags: unknown key; did you mean "category"?'),
        ("{color: x}", 4, "unknown key; remove it (known here: author, category, title, link, not, xpath)"),
        ("{author: ''}", 4, 'one.author: is empty; write a text, or "*" for any'),
        ("{author: '\u3000'}", 4, "is empty"),
        ("\n      author:\n      - x\n      - ' '", 7, "one.author[1]: is empty"),
        ("{author: []}", 4, "one.author: has no entries"),
        ("{author: null}", 4, "one.author: has no value"),
        ("{author: {a: b}}", 4, "one.author: is a mapping; write a value, or a list of values"),
        ("{author: [[a]]}", 4, "one.author[0]: is a list; write a single value"),
        ("{}", 4, "one: selects nothing; write one of author, category, title, link, not, xpath"),
        ("jane", 4, "one: is a single value; write a selector, such as {author: Jane Doe}"),
        ("", 4, "one: has no value; write a selector"),
        ("{not: {}}", 4, "one.not: has no conditions"),
        ("{author: x, not: y}", 4, "one.not: is a single value"),
        ("{author: x, not: {not: {title: y}}}", 4, "one.not.not: is inside another not"),
        ("{not: {xpath: //item}}", 4, "one.not.xpath: unknown key"),
        ("\n      author: x\n      xpath: //item", 6, "one.xpath: cannot be used together with author"),
        ("{xpath: '//item['}", 4, 'one.xpath: "//item[" is no XPath 1.0 expression'),
        ("{xpath: '//foo:item'}", 4, 'one.xpath: the prefix "foo:" is not known'),
        ("{xpath: [//item]}", 4, "one.xpath: is a list; write a single value"),
        ("{author: '${NONE}'}", 4, "one.author: the environment variable NONE is not set"),
        ("{title: " + "x" * 10_000 + "}", 4, "one.title: has 10,000 characters; at most 2,000 are read"),
        ("{xpath: //item" + "/x" * 5_000 + "}", 4, "one.xpath: has 10,006 characters; at most 2,000"),
        (f"{{author: {[f'n{n}' for n in range(101)]}}}", 4, "one.author: has 101 patterns; at most 100"),
    ],
)
def test_a_mistake_in_a_stream_has_its_line(selector: str, line: int, mistake: str) -> None:
    found = mistakes(stream(selector))
    assert found[0].startswith(f"line {line}: feeds[0].streams.one")
    assert mistake in found[0]
    assert len(found) == 1


@pytest.mark.parametrize(
    ("streams", "line", "mistake"),
    [
        ("\n    One: {author: x}", 4, "streams.One: this is not a valid name of a stream; write 1 to 80"),
        (
            "\n    one: {author: x}\n    one: {author: y}",
            5,
            'the key "one" is here again (first in line 4); keep one of them',
        ),
        (" [jane]", 3, "streams: is a list; write a name and a selector on each line below"),
        ("", 3, "streams: has no value; write a name and a selector"),
        (" {}", 3, "streams: has no streams"),
        (
            "".join(f"\n    s{n}: {{author: x}}" for n in range(2_000)),
            4,
            "streams: has 2,000 streams; at most 200 are read",
        ),
        (
            "".join(f"\n    s{n}: {{author: '{'x' * 2_000}'}}" for n in range(150)),
            4,
            "bytes of selectors; at most 200,000 are read",
        ),
    ],
)
def test_a_mistake_in_the_list_of_streams_has_its_line(streams: str, line: int, mistake: str) -> None:
    [found] = mistakes(f"- url: https://a.example/\n  id: a\n  streams:{streams}\n")
    assert found.startswith(f"line {line}:")
    assert mistake in found


def test_aliases_repeat_a_selector() -> None:
    text = stream("&s {author: Jane}") + "    two: {<<: *s, title: x}\n"
    [feed] = read(text).feeds
    assert streams_of(feed)[1].selector == FieldSelector(author=("Jane",), title=("x",))


def test_streams_come_back_from_their_text() -> None:
    streams = (
        StreamSpec(name="haruna", selector=FieldSelector(author=("小嶋 陽菜", "Haruna"))),
        StreamSpec(
            name="staff",
            selector=FieldSelector(category=("スタッフ",), negated=FieldSelector(title=("*お知らせ*",))),
        ),
        StreamSpec(name="sound", selector="//item[enclosure]"),
    )
    text = streams_to_json(streams)
    assert streams_of_json(text) == streams
    assert streams_to_json(streams_of_json(text)) == text
    assert streams_to_json(()) is None
    assert streams_of_json(None) == ()
