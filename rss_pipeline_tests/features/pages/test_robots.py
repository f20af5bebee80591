"""The rules of robots.txt, by the examples of RFC 9309."""

import pytest

from rss_pipeline.features.pages.robots import allows, rules_for_us


@pytest.mark.parametrize(
    ("text", "path", "allowed"),
    [
        ("", "/a", True),
        ("User-agent: *\nDisallow: /", "/a", False),
        ("User-agent: *\nDisallow:", "/a", True),
        ("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", True),
        ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf", False),
        ("User-agent: *\nDisallow: /*.pdf$", "/x.pdf?a", True),
        ("User-agent: other\nDisallow: /", "/a", True),
        ("User-agent: *\nDisallow: /\n\nUser-agent: rss_pipeline\nAllow: /", "/a", True),
        ("User-agent: rss_pipeline\nUser-agent: x\nDisallow: /a # why", "/a", False),
        ("\ufeffUser-agent: *\nDisallow: /a", "/a", False),
        ("User-agent: *\nDisallow: /новости/", "/%D0%BD%D0%BE%D0%B2%D0%BE%D1%81%D1%82%D0%B8/1", False),
        ("User-agent: *\nDisallow: /%d0%bd", "/%D0%BD/1", False),
    ],
)
def test_the_longest_rule_of_our_group_counts(text: str, path: str, allowed: bool) -> None:
    assert allows(rules_for_us(text), path) is allowed
