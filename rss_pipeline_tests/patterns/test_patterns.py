"""Twice the text takes a pattern at most 2.5 times the processor time, up to 1 MB, whatever the text is."""

import json
import pkgutil
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rss_pipeline
from rss_pipeline.collector.models import author
from rss_pipeline.collector.parse import image_references, web_page
from rss_pipeline.collector.parse.characters import decode
from rss_pipeline.collector.parse.xml import repair
from rss_pipeline_tests.patterns.collected import Collected, collected, unseen
from rss_pipeline_tests.support.installed import INSTALLED

WITH_DAGSTER = [f"rss_pipeline.{each}" for each in ("cli", "downstream", "orchestration")]
OURS = [
    name
    for each in pkgutil.iter_modules(rss_pipeline.__path__, "rss_pipeline.")
    if (name := each.name) not in (*WITH_DAGSTER, "rss_pipeline.definitions")
]
LIBRARIES = (
    "bs4",
    "charset_normalizer",
    "feedparser",
    "feedparser_sgmllib",
    "h11",
    "html",
    "httpcore",
    "httpx",
    "idna",
)
"""Functions that get a response or a document, and what they parse with; lxml, expat and nh3 have no
patterns."""
NOT_REACHED = {
    "html.parser": "BeautifulSoup and feedparser use lxml and sgmllib",
    "bs4.builder._htmlparser": "likewise",
    "bs4.dammit.EntitySubstitution.": "writes HTML; BeautifulSoup writes none for us",
    "bs4.dammit.encoding_res": "looks for the charset in the first 25,000 bytes; we give it text",
    "bs4.element.ContentMetaAttributeValue.": "reads <meta>; we keep title, base and link",
    "feedparser.mixin:746": "mail addresses in names, of documents with a root that no feed has",
    "feedparser.encodings.RE_XML_PI_ENCODING": "reads one line, and ours has the declaration alone",
    "feedparser.sanitizer.": "we give nothing to sanitize, and nothing before the root",
    "feedparser.sanitizer:": "likewise",
    "rss_pipeline.storage.feeds.closing_parts:": "reads our own SQL",
    "rss_pipeline.storage.backends.postgres.dialect.": "likewise",
    "feedparser.sgml:41": "is matched at the place of a tag, once for each",
    "h11._readers:": "replaced by those of collector.http.metered_stream",
    "h11._readers.request_line_re": "reads requests; the reader's server has httptools",
}
"""Patterns that no publisher's text reaches, and why."""
SEEN_OTHERWISE = {
    "rss_pipeline.collector.http.redaction": (1, "alternatives, each a secret of feeds.yaml"),
    "rss_pipeline.collector.parse.dates.read": (1, "a tuple"),
    "rss_pipeline.collector.parse.sections": (1, "the objects that modules have"),
    "rss_pipeline.collector.sanitize.embeds": (3, "tuples"),
    "rss_pipeline.features.search.service": (1, "alternatives, each a word of a search"),
    "rss_pipeline.features.stories.words": (1, "a dict of ranges of our own"),
    "rss_pipeline.storage.backends.postgres.server_errors": (1, "words of our own"),
    "rss_pipeline.storage.backups.user_states": (1, "the lists of features: ids of our own"),
}
"""Modules with patterns that have their text not in a call of `re`: how many, and where it is, or what it
is."""
LONGEST = {
    "rss_pipeline.collector.parse.dates.read.": 100,
    "rss_pipeline.features.streams.expression.": 2_000,
}
"""Characters that the code before some patterns lets through: dates, and selectors of feeds.yaml."""
MATCHED_WHOLE = ("h11._events.", "h11._headers.", "h11._readers.")
"""Modules that give their patterns to a function, which matches the whole of a text."""
SEED = 30


@cache
def patterns() -> list[Collected]:
    """All that publishers' text reaches, in an order of chance."""
    return in_order_of_chance(collected(*OURS, *LIBRARIES))


@cache
def all_patterns() -> list[Collected]:
    """The same, with those of modules that import Dagster, which takes seconds."""
    return in_order_of_chance(collected(*OURS, *WITH_DAGSTER, *LIBRARIES))


def in_order_of_chance(some: Sequence[Collected]) -> list[Collected]:
    reached = [each for each in some if not each.name.startswith(tuple(NOT_REACHED))]
    found = [
        each._replace(
            ways=("fullmatch",) if each.name.startswith(MATCHED_WHOLE) else each.ways,
            longest=next((n for start, n in LONGEST.items() if each.name.startswith(start)), 1_000_000),
        )
        for each in reached
    ]
    random.Random(SEED).shuffle(found)
    return found


def too_slow(some: Sequence[Collected], **limits: int) -> dict[str, list[object]]:
    """The patterns that are too slow, and the shape that shows it. A timer ends the process if one
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
def test_no_pattern_takes_long_for_a_few_thousand_characters() -> None:
    """All of them with a few texts each, so that a pattern that is added is tried at once."""
    # One of ours is searched for one day, also if it is matched at the beginning of a text now.
    ours = [
        each._replace(ways=tuple(sorted({*each.ways, "search"})))
        if each.name.startswith("rss_pipeline.")
        else each
        for each in all_patterns()
    ]
    assert too_slow(ours, most_shapes=40, worst=0) == {}
    assert unseen(*WITH_DAGSTER) == {}


@pytest.mark.slow
def test_a_tenth_of_the_patterns_takes_time_by_the_length_of_the_text() -> None:
    assert too_slow(patterns()[::10], most_shapes=40, worst=1) == {}


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_all_patterns_take_time_by_the_length_of_the_text(part: int) -> None:
    assert too_slow(all_patterns()[part::10], most_shapes=3_000, worst=3) == {}


def test_all_patterns_are_seen() -> None:
    names = {each.name for each in patterns()}
    for name in (
        "collector.parse.web_page._START",
        "collector.parse.dates.read._FORMS",
        "pipeline.read.terminal_text._TAGS",
    ):
        assert f"rss_pipeline.{name}" in names, "also within a tuple and an object"
    assert any(name.startswith("rss_pipeline.collector.http.headers:") for name in names), "and a function"
    assert {"feedparser.datetimes.greek._greek_date_format_re", "html._charref"} <= names
    assert unseen(*OURS) == {
        name: number
        for name, (number, _) in SEEN_OTHERWISE.items()
        if not name.startswith("rss_pipeline.features.") or name.split(".")[2] in INSTALLED
    }


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
        author._NAMED,
        r"(?:mailto:)?[^\s@()<>,;]+@[^\s@()<>,;]+\s*\((?P<behind>[^()]*(?:\([^()]*\)[^()]*)*)\)"
        r"|(?P<before>[^@<>()]*)(?:<\s*(?:mailto:)?[^\s@()<>,;]+@[^\s@()<>,;]+\s*>"
        r"|\(\s*(?:mailto:)?[^\s@()<>,;]+@[^\s@()<>,;]+\s*\))",
        "fullmatch",
        ["a", "@", " ", "(", ")", "<", ">", "mailto:"],
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
    # One that is matched in full begins at one place: it is slow where it is looked for at each.
    former = [(pattern, "search" if way == "fullmatch" else way) for _, pattern, way, _ in FORMER.values()]
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
