"""Titles as they are shown: without the markup that publishers escape in them, with all that they say."""

import pytest

from rss_pipeline.collector.sanitize.text import title_line
from rss_pipeline_tests.support.cost import costs_less_than


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("A <b>bold</b> move", "A bold move"),
        ("<i>Dune</i>, <EM>reviewed</em>", "Dune, reviewed"),
        ("H<sub>2</sub>O and x<sup>2</sup>", "H2O and x2"),
        ('<span class="kicker" lang="en">News</span>: it rains', "News: it rains"),
        ('<a href="https://a.example/?x=1">A link', "A link"),
        ("<p>One</p><p>two</p>", "One two"),
        ("One<br>two<br/>three<wbr>s", "One two threes"),
        ("<b><i>both</b></i> crossed", "both crossed"),
        ('<img class="emoji" src="x" alt="\U0001f600" /> News <img src=y>', "\U0001f600 News"),
        ("<!-- kicker -->It rains", "It rains"),
        ("<ruby>\u6f22<rt>kan</rt></ruby>, <time>May</time>", "\u6f22kan, May"),
        # Words of a title, not markup of it.
        ("How <b> differs from <strong>", "How <b> differs from <strong>"),
        ("The <dialog> element", "The <dialog> element"),
        ("<script>alert(1)</script> considered harmful", "<script>alert(1)</script> considered harmful"),
        ("a < b and c > d", "a < b and c > d"),
        ("I <3 you", "I <3 you"),
        ("vector<int> and map<string, int>", "vector<int> and map<string, int>"),
        ("</b> alone", "</b> alone"),
        ("<b></b>", ""),
        ("", ""),
        (None, ""),
    ],
)  # fmt: skip
def test_a_title_is_shown_without_the_markup_in_it(title: str | None, shown: str) -> None:
    assert title_line(title, limit=300) == shown


def test_a_title_of_tags_costs_no_time() -> None:
    for text in (
        "<b>" * 300_000,
        "<a " * 300_000,
        "</b>" * 300_000,
        "<b x=" + "y" * 1_000_000,
        "<!--" * 300_000,
    ):
        with costs_less_than(1):
            title_line(text, limit=100_000)
