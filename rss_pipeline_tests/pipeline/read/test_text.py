"""The text of an item's HTML: what a person reads of it in a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.pipeline.read.terminal_text import Block, item_text

BASE = "https://example.org/posts/1"


def lines(html: str) -> list[str]:
    """Its blocks with their marks; an empty line before each that is not tight."""
    found: list[str] = []
    for block in item_text(html, bases=(BASE,)).blocks:
        if not block.is_tight:
            found.append("")
        first, *others = block.text.split("\n")
        found += [block.first + first, *(block.rest + other for other in others)]
    return found


def test_paragraphs_and_headings() -> None:
    html = "Before<h2>A\n heading</h2><p>One  <b>two</b>\n three.</p><div><p>Four<br>five</div>after"
    assert lines(html) == [
        "",
        "Before",
        "",
        "A heading",
        "",
        "One two three.",
        "",
        "Four",
        "five",
        "",
        "after",
    ]
    assert [block.is_heading for block in item_text(html, bases=()).blocks] == [
        False,
        True,
        False,
        False,
        False,
    ]


def test_lists_have_bullets_and_numbers_and_are_indented() -> None:
    html = "<ul><li>a<li>b<ol><li>b1</li><li><p>b2</p><p>more of b2</p></ol><li>c</ul>"
    assert lines(html) == [
        *("- a", "- b", "  1. b1"),
        *("", "  2. b2", "", "    more of b2"),
        "- c",
    ]


def test_quotes_and_code_keep_their_marks_and_lines() -> None:
    html = (
        "<blockquote><p>Said<blockquote>before</blockquote></blockquote><pre>def f():\n    return  1\n</pre>"
    )
    assert lines(html) == ["", "> Said", "", "> > before", "", "def f():", "    return  1"]


def test_links_are_numbered_once_for_each_address_and_made_absolute() -> None:
    html = (
        '<p><a href="/a?x=1&amp;y=2">One</a>, <a href="https://b.example/">two</a>,'
        ' <a href="/a?x=1&amp;y=2">one</a>, <a href="#note">a note</a>,'
        ' <a href="javascript:alert(1)">code</a>, <a>none</a>.</p>'
    )
    found = item_text(html, bases=(None, BASE))
    assert found.blocks == [Block(text="One [1], two [2], one [1], a note, code, none.")]
    assert found.links == ["https://example.org/a?x=1&y=2", "https://b.example/"]


def test_images_have_their_description_and_tables_a_line_for_each_row() -> None:
    html = (
        '<p><img alt="A  cat" src=x><img src=y></p>'
        "<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>"
    )
    assert lines(html) == ["", "[image: A cat][image]", "a | b", "1 | 2"]


def test_scripts_styles_and_comments_are_no_text_but_what_is_behind_them_is() -> None:
    html = (
        "<p>a<script>no()</script>b<!-- no -->c<style>no{}</style>d<svg><style>no</style></svg>e<?no?>f</p>"
    )
    assert lines(html) == ["", "abcdef"]


def test_nothing_is_lost_of_what_is_no_html_or_cannot_be_parsed() -> None:
    assert lines("Tom & Jerry < 3") == ["", "Tom & Jerry < 3"]
    assert lines(" \n ") == lines("<p></p>") == []
    tag = f"<p {' '.join(f'a{n}' for n in range(600))}>text"
    assert lines(f"{tag} &amp;") == ["", "text &"]


def test_ten_thousand_levels_are_no_recursion() -> None:
    assert lines("<div>" * 1_000 + "deep") == lines("<div>" * 10_000 + "deep") == ["", "deep"]
    assert lines("<ul><li>" * 200 + "deep") == ["  " * 8 + "- deep"]


@given(st.text(alphabet=st.sampled_from("<>/abpreliuo &;\n\"='!-")))
def test_any_text_becomes_blocks(html: str) -> None:
    for block in item_text(html, bases=(BASE,)).blocks:
        assert block.text.strip()
