"""What identifies an item: guid, else link, else a hash, raw and never resolved."""

import hashlib

import pytest

from rss_pipeline_tests.collector.parse.documents import atom, json_feed, only, parsed, rss, rss_item


@pytest.mark.parametrize(
    "guid", ["a?x=1&amp;y=2", "relative/id", "?p=12", "tag:example.com,2004:1", "HTTP://EXAMPLE.com/%7e"]
)
@pytest.mark.parametrize("permalink", ["", ' isPermaLink="false"', ' isPermaLink="true"'])
def test_a_guid_is_the_raw_text_trimmed_and_never_resolved(guid: str, permalink: str) -> None:
    item = rss_item(f"<guid{permalink}>\n {guid} </guid><link>/x</link>")
    assert (item.guid, item.guid_source) == (guid.replace("&amp;", "&"), "guid")


def test_an_atom_id_is_the_raw_text_too() -> None:
    item = only(atom("<entry><id> post/1 </id></entry>", 'xml:base="https://base.example/"'))
    assert (item.guid, item.guid_source) == ("post/1", "guid")


def test_without_a_guid_the_raw_link_identifies() -> None:
    item = rss_item("<guid> </guid><link>post/1</link>")
    assert (item.guid, item.guid_source, item.link) == ("post/1", "link", "https://example.com/post/1")


def test_without_guid_and_link_the_md5_of_raw_title_and_raw_date_identifies() -> None:
    item = rss_item("<title>A &amp; B</title><pubDate>someday</pubDate>")
    assert item.guid == hashlib.md5(b"A & Bsomeday", usedforsecurity=False).hexdigest()
    assert (item.guid_source, item.pub_date, item.pub_date_raw) == ("hash", None, "someday")


def test_items_with_nothing_but_content_stay_apart() -> None:
    feed = parsed(rss("<item><description>a</description></item><item><description>b</description></item>"))
    assert len(feed.items) == 2


def test_the_key_of_a_feed_may_be_the_link_or_title_and_date() -> None:
    fields = "<guid>g</guid><link>https://example.com/1</link><title>t</title><pubDate>d</pubDate>"
    assert rss_item(fields, key="link").guid == "https://example.com/1"
    assert rss_item(fields, key="title+date").guid == hashlib.md5(b"td", usedforsecurity=False).hexdigest()


def test_of_the_same_guid_twice_the_first_wins_and_the_other_is_counted() -> None:
    feed = parsed(
        rss("".join(f"<item><guid>{guid}</guid><title>{n}</title></item>" for n, guid in enumerate("abab")))
    )
    assert [(item.guid, item.title) for item in feed.items] == [("a", "0"), ("b", "1")]
    assert feed.duplicate_guids == ("a", "b")


def test_rss_10_is_identified_by_rdf_about() -> None:
    item = only(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        '<channel rdf:about="c"><title>T</title></channel><item rdf:about="urn:1">'
        "<link>https://e.example/</link></item></rdf:RDF>"
    )
    assert (item.guid, item.guid_source, item.link) == ("urn:1", "guid", "https://e.example/")


@pytest.mark.parametrize(
    ("written", "guid"),
    [
        ('"a"', "a"),
        ("1", "1"),
        ("1.0", "1.0"),
        ("1e3", "1e3"),
        ("123456789012345678901234567890", None),
        ('" b "', "b"),
    ],
)
def test_a_json_id_is_the_text_of_the_document(written: str, guid: str | None) -> None:
    text = f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{{"id": {written}, "title": "t"}}]}}'
    assert only(text).guid == (guid or written)


def test_a_json_item_without_id_falls_back_likewise() -> None:
    feed = parsed(
        json_feed({"url": "/1"}, {"title": "t", "date_published": "d"}, {"id": None, "content_text": "c"})
    )
    assert [item.guid_source for item in feed.items] == ["link", "hash", "hash"]
    assert feed.items[0].guid == "/1"
