"""XPath expressions of feeds.yaml: what is refused before any document is there, and with which words."""

import pytest
from lxml import etree

from rss_pipeline.features.streams.expression import ATOM, PREFIXES, RSS1, without_prefixes, xpath_mistake


@pytest.mark.parametrize(
    "expression",
    [
        "//item[enclosure]",
        "//rss1:item[dc:subject='小嶋 陽菜'][1]/*",
        "//entry[author/name = 'foo:x' and not(category)]",
        "//item[ancestor-or-self::item/child::dc:creator]",
        "//item[title and (category or dc:subject)] | //entry[@xml:lang='de']",
        "//div/mod[and or or]",
        "//item[georss:point][position() mod 2 = 1]",
        "//atom:link | //rss1:*",
        "id('x')/..",
    ],
)
def test_what_xpath_1_allows_is_accepted(expression: str) -> None:
    assert xpath_mistake(expression) is None


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("//item[", "is no XPath 1.0 expression"),
        ("//item['x]", "at character 8 is not expected there"),
        ("(" * 1_000 + "x" + ")" * 1_000, "is no XPath 1.0 expression"),
        ("//nothing[foo:bar]", 'the prefix "foo:" is not known; known are content, dc,'),
        ("//item[itune:author]", 'the prefix "itune:" is not known; did you mean "itunes:"?'),
        ("//item[matches(., 'a')]", '"matches" is no function of XPath 1.0'),
        ("//item[re:test(., '(a+)+$')]", '"re:test" is no function of XPath 1.0'),
        ("//item[start-with(title, 'a')]", 'did you mean "starts-with"?'),
        ("//item[$name]", "$name is a variable, and there are none here"),
        ("count(//item)", "gives a value and no element; write a path"),
        ("//item/title = 'x'", "gives a value and no element"),
        ("'x'", "gives a value and no element"),
    ],
)
def test_what_cannot_select_an_item_is_refused_with_a_sentence(expression: str, sentence: str) -> None:
    assert sentence in (xpath_mistake(expression) or "")


def test_the_prefix_of_the_own_format_is_dropped_outside_of_texts() -> None:
    written = "//rss1:item[title='rss1:x']/atom:link"
    assert without_prefixes(written) == "//item[title='rss1:x']/atom:link"
    assert without_prefixes(written, (RSS1, ATOM)) == "//item[title='rss1:x']/link"


def test_every_known_prefix_compiles() -> None:
    for prefix in PREFIXES:
        etree.XPath(f"//{prefix}:x", namespaces=dict(PREFIXES), regexp=False)
        assert xpath_mistake(f"//{prefix}:x[@{prefix}:y]") is None
