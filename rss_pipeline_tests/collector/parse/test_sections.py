"""Sections are what regular expressions of the same parts would find."""

import re

from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse.sections import Sections

KINDS = ((r"<!\[CDATA\[", "]]>"), ("<!--", "-->"), ("</?[a-z]", ">"))
SAME = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->|</?[a-z][^>]*>", re.DOTALL)
TEXTS = st.lists(
    st.sampled_from(["<!--", "-->", "<![CDATA[", "]]>", "<a", "</a", ">", "<", "-", "]", "x", "\n", "<!-->"])
).map("".join)


@given(text=TEXTS)
def test_they_are_those_of_one_regular_expression(text: str) -> None:
    sections = Sections(*KINDS)
    assert sections.sub(str.upper, text) == SAME.sub(lambda found: found[0].upper(), text)


def test_of_an_opening_without_an_end_only_the_first_is_looked_through() -> None:
    assert (
        Sections(("<!--", "-->"), ("<b", "b>")).sub(lambda _: "#", "<!-- <b x b> <!-- <b") == "<!-- # <!-- <b"
    )
