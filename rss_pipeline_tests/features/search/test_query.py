"""Whatever is typed, a query is read in no time and searched for, and what is left out is said."""

from collections.abc import Iterator
from contextlib import closing
from datetime import date

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rss_pipeline.collector.sanitize.html import plain_text
from rss_pipeline.features.search.index_file import open_to_write
from rss_pipeline.features.search.search_query import MOST_TERMS, SearchQuery, Term, months, parse
from rss_pipeline.features.search.service import Marker
from rss_pipeline.features.search.sql import MOST_CHARACTERS
from rss_pipeline.features.search.words import folded, spaced
from rss_pipeline_tests.features.search.conftest import Library, new_library
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.examples import examples

TODAY = date(2026, 2, 18)


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a b", SearchQuery(terms=(Term(text="a"), Term(text="b")))),
        ('"a b" -c', SearchQuery(terms=(Term(text="a b"),), without=(Term(text="c"),))),
        ("“a b” −c", SearchQuery(terms=(Term(text="a b"),), without=(Term(text="c"),))),
        ("「東京　都」", SearchQuery(terms=(Term(text="東京 都"),))),
        (
            'author:"A B" AUTHOR:C',
            SearchQuery(terms=(Term(text="A B", is_author=True), Term(text="C", is_author=True))),
        ),
        ('feed:"A B" -feed:c', SearchQuery(feeds=("A B",), without_feeds=("c",))),
        ("after:2026-02-18", SearchQuery(after=TODAY)),
        ("after:2026 before:2026/03", SearchQuery(after=date(2026, 1, 1), before=date(2026, 3, 1))),
        ("after:1d before:today", SearchQuery(after=date(2026, 2, 17), before=TODAY)),
        ("after:yesterday", SearchQuery(after=date(2026, 2, 17))),
        ("after:2w", SearchQuery(after=date(2026, 2, 4))),
        ("a a A", SearchQuery(terms=(Term(text="a"), Term(text="A")))),
        ('"open phrase', SearchQuery(terms=(Term(text="open"), Term(text="phrase")))),
        ('a" b', SearchQuery(terms=(Term(text="a"), Term(text="b")))),
        ("title:a", SearchQuery(terms=(Term(text="title:a"),))),
        ("- -- \"\" ''", SearchQuery(left_out=("“''” has no letters or digits, and is left out.",))),
        ("a OR b", SearchQuery(terms=(Term(text="a"), Term(text="OR"), Term(text="b")))),
        (
            "after:2026-02-30",
            SearchQuery(
                terms=(Term(text="2026-02-30"),),
                left_out=("“after:2026-02-30” is no date, such as after:2026-02-18: it is read as words.",),
            ),
        ),
    ],
)
def test_what_a_text_searches_for(text: str, query: SearchQuery) -> None:
    assert parse(text, today=TODAY) == query


def test_of_very_many_words_the_first_are_searched_for() -> None:
    query = parse(" ".join(f"word{n}" for n in range(100)), today=TODAY)
    assert len(query.terms) == MOST_TERMS
    assert query.left_out == ("84 words are left out: 16 are searched for at once.",)
    query = parse("一 二 三 四", today=TODAY)
    assert [term.text for term in query.terms] == ["一", "二"]
    assert query.left_out == ("2 words of one character are left out: 2 are searched for.",)
    [sentence] = parse(f'"{"a b " * 20}"', today=TODAY).left_out
    assert sentence.endswith("the first 12 words are searched for.")


_ODD = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("\"-:*()^{}+ '\\\0\ud800\ue000%_;.,/" + "東京aあ")),
    max_size=60,
)


@given(_ODD)
@example('"" "')
@example('author:"')
@example("a AND (b")
@example("NEAR(a b, 2)")
@example("{title}: a")
@example("\ue000f1")
@example("- a:-b *")
@example("col:\0")
@settings(max_examples=examples(200))
def test_no_text_fails(shared: Library, text: str) -> None:
    for order in ("date", "rank"):
        shared.search(text, order=order)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("search")
    with (
        open_to_write(folder / "search.sqlite") as file,
        closing(migrated(folder / "rss.sqlite")) as database,
    ):
        library = new_library(database, file)
        for guid in "123":
            library.arrive("news", guid, f"a b 東京 {guid}")
        library.index()
        yield library


@pytest.mark.parametrize(
    "text",
    [
        "word " * 2_000,
        '"' * 10_000,
        '"a" ' * 2_500,
        "-" * 10_000,
        "a:" * 5_000,
        "(" * 10_000,
        "東" * 10_000,
        "東 " * 5_000,
        "author:" * 1_400,
        "after:" * 1_400,
        "\ufdfa" * 10_000,
        "*" * 10_000,
        "a\u0301" * 5_000,
    ],
)
def test_ten_thousand_characters_take_no_time(shared: Library, text: str) -> None:
    with costs_less_than(seconds=0.5):
        page = shared.search(text)
    assert page.left_out


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<!--",
        "<a",
        "<a '",
        "<script>",
        "<svg <svg",
        "&",
        "&amp",
        "<p>",
        "a<b>",
        "東京",
        '<a href="x',
        "<a href='",
    ],
)
def test_odd_html_of_the_most_characters_is_read_in_linear_time(piece: str) -> None:
    html = piece * (MOST_CHARACTERS // len(piece))
    with costs_less_than(seconds=2):
        spaced(plain_text(html))
    with costs_less_than(seconds=0.5):
        Marker(["a", "b c", "東京"]).snippet(html)


def test_the_text_of_html() -> None:
    html = """<style>p{}</style><h1>Head</h1><p title="a > b">re<b>mark</b>able &lt;x&gt;<br>line</p>
      <!-- <p>not this --><script>if (a < b) {}</script>2 < 3 <td>cell</td><td>cell</td>"""
    assert " ".join(plain_text(html).split()) == "Head remarkable <x> line 2 < 3 cell cell"


@given(st.text(max_size=80))
def test_each_character_keeps_its_place_when_it_is_folded(text: str) -> None:
    assert len(folded(text)) == len(text)


@pytest.mark.parametrize(
    ("after", "before", "found"),
    [
        (date(2026, 2, 3), date(2026, 3, 1), [(2026, 2)]),
        (date(2026, 2, 3), date(2026, 3, 2), [(2026, 2), (2026, 3)]),
        (date(2025, 12, 31), date(2028, 1, 1), [(2025, 12), (2026, None), (2027, None)]),
        (None, date(2021, 2, 1), [(2020, None), (2021, 1)]),
        (date(2029, 6, 1), None, [*((2029, month) for month in range(6, 13)), (2030, None)]),
        (date(2026, 3, 1), date(2026, 2, 1), []),
        (date(1, 1, 1), date(1, 1, 1), []),
    ],
)
def test_the_months_of_a_time(
    after: date | None, before: date | None, found: list[tuple[int, int | None]]
) -> None:
    assert list(months(after, before, first=2020, last=2030)) == found
