"""The contract of collector.parse: dates, links, the feed itself, and what is no feed."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from rss_pipeline.collector.models.item import Enclosure, PublisherHints
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.collector.parse.documents import (
    NAMESPACES,
    atom,
    entry,
    json_feed,
    only,
    parsed,
    rss,
    rss_item,
)


def test_dates_are_read_strictly_and_the_raw_string_is_kept() -> None:
    item = rss_item(
        "<guid>1</guid><pubDate>2004年1月1日</pubDate><atom:updated>2004-01-02T00:00:00Z</atom:updated>"
    )
    assert (item.pub_date, item.pub_date_raw) == (datetime(2004, 1, 1, tzinfo=UTC), "2004年1月1日")
    assert item.updated_at == datetime(2004, 1, 2, tzinfo=UTC)
    wrong = rss_item("<guid>1</guid><pubDate>Tue, 30 Feb 2010 10:00:00 GMT</pubDate>")
    assert (wrong.pub_date, wrong.pub_date_raw) == (None, "Tue, 30 Feb 2010 10:00:00 GMT")


def test_an_entry_without_published_takes_updated() -> None:
    item = entry("<updated>2004-01-02T00:00:00Z</updated>")
    assert item.pub_date == item.updated_at == datetime(2004, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("name", ["atom:updated", "dcterms:modified"])
def test_an_rss_item_with_the_time_of_its_update_alone_takes_that(name: str) -> None:
    at = datetime(2004, 1, 2, tzinfo=UTC)
    item = rss_item(f"<title>t</title><{name}>2004-01-02T00:00:00Z</{name}>")
    assert item.pub_date == item.updated_at == at
    assert item.guid == rss_item("<title>t</title>").guid, "an update gives the item no other identity"
    both = rss_item(f"<guid>1</guid><pubDate>Someday</pubDate><{name}>2004-01-02T00:00:00Z</{name}>")
    assert (both.pub_date, both.pub_date_raw) == (at, "2004-01-02T00:00:00Z")


AT = datetime(2004, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("date", ["Fri, 02 Jan 2004 03:04:05 GMT", "2004-01-02T03:04:05Z"])
@pytest.mark.parametrize(
    "name",
    [
        *("pubDate", "pubdate", "date", "published", "issued", "created", "dc:date", "atom:published"),
        *("dcterms:issued", "dcterms:created", "dcterms:date", "dcterms:dateSubmitted", "dcterms:available"),
    ],
)
@pytest.mark.parametrize("form", ["rss", "rdf", "atom", "atom 0.3"])
def test_a_date_is_read_by_the_element_of_any_format(form: str, name: str, date: str) -> None:
    fields = f"<title>t</title><{name}>{date}</{name}>"
    namespaces = NAMESPACES + ' xmlns:dcterms="http://purl.org/dc/terms/"'
    item = only(
        {
            "rss": f"<rss {namespaces}><channel><title>T</title><item>{fields}</item></channel></rss>",
            "rdf": f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {namespaces}'
            f' xmlns="http://purl.org/rss/1.0/"><channel><title>T</title></channel><item>{fields}</item></rdf:RDF>',
            "atom": atom(f"<entry>{fields}</entry>", namespaces),
            "atom 0.3": f'<feed version="0.3" xmlns="http://purl.org/atom/ns#" {namespaces}><title>T</title>'
            f"<entry>{fields}</entry></feed>",
        }[form]
    )
    assert (item.pub_date, item.pub_date_raw) == (AT, date)


@pytest.mark.parametrize("name", ["pubDate", "date", "dcterms:created"])
def test_a_publication_comes_before_an_update_whatever_its_element(name: str) -> None:
    dcterms = 'xmlns:dcterms="http://purl.org/dc/terms/"'
    fields = f"<updated>2005-01-01T00:00:00Z</updated><{name} {dcterms}>2004-01-02T03:04:05Z</{name}>"
    assert entry(fields).pub_date == rss_item(f"<guid>1</guid>{fields}").pub_date == AT
    other = entry(f"<published>2003-01-01T00:00:00Z</published>{fields}")
    assert other.pub_date == datetime(2003, 1, 1, tzinfo=UTC)


def test_of_the_alternates_of_an_entry_a_page_is_its_link() -> None:
    json = '<link rel="alternate" type="application/json" href="/1.json"/>'
    page = '<link rel="alternate" type="text/html; charset=utf-8" href="/1"/>'
    plain = '<link href="/1"/>'
    for links, link in ((json + page, "/1"), (json + plain, "/1"), (page + json, "/1"), (json, "/1.json")):
        assert entry(links).link == f"https://example.com{link}"
    assert only(atom(f"<entry><title>t</title>{json}{page}</entry>")).guid == (
        only(atom(f"<entry><title>t</title>{json}</entry>")).guid
    ), "the link of an identity stays the first"


@pytest.mark.parametrize("name", ["date", "published", "dcterms:created"])
def test_an_element_of_another_format_gives_an_item_no_other_identity(name: str) -> None:
    dcterms = 'xmlns:dcterms="http://purl.org/dc/terms/"'
    fields = f"<title>t</title><{name} {dcterms}>2004-01-02T03:04:05Z</{name}>"
    assert rss_item(fields).guid == rss_item("<title>t</title>").guid


@pytest.mark.parametrize(
    ("fields", "link"),
    [
        ("<link>/a b</link>", "https://example.com/a%20b"),
        ("<guid>https://example.com/p</guid>", "https://example.com/p"),
        ('<guid isPermaLink="false">https://example.com/p</guid>', None),
        ("<guid>urn:1</guid>", None),
        ("<guid>1</guid><link>http://[bad</link>", None),
        ("<guid>1</guid><link>javascript:alert(1)</link>", None),
        ("<guid>1</guid><link>file:///etc/passwd</link>", None),
        ("<guid>1</guid><link> FI&#10;LE:/etc/passwd</link>", None),
        ("<guid>1</guid><link>blob:https://example.com/1-2-3</link>", None),
        ("<guid>1</guid><link>filesystem:https://example.com/temporary/a</link>", None),
        ("<guid>1</guid><link>view-source:https://example.com/</link>", None),
        ("<guid>1</guid><link>ms-msdt:/id%20x</link>", None),
        ("<guid>1</guid><link>magnet:?xt=urn:btih:1</link>", "magnet:?xt=urn:btih:1"),
        ("<guid>1</guid><link>mailto:a@example.com</link>", "mailto:a@example.com"),
        ("<guid>/blog/april?17</guid>", "https://example.com/blog/april?17"),
        ("<guid>//other.example/april</guid>", "https://other.example/april"),
        ('<guid isPermaLink="true">/blog/april</guid>', "https://example.com/blog/april"),
        ('<guid isPermaLink=" True ">blog/april.html</guid>', "https://example.com/blog/april.html"),
        ('<guid isPermaLink="true">../april</guid>', "https://example.com/april"),
        ('<guid isPermaLink="true">?p=12</guid>', "https://example.com/?p=12"),
        ('<guid isPermaLink="false">/blog/april</guid>', None),
        ('<guid isPermaLink="true">12</guid>', None),
        ('<guid isPermaLink="true">1.0</guid>', None),
        ('<guid isPermaLink="true">tag:example.com,2004:/1</guid>', None),
        ('<guid isPermaLink="true">No address. At all</guid>', None),
        ("<guid>blog/april</guid>", None),
        ("<guid>?p=12</guid>", None),
        ("<guid>/blog/april</guid><link>/other</link>", "https://example.com/other"),
        ('<guid>1</guid><atom:link rel="self" href="/s"/><atom:link href="/a"/>', "https://example.com/a"),
    ],
)
def test_the_link_of_an_item_is_absolute_or_none(fields: str, link: str | None) -> None:
    assert rss_item(f"<title>t</title>{fields}").link == link


def test_the_id_of_an_entry_without_a_link_is_its_link_if_it_is_a_web_address() -> None:
    text = atom("<entry><id>https://example.com/p</id><title>t</title></entry><entry><id>urn:1</id></entry>")
    assert [item.link for item in parsed(text).items] == ["https://example.com/p", None]
    linked = atom('<entry><id>https://example.com/p</id><link href="/q"/></entry>')
    assert only(linked).link == "https://example.com/q"


def test_a_permalink_that_is_a_path_is_no_part_of_an_identity() -> None:
    guid = "<guid>/blog/april</guid><title>t</title><pubDate>d</pubDate>"
    assert rss_item(guid).guid == rss_item(guid, key="link").guid == "/blog/april"
    assert rss_item(guid, key="title+date").guid == rss_item("<title>t</title><pubDate>d</pubDate>").guid
    assert rss_item(guid).guid_source == "guid"


def test_an_rdf_about_that_is_a_path_is_the_link_of_an_item_without_one() -> None:
    item = only(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        "<channel><title>T</title><link>https://example.com/</link></channel>"
        '<item rdf:about="/news/1"/></rdf:RDF>'
    )
    assert (item.guid, item.link) == ("/news/1", "https://example.com/news/1")


def test_the_id_of_a_json_item_without_a_url_is_its_link_if_it_is_a_web_address() -> None:
    feed = parsed(json_feed({"id": "https://example.com/p"}, {"id": "/p"}, {"id": "2", "url": "/q"}))
    links = [item.link for item in feed.items]
    assert links == ["https://example.com/p", None, "https://example.com/q"]


def test_attributes_may_have_the_prefix_of_their_elements_namespace() -> None:
    prefixed = (
        '<a:feed xmlns:a="http://www.w3.org/2005/Atom" xmlns:m="http://search.yahoo.com/mrss/"><a:title>T</a:title>'
        '<a:link a:rel="self" a:href="https://e.example/feed"/><a:link a:href="https://e.example/"/>'
        '<a:entry><a:id>1</a:id><a:title a:type="html">&lt;b&gt;one&lt;/b&gt;</a:title>'
        '<a:link a:rel="self" a:href="/self"/><a:link a:href="/1" a:rel="alternate"/>'
        '<a:link a:rel="enclosure" a:href="/1.mp3" a:type="audio/mpeg" a:length="7"/><a:category a:term="t"/>'
        '<m:thumbnail m:url="/s.png" m:width="9"/><m:thumbnail m:url="/l.png" m:width="90"/>'
        '<a:content a:type="html">&lt;p&gt;Water&lt;/p&gt;</a:content></a:entry></a:feed>'
    )
    feed = parsed(prefixed)
    assert feed.header.link == "https://e.example/"
    assert feed == parsed(re.sub(r"(?<=\s)[am]:(?=\w+=)", "", prefixed))
    (item,) = feed.items
    assert (item.title, item.link, item.content_html) == ("one", "https://e.example/1", "<p>Water</p>")
    assert [each.url for each in item.enclosures] == ["https://e.example/1.mp3", "https://e.example/l.png"]
    assert (item.enclosures[0].length, item.categories) == (7, ("t",))


def test_attributes_of_rss_with_a_namespace_may_have_its_prefix() -> None:
    item = only(
        '<r:rss xmlns:r="http://backend.userland.com/rss2"><r:channel><r:title>T</r:title><r:item>'
        '<r:guid r:isPermaLink="false">https://e.example/1</r:guid>'
        '<r:enclosure r:url="/1.mp3" r:type="audio/mpeg" r:length="7"/></r:item></r:channel></r:rss>'
    )
    assert item.link is None
    assert item.enclosures == (Enclosure(url="https://example.com/1.mp3", type="audio/mpeg", length=7),)


def test_an_attribute_with_another_prefix_is_another_attribute() -> None:
    xlink = 'xmlns:x="http://www.w3.org/1999/xlink"'
    item = entry(f'<link {xlink} x:href="/x" href="/1"/><link rel="enclosure" {xlink} x:href="/x.mp3"/>')
    assert (item.link, item.enclosures) == ("https://example.com/1", ())


def test_a_link_with_a_prefixed_attribute_gives_an_entry_no_other_identity() -> None:
    fields = "<title>t</title><updated>2004-01-02</updated>"
    linked = only(atom(f'<entry>{fields}<a:link xmlns:a="http://www.w3.org/2005/Atom" a:href="/1"/></entry>'))
    assert linked.link == "https://example.com/1"
    assert linked.guid == only(atom(f"<entry>{fields}</entry>")).guid


def test_xml_base_is_what_links_and_content_are_relative_to() -> None:
    text = atom(
        '<entry xml:base="2004/"><id>1</id><link rel="edit" href="e"/><link href="a"/>'
        '<link rel="enclosure" href="a.mp3" type="audio/mpeg" length="12"/>'
        '<content type="html" xml:base="img/">x</content></entry>',
        'xml:base="https://base.example/blog/"',
    )
    item = only(text)
    assert item.link == "https://base.example/blog/2004/a"
    assert item.enclosures == (
        Enclosure(url="https://base.example/blog/2004/a.mp3", type="audio/mpeg", length=12),
    )
    assert item.base_url == "https://base.example/blog/2004/img/"
    assert entry("<content>x</content>").base_url is None


def test_enclosures_and_the_media_beside_or_instead_of_them() -> None:
    both = rss_item(
        '<guid>1</guid><enclosure url="/a.mp3" type="audio/mpeg" length="-"/><enclosure url="http://[" />'
        '<media:content url="/m.jpg"/>'
    )
    assert both.enclosures == (
        Enclosure(url="https://example.com/a.mp3", type="audio/mpeg"),
        Enclosure(url="https://example.com/m.jpg"),
    )
    media = rss_item(
        '<guid>1</guid><media:group><media:content url="/m.jpg" type="image/jpeg" fileSize="9"/>'
        "</media:group>"
    )
    assert media.enclosures == (Enclosure(url="https://example.com/m.jpg", type="image/jpeg", length=9),)


def test_authors_and_categories() -> None:
    item = rss_item(
        "<guid>1</guid><author>a@e.example</author><dc:creator> C </dc:creator>"
        "<category>x</category><category> x</category>"
    )
    assert (item.author, item.categories) == ("C", ("x",))
    other = entry('<author><name>N</name></author><category term="t"/>')
    assert (other.author, other.categories) == ("N", ("t",))


def test_what_the_feed_says_of_itself() -> None:
    feed = parsed(
        rss(
            "",
            "<title> T </title><link>/home</link><language>zh-cn</language><ttl>90</ttl><skipHours>"
            "<hour>24</hour><hour>7</hour><hour>99</hour></skipHours><skipDays><day>Sunday</day><day>x</day></skipDays>",
        )
    )
    assert (feed.header.format, feed.header.title, feed.header.link, feed.header.language) == (
        "rss20",
        "T",
        "https://example.com/home",
        "zh-cn",
    )
    assert feed.header.hints == PublisherHints(
        ttl=timedelta(minutes=90), skip_hours=frozenset({0, 7}), skip_days=frozenset({6})
    )
    slow = parsed(
        rss("", "<sy:updatePeriod> daily </sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>")
    )
    assert slow.header.hints.ttl == timedelta(hours=12)


DESCRIPTION = "Notes &amp;amp; &lt;b&gt;news&lt;/b&gt; of  the\n  town"


@pytest.mark.parametrize(
    "document",
    [
        rss("", f"<title>T</title><description>{DESCRIPTION}</description>"),
        rss(
            "", f"<title>T</title><description> </description><itunes:summary>{DESCRIPTION}</itunes:summary>"
        ),
        rss(
            "",
            "<description><![CDATA[<p>Notes &amp; <b>news</b> of the town</p>]]></description>",
        ),
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">'
        f"<channel><title>T</title><description>{DESCRIPTION}</description></channel></rdf:RDF>",
        atom(f'<subtitle type="html">{DESCRIPTION}</subtitle>'),
        atom("<subtitle>Notes &amp; news of the town</subtitle>"),
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title>'
        f'<tagline type="text/html" mode="escaped">{DESCRIPTION}</tagline></feed>',
        json.dumps(
            {
                "version": "https://jsonfeed.org/version/1.1",
                "items": [],
                "description": "Notes & news of the town ",
            }
        ),
        # Read by the tolerant parser.
        rss("<item><title>a</title><b></item>", f"<title>T</title><description>{DESCRIPTION}</description>"),
        atom(f'<subtitle type="html">{DESCRIPTION}</subtitle><entry><id>1</id><title>a</title><b></entry>'),
    ],
)
def test_a_feed_s_description_is_plain_text_in_each_format(document: str) -> None:
    assert parsed(document).header.description == "Notes & news of the town"
    without = document.replace("escription", "otes").replace("summary", "notes").replace("subtitle", "notes")
    assert parsed(without.replace("tagline", "notes")).header.description is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rss(""), "rss20"),
        ('<rss version="0.91"><channel><title>T</title></channel></rss>', "rss091"),
        (atom(""), "atom10"),
        ('<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title></feed>', "atom03"),
        (json_feed(), "json11"),
    ],
)
def test_a_feed_without_items_is_a_feed(text: str, expected: str) -> None:
    feed = parsed(text)
    assert (feed.header.format, feed.items) == (expected, ())


@pytest.mark.slow
def test_items_beyond_5000_are_counted() -> None:
    feed = parsed(rss("".join(f"<item><guid>{n}</guid></item>" for n in range(5_003))))
    assert (len(feed.items), feed.dropped_items) == (5_000, 3)


def test_a_url_of_more_than_8000_characters_is_none_and_costs_no_item() -> None:
    base = f"https://example.com/{'p' * 7970}/"
    feed = parse_feed(
        f'<rss version="2.0"><channel><link>{base}</link><item><guid>1</guid><link>a</link></item>'
        f"<item><guid>2</guid><link>{'b' * 20}</link></item></channel></rss>".encode()
    )
    assert [(item.guid, item.link) for item in feed.items] == [("1", f"{base}a"), ("2", None)]


def test_a_feeds_title_is_cut_at_a_thousand_characters_and_its_description_at_two() -> None:
    feed = parsed(rss("", f"<title>{'t' * 9_000}</title><description>{'d' * 9_000}</description>"))
    assert (feed.header.title, feed.header.description) == ("t" * 1_000, "d" * 2_000)


def test_an_empty_document_says_so() -> None:
    for body in (b"", b" \n", b"\xef\xbb\xbf", b"\x00\x00"):
        with pytest.raises(NotAFeed, match="empty") as caught:
            parse_feed(body)
        assert caught.value.kind == "empty_body"


def test_a_web_page_is_refused_with_the_feeds_it_names() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>My &amp; Blog</title>"
        '<link href="/rss.xml" type="application/rss+xml" rel="alternate"><link rel=stylesheet href=x.css>'
        "<link rel='alternate' type='application/atom+xml' href='https://b.example/atom?a=1&amp;b=2'></head></html>"
    )
    with pytest.raises(NotAFeed) as caught:
        parsed(page)
    assert caught.value.kind == "html"
    assert "My & Blog" in str(caught.value)
    assert "https://example.com/rss.xml, https://b.example/atom?a=1&b=2" in str(caught.value)
    with pytest.raises(NotAFeed, match="names no feed"):
        parsed("<html><body>gone</body></html>")


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "<a><b/></a>",
        '{"a": 1}',
        "[1, 2]",
        '{"version": ',
        "{" * 50_000,
        "[" * 50_000,
        '{"a":' * 200_000,
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>",
    ],
    ids=["text", "xml", "json", "list", "syntax", "braces", "brackets", "depth", "rdf"],
)
def test_what_is_no_feed_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(NotAFeed, match=r"[A-Z].*\.") as caught:
        parsed(text)
    assert caught.value.kind == "not_a_feed"
