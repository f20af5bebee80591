"""Which items a topic shows, in which order, and which of them are one."""

import random
from datetime import timedelta

import pytest

from rss_pipeline.features.topics.choice import FIRST_DOCUMENT_ITEMS, choose, entry_id, link_key
from rss_pipeline.features.topics.model import Candidate, TopicSpec
from rss_pipeline_tests.features.topics.candidates import NOW, candidate, feed, topic


def shown(spec: TopicSpec, *candidates: Candidate) -> list[str]:
    return [f"{each.candidate.feed.id}{each.candidate.guid}" for each in choose(spec, candidates)]


def test_the_newest_items_of_all_members_come_newest_first() -> None:
    a = [candidate(number, of="a") for number in (1, 4, 5)]
    b = [candidate(number, of="b", member=1) for number in (2, 3, 6)]
    assert shown(topic(items=4), *a, *b) == ["a1", "b2", "b3", "a4"]


def test_a_date_in_the_future_does_not_keep_an_item_on_top() -> None:
    future = candidate(5, pub_date=NOW + timedelta(days=9_999))
    assert shown(topic(), future, candidate(3), candidate(7)) == ["a3", "a5", "a7"]


def test_a_feed_that_changes_its_dates_does_not_bring_its_items_back() -> None:
    redated = candidate(5, pub_date=NOW)
    assert shown(topic(), redated, candidate(3)) == ["a3", "a5"]


def test_items_of_one_instant_are_in_the_order_of_their_ids() -> None:
    same = [candidate(number, pub_date=NOW, created_at=NOW) for number in range(20)]
    expected = [f"a{each.guid}" for each in sorted(same, key=lambda each: each.item_id)]
    for seed in range(5):
        assert shown(topic(), *random.Random(seed).sample(same, 20)) == expected


def test_each_takes_the_newest_of_each_member() -> None:
    a = [candidate(number) for number in (1, 2, 3)]
    b = [candidate(number, of="b", member=1) for number in (40, 50, 60)]
    assert shown(topic(each=1), *a, *b) == ["a1", "b40"]
    assert shown(topic(each=2), *a, *b) == ["a1", "a2", "b40", "b50"]


def test_a_first_document_brings_five_items_dated_ones_first() -> None:
    old = [candidate(number, created_at=NOW, is_of_first_document=True) for number in range(10, 20)]
    undated = [
        candidate(number, pub_date=NOW, created_at=NOW, is_dated=False, is_of_first_document=True)
        for number in range(30, 40)
    ]
    later = [candidate(number) for number in range(1, 8)]
    assert shown(topic(), *old, *undated) == [f"a{number}" for number in range(10, 15)]
    assert shown(topic(), *old[:2], *undated, *later)[:9] == [
        *(f"a{number}" for number in range(1, 8)), "a10", "a11"
    ]  # fmt: skip
    assert len(shown(topic(), *old[:2], *undated, *later)) == 7 + FIRST_DOCUMENT_ITEMS


def test_undated_items_of_a_first_document_are_last_of_all() -> None:
    undated = candidate(0, is_dated=False, is_of_first_document=True)
    assert shown(topic(), undated, candidate(500, of="b", member=1)) == ["b500", "a0"]


def test_a_later_undated_item_has_its_place_by_its_first_request() -> None:
    assert shown(topic(), candidate(2, is_dated=False), candidate(1), candidate(3)) == ["a1", "a2", "a3"]


def test_the_streams_of_a_new_feed_bring_five_items_together_but_each_its_latest_with_each() -> None:
    spec = [f"a/s{member}" for member in range(8)]
    new = [candidate(number, member=number, is_of_first_document=True) for number in range(8)]
    assert len(shown(topic(*spec), *new)) == FIRST_DOCUMENT_ITEMS
    assert len(shown(topic(*spec, each=1), *new)) == 8


def test_an_item_of_two_streams_is_shown_once_and_counts_once_of_the_first_document() -> None:
    spec = topic("a/x", "a/y")
    twice = [
        candidate(number, member=member, is_of_first_document=True)
        for number in range(9)
        for member in (0, 1)
    ]
    [first, *others] = choose(spec, twice)
    assert len(others) == FIRST_DOCUMENT_ITEMS - 1
    assert [each.member for each in first.also_in] == [1]


def test_the_member_named_first_has_the_item_and_the_others_are_known() -> None:
    guid = "tag:example.org,2026:7"
    in_a = candidate(9, of="a", guid=guid)
    in_b = candidate(1, of="b", member=1, guid=guid, title="B's", link="https://b.example/x")
    in_c = candidate(2, of="c", member=2, link="http://B.example:80/x?utm_source=c&fbclid=1#top", title="C's")
    [one] = choose(topic(), [in_c, in_b, in_a])
    assert one.candidate is in_a
    assert one.also_in == (in_b, in_c)
    [one] = choose(topic("b", "c", "a"), [
        candidate(1, of="b", guid=guid),
        candidate(9, of="a", member=2, guid=guid),
    ])  # fmt: skip
    assert one.candidate.feed.id == "b"


def test_a_copy_of_a_copy_is_the_same_item() -> None:
    by_link = candidate(2, of="b", member=1, guid="urn:x-id:2", link="https://a.example/1")
    by_id = candidate(3, of="c", member=2, guid="urn:x-id:2")
    assert shown(topic(), candidate(1), by_link, by_id) == ["a1"]


def test_items_without_an_id_of_their_own_are_not_one_because_their_numbers_are() -> None:
    assert len(shown(topic(), candidate(1, of="a"), candidate(1, of="b", member=1))) == 2


def test_items_of_one_feed_that_link_to_one_page_are_several() -> None:
    page = "https://a.example/changelog"
    items = [candidate(number, link=page) for number in range(3)]
    assert len(shown(topic(), *items, candidate(9, of="b", member=1, link=page))) == 4


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://x.example/a", "http://x.example/a"),
        ("https://x.example/a", "https://X.EXAMPLE/a"),
        ("https://x.example/a", "https://x.example/a#comments"),
        ("https://x.example/a", "https://x.example:443/a"),
        ("http://x.example/a", "http://x.example:80/a"),
        ("https://x.example/a", "https://user@x.example/a?"),
        ("https://x.example/a?id=1", "https://x.example/a?utm_source=rss&id=1&utm_medium=feed"),
        ("https://x.example/a", "https://x.example/a?gclid=1&dclid=2&msclkid=3&mc_cid=4&wbraid=5&_ga=6"),
    ],
)
def test_links_to_one_page_are_equal(one: str, other: str) -> None:
    assert link_key(one) is not None
    assert link_key(one) == link_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://x.example/a", "https://x.example/A"),
        ("https://x.example/a", "https://x.example:8080/a"),
        ("https://x.example/?p=1", "https://x.example/?p=2"),
        ("https://x.example/a?id=1", "https://x.example/a?id=2"),
        ("https://x.example/a?ref=1", "https://x.example/a?ref=2"),
    ],
)
def test_links_to_two_pages_differ(one: str, other: str) -> None:
    assert link_key(one) != link_key(other)


@pytest.mark.parametrize(
    "link", [None, "", "https://x.example/", "http://x.example", "magnet:?xt=1", "http://["]
)
def test_no_page_of_an_item_is_no_link(link: str | None) -> None:
    assert link_key(link) is None


@pytest.mark.parametrize(
    "guid",
    [
        "https://a.example/?p=1",
        "tag:blogger.com,1999:blog-1.post-2",
        "urn:uuid:60a76c80-d399-11d9-b93C-0003939e0af6",
        "urn:isbn:123",
        "https://例え.example/記事?q=ä#ö",
        "yt:video:abc",
        "http://[2001:db8::1]:80/x",
    ],
)
def test_an_absolute_iri_is_the_entrys_id(guid: str) -> None:
    assert entry_id(candidate(1, guid=guid)) == guid


@pytest.mark.parametrize(
    "guid",
    [
        "",
        "1050315385",
        "/Changelog-16",
        "//x.example/a",
        "https://a.example/a b",
        "https://a.example/\u3000a",
        "https://a.example/a\n",
        "https://a.example/<a>",
        "https://a.example/%zz",
        "https://a.example/#a#b",
        "https://a.example/\u202egpj",
        "https://a.example/[x]",
        "http:///x",
        "http:x",
        "https://",
        "urn:x:1",
        "urn:rss_pipeline:1",
        "urn:uuid:1",
        "tag:nothing",
        "C:\\file",
        "x:",
        "https://a.example/" + "x" * 9_000,
    ],
)
def test_every_other_guid_becomes_a_uuid_that_stays(guid: str) -> None:
    found = entry_id(candidate(1, guid=guid))
    assert found.startswith("urn:uuid:")
    assert found == entry_id(candidate(7, guid=guid, title="other"))
    assert found != entry_id(candidate(1, of=feed("b"), guid=guid))
    assert found != entry_id(candidate(1, guid=guid + "1"))


def test_a_uuid_is_the_same_in_every_release() -> None:
    assert entry_id(candidate(1, guid="1050315385")) == "urn:uuid:c1cdd488-dbf1-5b2b-9b0f-ea3de08856c3"


def test_more_candidates_than_needed_change_nothing() -> None:
    items = [candidate(number) for number in range(1, 200)]
    assert shown(topic(), *items) == shown(topic(), *items[:50])
    assert choose(topic(), []) == ()


def test_a_copy_with_a_later_date_does_not_bring_an_item_back() -> None:
    link = "https://shared.example/post"
    own = candidate(4, link=link)
    copy = candidate(2, of="b", member=1, link=link)
    spec = topic("a", "b", items=2)
    assert shown(spec, candidate(1), copy, candidate(3), own) == ["a1", "a3"]
