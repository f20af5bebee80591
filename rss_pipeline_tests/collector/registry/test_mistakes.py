"""The registry: every mistake is reported at once, with its line and its remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.features import FEED_KEYS
from rss_pipeline_tests.collector.registry.reading import mistakes, mistakes_or_none


def test_all_mistakes_are_reported_at_once_in_the_order_of_lines() -> None:
    text = """defaults:
  imagse: no
feeds:
  - url: https://example.org/a
    intervall: 30m
    interval: 30
  - url: https://example.org/b
    images: maybe
    key: gid
    title:
  - title: No address
  - [https://example.org/c]
  -
  - url: https://example.org/d
    interval: 1m
    tags: [a, b]
  - {url: https://example.org/e, interval: 2d}
  - {name: x, url: [y]}
feed: []
"""
    assert mistakes(text) == [
        'line 2: defaults.imagse: unknown key; did you mean "images"?',
        'line 5: feeds[0].intervall: unknown key; did you mean "interval"?',
        'line 6: feeds[0].interval: "30" is not an interval; '
        'write auto, 30m, 2h, 1h30m or 1d ("30m" for minutes)',
        'line 8: feeds[1].images: "maybe" is not a truth value; write true or false',
        'line 9: feeds[1].key: "gid" is not an item key; write guid, link or title+date',
        "line 10: feeds[1].title: has no value; write one, or remove the key",
        "line 11: feeds[2].url: is missing; write the feed's address, `url: https://example.org/feed.xml`",
        "line 12: feeds[3]: is a list; write keys and values, `url: ...`",
        "line 13: feeds[4]: is empty; write `- url: https://example.org/feed.xml`, or remove the line",
        'line 15: feeds[5].interval: "1m" is too short, publishers block such readers; '
        "write 5m or more, or auto",
        "line 16: feeds[5].tags: unknown key; remove it "
        "(known here: url, id, title, folder, interval, key, images, keep, max_size, enabled, watch, "
        f"{', '.join(('allow_private', 'headers', 'shared', *FEED_KEYS))})",
        'line 17: feeds[6].interval: "2d" is too long, '
        "each feed is visited at least once a day; write 24h or less",
        "line 18: feeds[7].url: is a list; write a single value",
        'line 18: feeds[7].name: unknown key; did you mean "title"?',
        'line 19: feed: unknown key; did you mean "feeds"?',
    ]


def test_mistakes_of_syntax_hide_none_of_the_other_entries() -> None:
    text = """feeds:
  - url: https://example.org/a
    intervall: 30m
  - url: https://example.org/b
    title: Foo: bar
  - url: !include c
    images: maybe
  - url: *there
  - ? [a, b]
    : c
  - title: "not closed
    interval: 30
  - url: https://example.org/a
    key: gid
"""
    found = mistakes(text)
    assert [int(mistake.removeprefix("line ").partition(":")[0]) for mistake in found] == [
        *(3, 5, 6, 6, 7, 8, 8, 9, 9, 11, 13, 14),
    ]
    assert "line 13: feeds[6].url: is the same URL as feeds[0] in line 2; remove one of them" in found


@pytest.mark.parametrize(
    "text",
    [
        "- https://example.org/a\n\t- https://example.org/b\n",
        "feeds:\n  - https://example.org/a\n - https://example.org/b\n",
        "- {url: https://example.org/a\n- https://example.org/b\n",
    ],
)
def test_a_mistake_of_syntax_is_reported_once(text: str) -> None:
    assert len(mistakes(text)) == 1


def test_an_entry_that_cannot_be_read_is_no_mistake_of_another_kind() -> None:
    assert len(mistakes("feeds:\n  - title: Foo: bar\n")) == 1
    assert len(mistakes("feeds:\n- title: Foo: bar\ndefaults: {interval: 1}\n")) == 2
    assert len(mistakes("- a: b: c\n" * 100)) == 20


@pytest.mark.parametrize(
    "written", ["", "hourly", "30 minutes", "PT30M", "30s", "-5m", "1.5h", "99999999999d", "٣٠m", "m"]
)
def test_an_interval_that_is_none_is_refused(written: str) -> None:
    (mistake,) = mistakes(f'- url: https://example.org/\n  interval: "{written}"\n')
    assert mistake.startswith("line 2: feeds[0].interval: ")
    assert "write auto, 30m, 2h, 1h30m or 1d" in mistake


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file is empty; write a list of feeds"),
        ("# nothing yet\n", "the file is empty; write a list of feeds"),
        ("feeds:\n", "line 1: feeds: has no entries; write `feeds: []` for an empty list"),
        ("feeds: x\n", "line 1: feeds: is a single value; write a list of feeds"),
        ("title: x\nurl: y\n", "line 1: feeds: is missing; write `feeds:` and below it"),
        ("feeds: []\ndefaults: []\n", "line 2: defaults: is a list; write keys and values"),
        ("https://example.org/\n", "line 1: feeds: is a single value; write a list of feeds"),
        ("<?xml version='1.0'?><opml/>", "line 1: this is XML (OPML?), not YAML"),
        ("feeds:\n\t- url: x\n", "line 2: a tab is used where YAML requires spaces; indent with spaces"),
        ("feeds:\n  - url: x\n  \t  title: y\n", "line 3: a tab is used where YAML requires spaces"),
        (
            "- title: Foo: bar\n",
            'line 1: a colon is not allowed here; put a text that contains ": " in quotes',
        ),
        ("- title: @foo\n", 'line 1: a text cannot begin with "@"; put it in quotes'),
        ("- title: 100% sure\n- title: %x\n", 'line 2: a text cannot begin with "%"; put it in quotes'),
        ('- url: a\n- title: "Foo\n- url: b\n', "line 2: a quote is opened here and not closed"),
        ('- title: "C:\\Users"\n', "line 1: unknown escape in double quotes"),
        ("- [a, b\n- c\n", "check indentation, quotes and brackets"),
        ("- url: a\n   title: b\n", "line 2: a colon is not allowed here"),
        ("- url: a\n title: b\n", "line 2: not valid YAML here: "),
        ("- a\n--- \n- b\n", "line 2: a second document begins here; write all feeds into one document"),
        ("- url: *there\n", "line 1: *there refers to no anchor above it"),
        ("- &a [*a]\n", "line 1: *a refers to no anchor above it"),
        ("- url: !include x\n", 'line 1: the tag "!include" has no meaning here; remove it'),
        ("- !!python/object/apply:os.system [ls]\n", "line 1: the tag "),
        ("- <<: x\n  url: y\n", "line 1: `<<` takes an alias of a mapping"),
        ("- ? [a, b]\n  : c\n", "line 1: a list or mapping cannot be a key"),
        ("- url: a\n- title: x\x07y\n", "line 2: the character U+0007 is not allowed in YAML; remove it"),
        (
            "- url: https://example.org/\n  url: x\n",
            'line 2: the key "url" is here again (first in line 1)',
        ),
        ('[{"url": "https://example.org/", "title": "\\ud800"}]', "line 1: "),
    ],
)
def test_broken_syntax_is_reported_with_its_line(text: str, expected: str) -> None:
    assert any(mistake.startswith(expected) or expected in mistake for mistake in mistakes(text)), mistakes(
        text
    )


@pytest.mark.parametrize(
    "text", ["[" * 2_000_000, "{a: " * 500_000, "- " * 1_000_000, "[" * 50_000 + "]" * 50_000]
)
def test_nesting_that_overflows_libyaml_s_own_composer_is_a_mistake(text: str) -> None:
    assert mistakes(text) == ["line 1: the values are nested too deeply for a list of feeds"]


def test_ten_lines_of_aliases_that_mean_billions_are_refused_at_once() -> None:
    lines = ["feeds:", "  - &a [x, x, x, x, x, x, x, x, x]"]
    lines += [f"  - &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]" for n in range(9)]
    assert "the aliases of this file repeat more than a million values" in mistakes("\n".join(lines))[0]


@given(st.text(max_size=200))
def test_any_text_is_a_list_of_feeds_or_mistakes(text: str) -> None:
    assert "a refusal without a mistake" not in mistakes_or_none(text)
