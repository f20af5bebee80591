"""Promises of docs/topics.md: its YAML is valid, its patterns fit what it says, its expressions compile."""

import re
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.features.streams.expression import PREFIXES, xpath_mistake
from rss_pipeline.features.streams.model import FieldMatcher, streams_of

PAGE = (Path(__file__).parents[3] / "docs" / "topics.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in row.split("|")[1:-1]] for row in PAGE.splitlines() if row.startswith("| `")]
EXPRESSIONS = [row[0].strip("`") for row in ROWS if row[0].startswith("`//")]
FEED = "feeds: [{url: 'https://a.example/', id: a, streams: {s: {%s}}}]"


def test_the_blocks_at_its_beginning_are_a_feeds_yaml() -> None:
    feeds, topics = re.findall(r"```yaml\n(.*?)```", PAGE, flags=re.DOTALL)
    registry = parse_registry(f"{feeds}{topics}", path=Path("feeds.yaml"), environ={})
    assert [stream.name for stream in streams_of(registry.feeds[0])] == ["haruna", "minami", "staff", "sound"]
    assert [topic.id for topic in registry.of_features["topics"]] == ["no3b", "sounds"]


@pytest.mark.parametrize(
    "row", [row for row in ROWS if len(row) == 3 and ": " in row[0]], ids=lambda row: row[0]
)
def test_a_pattern_fits_what_its_row_says(row: list[str]) -> None:
    selector, fits, not_fits = row
    field = selector.strip("`").partition(":")[0]
    feed = parse_registry(FEED % selector.strip("`"), path=Path("feeds.yaml"), environ={}).feeds[0]
    matcher = FieldMatcher(streams_of(feed))
    for cell, expected in ((fits, ("s",)), (not_fits, ())):
        for value in re.findall(r"`(.*?)`", cell):
            values = [value]
            found = matcher.match(
                title=value if field == "title" else None,
                link=value if field == "link" else None,
                authors=values if field == "author" else [],
                categories=values if field == "category" else [],
            )
            assert found == expected, value


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_expression_of_the_page_is_valid(expression: str) -> None:
    assert xpath_mistake(expression) is None


def test_all_prefixes_are_listed() -> None:
    (listed,) = re.findall(r"`(admin app [a-zA-Z\s]+)`", PAGE)
    assert listed.split() == sorted(PREFIXES, key=str.lower)
    assert len(EXPRESSIONS) == 6
