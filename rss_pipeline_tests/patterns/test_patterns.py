"""Twice the text takes a pattern at most 2.5 times the processor time, up to 1 MB, whatever the text is."""

import json
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse import image_references, web_page
from rss_pipeline.collector.parse.characters import decode
from rss_pipeline.collector.parse.xml import repair
from rss_pipeline.pipeline.topics import entry
from rss_pipeline_tests.patterns.collected import Collected, collected, unseen

OURS = [f"rss_pipeline.{each}" for each in ("api", "collector", "pipeline", "reader", "storage", "web")]
"""The others read the operator's files, and write."""
LIBRARIES = ("bs4", "charset_normalizer", "feedparser", "feedparser_sgmllib", "html")
"""Those that a document is given to, and what they parse with; lxml, expat and nh3 have no patterns."""
NOT_REACHED = {
    "html.parser": "BeautifulSoup and feedparser use lxml and sgmllib",
    "bs4.builder._htmlparser": "likewise",
    "bs4.dammit.EntitySubstitution.": "writes HTML; BeautifulSoup writes none for us",
    "bs4.dammit.encoding_res": "looks for the charset in the first 25,000 bytes; we give it text",
    "bs4.element.ContentMetaAttributeValue.": "reads <meta>; we keep title, base and link",
    "feedparser.mixin:746": "mail addresses in names: we give no texts of 1,000 characters",
    "feedparser.encodings.RE_XML_PI_ENCODING": "reads one line, and ours has the declaration alone",
    "feedparser.sanitizer.": "we give nothing to sanitize, and nothing before the root",
    "feedparser.sanitizer:": "likewise",
    "rss_pipeline.storage.feeds.closing_parts:": "reads our own SQL",
    "rss_pipeline.storage.backends.postgres.tokens.": "likewise",
    "feedparser.sgml:41": "is matched at the place of a tag, once for each",
}
"""Patterns that no publisher's text reaches, and why."""
SEEN_OTHERWISE = {
    "rss_pipeline.collector.http.redaction": "alternatives, each a secret of feeds.yaml",
    "rss_pipeline.collector.parse.dates.read": "a tuple",
    "rss_pipeline.collector.parse.loose_fields": "a dict",
    "rss_pipeline.collector.parse.sections": "the objects that modules have",
    "rss_pipeline.collector.sanitize.embeds": "tuples",
    "rss_pipeline.pipeline.search.search": "alternatives, each a word of a search",
    "rss_pipeline.storage.backends.postgres.errors": "words of our own",
}
"""Modules with patterns whose text is not in a call of `re`, and where it is, or what it is."""
LONGEST = {"rss_pipeline.collector.parse.dates.read.": 100, "rss_pipeline.collector.streams.prefixes.": 2_000}
"""Characters that the code before some patterns lets through: dates, and selectors of feeds.yaml."""
SEED = 30


@cache
def patterns() -> list[Collected]:
    """All that publishers' text reaches, in an order of chance."""
    reached = [each for each in collected(*OURS, *LIBRARIES) if not each.name.startswith(tuple(NOT_REACHED))]
    found = [
        each._replace(
            longest=next((n for start, n in LONGEST.items() if each.name.startswith(start)), 1_000_000)
        )
        for each in reached
    ]
    random.Random(SEED).shuffle(found)
    return found


def too_slow(some: Sequence[Collected], **limits: int) -> dict[str, list[object]]:
    """Those of the patterns that are too slow, and the shape that shows it. A timer ends the process if one
    hangs, and another goes on behind it."""
    command = [sys.executable, "-m", "rss_pipeline_tests.patterns.measure"]
    found: dict[str, list[object]] = {}
    while len(found) < len(some):
        asked = json.dumps({"patterns": some[len(found) :], "limits": limits}) + "\n"
        done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
        assert done.returncode <= 0, done.stderr
        assert done.stdout
        found |= {name: answer for name, *answer in map(json.loads, done.stdout.splitlines())}
    return {name: answer for name, answer in found.items() if answer != ["linear"]}


@pytest.mark.slow
def test_a_tenth_of_the_patterns_takes_time_by_the_length_of_the_text() -> None:
    assert too_slow(patterns()[::10], most_shapes=100, worst=1) == {}


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_all_patterns_take_time_by_the_length_of_the_text(part: int) -> None:
    assert too_slow(patterns()[part::10], most_shapes=3_000, worst=3) == {}


def test_all_patterns_are_seen() -> None:
    names = {each.name for each in patterns()}
    for name in (
        "collector.parse.web_page._START",
        "collector.parse.dates.read._FORMS",
        "collector.parse.loose_fields._PERSON",
        "pipeline.read.text._TAGS",
    ):
        assert f"rss_pipeline.{name}" in names, "also within a tuple, a dict and an object"
    assert any(name.startswith("rss_pipeline.collector.http.headers:") for name in names), "and a function"
    assert {"feedparser.datetimes.greek._greek_date_format_re", "html._charref"} <= names
    assert unseen(*OURS) == SEEN_OTHERWISE.keys()


# Now, the former one that took too long, the way, and pieces of texts.
FORMER: dict[str, tuple[re.Pattern[str], str, str, list[str]]] = {
    "a number": (
        image_references._LEADING_NUMBER,
        r"(?i)\s*([0-9]+)\s*(?:px)?\s*",
        "fullmatch",
        [" ", "1", "2", "px", "p"],
    ),
    "a charset": (
        decode._CHARSET,
        r"(?i)charset\s*=\s*[\"']?\s*([^\s;\"',]+)",
        "search",
        ["charset", " ", "=", '"', "'", "x", ";", ","],
    ),
    "a web page": (
        web_page._START,
        r"(?is)\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html|head|body)\b",
        "match",
        ["<!--", "-->", " ", "<html", "<body", "<!doctype ", "html", "x", ">", "<"],
    ),
    "a document type": (
        repair._DOCTYPE,
        r"(?is)<!DOCTYPE\s+([^\s>\[]*)[^>\[]*(?:\[.*?\]\s*)?>",
        "match",
        ["<!DOCTYPE", " ", "a", "[", "]", ">", "<"],
    ),
    "an author": (
        entry._MAIL_AND_NAME,
        r"[^\s@()]+@[^\s@()]+\s*\(([^()]*[^()\s][^()]*)\)",
        "fullmatch",
        ["a", "@", " ", "(", ")", "b"],
    ),
}
OTHERS = (
    ("<!--.*?-->", "finditer"),
    ("(?:a|b|ab)*c", "match"),
    ("(?:[a-z]+,?)+;", "fullmatch"),
    (r"[a-z]+@[a-z]+\.com", "finditer"),
)


@pytest.mark.slow
def test_a_pattern_that_is_too_slow_is_seen() -> None:
    """Openings without an end, runs that two parts share, alternatives that are alike, repeats of repeats."""
    former = [(pattern, way) for _, pattern, way, _ in FORMER.values()]
    slow = [
        Collected(pattern, pattern, re.compile(pattern).flags, is_bytes=False, ways=(way,))
        for pattern, way in (*former, *OTHERS)
    ]
    assert too_slow(slow, most_shapes=150, worst=1).keys() == {each.name for each in slow}


@pytest.mark.parametrize("what", FORMER)
def test_a_pattern_finds_what_it_found_before(what: str) -> None:
    pattern, former, way, pieces = FORMER[what]

    @given(st.lists(st.sampled_from(pieces), max_size=9))
    def check(some: list[str]) -> None:
        text = "".join(some)
        now, before = getattr(pattern, way)(text), getattr(re.compile(former), way)(text)
        assert (now is None) == (before is None)
        assert now is None or now.groups() == before.groups()

    check()
