"""Selectors by field: which items belong to which streams, whatever the spelling."""

from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.features.streams.model import (
    FieldMatcher,
    FieldSelector,
    PatternSet,
    StreamSpec,
    names_of,
    normal,
)
from rss_pipeline_tests.support.cost import costs_less_than

ITEM: dict[str, Any] = {
    "title": "【お知らせ】 Live in Tokyo",
    "link": "https://blog.example.jp/news/1.html",
    "authors": ("小嶋　陽菜", "info@example.jp (Jane Doe)"),
    "categories": ("スタッフ", "Strasse"),
}


def matches(selector: FieldSelector, **fields: Any) -> bool:
    matcher = FieldMatcher([StreamSpec(name="s", selector=selector)])
    return matcher.match(**(ITEM | fields)) == ("s",)


def selector_of(field: str, pattern: str) -> FieldSelector:
    keys: dict[str, Any] = {field: (pattern,)}
    return FieldSelector(**keys)


@pytest.mark.parametrize(
    ("field", "pattern", "fits"),
    [
        ("author", "小嶋 陽菜", True),
        ("author", "小嶋陽菜", True),
        ("author", "小嶋", False),
        ("author", "小嶋*", True),
        ("author", "jane DOE", True),
        ("author", "info@example.jp (Jane Doe)", True),
        ("author", "info@example.jp", False),
        ("category", "ｽﾀｯﾌ", True),
        ("category", "STRAẞE", True),
        ("category", "スタ", False),
        ("title", "*お知らせ*", True),
        ("title", "*知らせ*live*", True),
        ("title", "*live*知らせ*", False),
        ("title", "＊ｌｉｖｅ＊", True),
        ("title", "*in\u200btokyo", True),
        ("link", "https://blog.example.jp/news/*", True),
        ("link", "HTTPS://BLOG.example.jp/NEWS/1.html", True),
        ("link", "*/news/*.html", True),
        ("link", "*/1.html*1.html", False),
        ("link", "https://blog.example.jp/news/1.html*https://blog.example.jp/news/1.html", False),
    ],
)
def test_a_pattern_is_the_whole_value_without_case_width_and_white_space(
    field: str, pattern: str, fits: bool
) -> None:
    assert matches(selector_of(field, pattern)) is fits


def test_a_list_means_any_several_keys_mean_all_and_not_turns_round() -> None:
    either = FieldSelector(author=("nobody", "jane doe"))
    assert matches(either)
    assert not matches(FieldSelector(author=("jane doe",), category=("other",)))
    assert matches(FieldSelector(author=("jane doe",), category=("other", "スタッフ")))
    unless = FieldSelector(category=("スタッフ",), negated=FieldSelector(title=("*お知らせ*",)))
    assert not matches(unless)
    assert matches(unless, title="Live")
    both = FieldSelector(negated=FieldSelector(title=("*お知らせ*",), author=("x",)))
    assert matches(both), "of an item without both conditions nothing is taken out"
    assert not matches(both, authors=("x",))


@pytest.mark.parametrize("field", ["author", "category", "title", "link"])
def test_a_star_means_any_value_and_not_none(field: str) -> None:
    without = {"title": None, "link": "", "authors": (), "categories": (" ",)}
    selector = selector_of(field, "*")
    assert matches(selector)
    assert not matches(selector, **without)
    assert matches(FieldSelector(negated=selector), **without)


def test_names_come_in_the_order_of_the_file_and_xpath_streams_are_left_out() -> None:
    streams = [
        StreamSpec(name="all", selector=FieldSelector(title=("*",))),
        StreamSpec(name="xpath", selector="//item"),
        StreamSpec(name="jane", selector=FieldSelector(author=("Jane Doe",))),
        StreamSpec(name="none", selector=FieldSelector(author=("Jane",))),
    ]
    matcher = FieldMatcher(streams)
    assert matcher.names == ("all", "jane", "none")
    assert [matcher.match(**ITEM) for _ in range(2)] == [("all", "jane")] * 2
    assert matcher.match(title="x", link=None, authors=(), categories=()) == ("all",)
    assert FieldMatcher([]).match(**ITEM) == ()


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_star_means_any_text(pattern: str, value: str) -> None:
    """fnmatch is the independent reading: of these letters only `*` is special to it."""
    fits = bool(PatternSet([(pattern, 0)]).matching(value))
    assert fits == (value != "" and fnmatchcase(value, pattern))


@given(st.text(max_size=20))
def test_a_value_compares_equal_to_its_other_spellings(text: str) -> None:
    assert normal(normal(text)) == normal(text)
    assert normal(f" {text}\n\u3000") == normal(text)


def test_a_pattern_of_two_thousand_characters_ends_at_once() -> None:
    """As a regular expression (a.*a.*a.*...) it would not end."""
    patterns = PatternSet([("a*" * 1_000 + "b", 0)])
    with costs_less_than(1):
        assert not patterns.matching("a" * 100_000)


def test_fifty_selectors_over_five_hundred_items_take_milliseconds() -> None:
    """The figure itself is benchmarks/streams.py's: 2 ms."""
    streams = [StreamSpec(name=f"s{n}", selector=FieldSelector(author=(f"Name {n}",))) for n in range(50)]
    some = [ITEM | {"authors": (f"name　{n % 60}",), "title": f"Title {n}"} for n in range(500)]
    with costs_less_than(0.05):
        matcher = FieldMatcher(streams)
        assert sum(len(matcher.match(**each)) for each in some) == 420


# The names that the text of an author counts for.


@pytest.mark.parametrize(
    ("author", "name"),
    [
        ("mail@e.example (Ada Lovelace)", "Ada Lovelace"),
        ("noreply@blogger.com (小嶋 陽菜)", "小嶋 陽菜"),
        (" a.b+c@e.example\n( Ada (Analyst) )\n", "Ada (Analyst)"),
        ("a@localhost(Ada)", "Ada"),
    ],
)
def test_an_address_with_a_name_counts_as_the_name_too(author: str, name: str) -> None:
    assert names_of(author) == (author, name)


@pytest.mark.parametrize(
    "author",
    [
        "Ada",
        "Ada (Analyst)",
        "mail@e.example",
        "mail@e.example ()",
        "mail@e.example ( )",
        "mail@e.example (Ada) and others",
        "see mail@e.example (Ada)",
        "@ (x)",
        "",
    ],
)
def test_any_other_text_counts_for_itself_alone(author: str) -> None:
    assert names_of(author) == (author,)


def test_long_texts_take_no_more_than_their_length() -> None:
    with costs_less_than(2):
        for part in ("a", "a@", "a@b (", "(", " ", "a@b )"):
            names_of(part * (1_000_000 // len(part)))
