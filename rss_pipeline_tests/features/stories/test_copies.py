"""Copies of one article are found, and neighbours of a series are none."""

import random
from functools import cache

import pytest

from rss_pipeline.features.stories.copies import common_length, kind_of_copy, link_key
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.window import Window

TEXT = (
    "The harbour authority has closed the north quay after a survey found that three of its piles had moved. "
    "Fishing boats are sent to the yacht basin until the piles are replaced, which takes until the spring. "
    "Skippers say that the basin is too shallow at low water."
)


def item(id: str, title: str = "North quay closed", text: str = TEXT, **fields: object) -> Entry:
    return Entry(**{"id": id, "feed": f"feed {id}", "title": title, "text": text, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://news.example/a?utm_source=rss&utm_medium=feed", "http://www.news.example/a"),
        ("https://news.example/a/amp/", "https://news.example/a"),
        ("https://amp.news.example/a", "https://news.example/a#comments"),
        ("https://m.news.example/a.html", "https://news.example/a.amp.html"),
        ("https://news.example/?p=5&fbclid=x", "https://news.example/?p=5"),
        ("https://news-example.cdn.ampproject.org/c/s/news.example/a", "https://news.example/a"),
        ("https://www.google.de/amp/s/amp.news.example/a?amp_js_v=0.1&usqp=mq331", "https://news.example/a"),
        ("https://news.example/a?gad_source=1&gclsrc=aw&wbraid=x&_gl=1", "https://news.example/a"),
        ("https://news.example./new%2Dquay//a", "https://news.example/new-quay/a"),
    ],
)
def test_one_address_in_two_forms_is_one_link(one: str, other: str) -> None:
    assert link_key(one) == link_key(other) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://news.example/?p=5", "https://news.example/?p=6"),
        ("https://news.example/a", "https://other.example/a"),
        ("https://news.example/ampere", "https://news.example/ere"),
    ],
)
def test_two_addresses_are_two_links(one: str, other: str) -> None:
    assert link_key(one) != link_key(other)


@pytest.mark.parametrize(
    "link", [None, "", "https://news.example/", "http://[bad", "https://www.news.example"]
)
def test_an_address_of_a_whole_site_is_no_link_of_an_article(link: str | None) -> None:
    assert link_key(link) is None


@pytest.mark.parametrize(
    "copy",
    [
        item("2", title="Boats must move"),
        item("2", text=TEXT.replace("harbour", "<b>harbour</b>").replace(" ", "&#32;").upper()),
        item("2", text=f"North quay closed. {TEXT}"),
        item("2", title="Boats must move", text=f"{TEXT[:180]}... Read on"),
        item("2", title="Boats must move", text=TEXT.replace("Skippers say", "Sailors say")),
    ],
    ids=["retitled", "entities", "with its title", "truncated", "nearly equal"],
)
def test_an_article_in_other_clothes_is_a_copy(copy: Entry) -> None:
    window = Window()
    window.decide(item("1"))
    decision = window.decide(copy)
    assert decision.story == "1"
    assert decision.evidence is not None
    assert decision.evidence.kind in ("text", "retitled")
    assert decision.evidence.nearest == "1"


def test_the_same_article_with_another_title_and_address_is_found_by_its_time() -> None:
    """One real feed gives 14 items for 6 articles."""
    window = Window()
    at = 1_780_000_000.0
    first = item("1", feed="one", link="https://a.example/1", published=at, time=at)
    again = item(
        "2",
        "Quay shut",
        "Update: " + TEXT.replace("Skippers", "Captains"),
        feed="one",
        link="https://a.example/2",
        published=at,
        time=at,
    )
    window.decide(first)
    assert window.decide(again).story == "1"


@pytest.mark.parametrize(
    "neighbour",
    [
        item("2", title="Harbour notes 13"),
        item("2", text="The harbour authority has closed the south quay after a storm."),
        item("2", text=""),
        item("2", text=TEXT.replace("three of its piles", "5 of its piles")),
    ],
    ids=["next of a series", "another text", "no text", "another number"],
)
def test_a_neighbour_is_no_copy(neighbour: Entry) -> None:
    first = item("1", title="Harbour notes 12", text=TEXT.replace("three", "3"))
    assert kind_of_copy(first, neighbour) is None


@pytest.mark.parametrize("seed", range(4))
def test_the_common_length_is_that_of_a_plain_look(seed: int) -> None:
    dice = random.Random(seed)
    one, other = ("".join(dice.choices("abcd", k=dice.randint(0, 90))) for _ in range(2))

    @cache
    def plain(at: int, there: int) -> int:
        if at == len(one) or there == len(other):
            return 0
        if one[at] == other[there]:
            return 1 + plain(at + 1, there + 1)
        return max(plain(at + 1, there), plain(at, there + 1))

    assert common_length(one, other) == plain(0, 0)
