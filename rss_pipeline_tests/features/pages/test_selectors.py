"""The key `page` of a feed: selectors by CSS and XPath, what they give, and each mistake with its line."""

import json
import time
from datetime import date
from pathlib import Path

import pytest

from rss_pipeline.collector.registry.load import parse_registry
from rss_pipeline.errors import NotAFeed, RegistryError
from rss_pipeline.features.pages.model import Detected
from rss_pipeline.features.pages.selectors import select
from rss_pipeline_tests.features.pages.site import URL, WORDS, page
from rss_pipeline_tests.support.pipeline import NOON

JOBS = "<ul>" + "".join(
    f'<li class="job"><span class="n">No. {n}</span><b>Driver of bus {n}</b><a href="jobs/{n}">More</a>'
    f'<i data-day="2026-0{n}-11T08:00:00Z">soon</i><img data-src="/i/{n}.png" width="9" height="9">'
    f'<em>Ann {n}</em><p>{WORDS}</p></li>'
    for n in (1, 2, 3)
) + "</ul>"  # fmt: skip


def selected(html: str = JOBS, head: str = "", **selectors: str) -> Detected:
    return select(page(html, head=head), URL, json.dumps(selectors), now=NOON)


@pytest.mark.parametrize(
    "selectors",
    [
        {
            "item": "main li.job",
            "title": "b",
            "date": "i@data-day",
            "author": "em",
            "text": "p",
            "image": "img",
        },
        {
            "item": "//li[@class='job']",
            "title": "./b",
            "link": ".//a/@href",
            "date": "./i/@data-day",
            "author": "./em",
            "text": "./p",
            "image": "./img",
        },
    ],
)
def test_css_and_xpath_select_the_same_entries(selectors: dict[str, str]) -> None:
    first, *others = selected(**selectors).entries
    assert len(others) == 2
    assert (first.link, first.title, first.date) == (
        "https://example.org/news/jobs/1",
        "Driver of bus 1",
        date(2026, 1, 11),
    )
    assert (first.author, first.text, first.image) == ("Ann 1", WORDS, "https://example.org/i/1.png")


def test_what_is_not_selected_is_detected_inside_the_entry() -> None:
    first = selected(item="li.job").entries[0]
    assert first.link == "https://example.org/news/jobs/1"
    assert WORDS in (first.text or "")


def test_links_are_resolved_against_the_base_of_the_page() -> None:
    found = selected(head='<base href="https://files.example/x/">', item="li.job", link="a@href")
    assert found.entries[0].link == "https://files.example/x/jobs/1"


def test_selectors_that_match_in_part_are_named_with_their_counts() -> None:
    found = selected(JOBS.replace("<em>Ann 2</em>", ""), item="li.job", title="b", author="em", image="svg")
    assert found.verdict == "certain"
    assert found.evidence[0] == "author: 2 of 3 (em)."
    assert found.evidence[1].startswith("image: 0 of 3 (svg); without it the first would be")


@pytest.mark.parametrize("selectors", [{"item": "li.gone"}, {"item": "li.job", "title": "h9"}])
def test_selectors_that_died_find_no_list(selectors: dict[str, str]) -> None:
    found = selected(**selectors)
    assert found.verdict == "none"
    assert ": 0 " in found.evidence[0]


def test_an_entry_without_a_link_has_its_title_and_javascript_is_no_link() -> None:
    html = JOBS.replace('href="jobs/1"', 'href="javascript:go()"').replace(
        'href="jobs/2"', 'href="mailto:a@b.c"'
    )
    found = selected(html, item="li.job", title="b", link="a@href")
    assert [each.link is None for each in found.entries] == [True, True, False]


@pytest.mark.slow
def test_an_xpath_that_takes_for_ever_is_ended_and_named() -> None:
    html = "<div>" * 300 + "<i></i>" * 3_000
    slow = "//*[count(preceding::*[count(preceding::*) > 1]) > 0]"
    began = time.monotonic()
    with pytest.raises(NotAFeed, match=r"item.*took longer than 2 s"):
        selected(html, item=slow)
    assert time.monotonic() - began < 60


def mistakes(value: str) -> str:
    text = f"feeds:\n  - url: https://example.org/jobs\n    page: {value}\n"
    with pytest.raises(RegistryError) as caught:
        parse_registry(text, path=Path("feeds.yaml"), environ={})
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("", "page: has no value; write auto"),
        ("[li]", "page: is a list"),
        ("sometimes", '"sometimes" is no way to find a list; write auto'),
        ("{title: h3}", "page.item: is missing"),
        ("{item: li, titel: h3}", 'did you mean "title"?'),
        ('{item: "li["}', 'page.item: "li[" is no CSS selector'),
        ('{item: "//li["}', 'page.item: "//li[" is no XPath 1.0 expression'),
        ('{item: "count(//li)"}', "page.item: gives a value and no element"),
        ('{item: "//li", title: "./h3 = 1"}', "page.title: gives a value and no element"),
        (
            '{item: "//li", title: "//h3"}',
            'page.title: "//h3" begins at the top of the page; write it from the entry',
        ),
        ('{item: "//li", title: ""}', "page.title: is empty"),
        ('{item: "//li", link: "./a[foo()]/@href"}', '"foo" is no function of XPath'),
        ('{item: "a@href"}', "page.item: selects an attribute and no element"),
        (f"{{item: {'li ' * 600}}}", "bytes of selectors"),
    ],
)
def test_a_mistake_is_named_with_its_line(value: str, said: str) -> None:
    sentence = mistakes(value)
    assert "line 3" in sentence or ":3" in sentence, sentence
    assert said in sentence


def test_selectors_are_kept_in_the_order_of_their_names() -> None:
    text = 'feeds:\n  - url: https://example.org/jobs\n    page: {title: h3, item: "li.job"}\n'
    [spec] = parse_registry(text, path=Path("feeds.yaml"), environ={}).feeds
    assert spec.feature_keys == {"page": '{"item":"li.job","title":"h3"}'}
