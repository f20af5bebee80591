"""The identity of an item: guid, else link, else a hash, raw and never resolved."""

import hashlib
import json

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


def test_a_guid_of_more_than_2000_bytes_is_identified_by_its_hash() -> None:
    for long in ("g" * 2_001, "\u00fc" * 1_001):
        short = f"sha256:{hashlib.sha256(long.encode()).hexdigest()}"
        item = rss_item(f"<guid isPermaLink='false'>{long}</guid><link>https://example.com/{long}</link>")
        assert (item.guid, item.guid_source, item.former_guids) == (short, "guid", ((short, long),))
        assert item.link == f"https://example.com/{long}"
        linked = rss_item(f"<link>{long}</link>")
        assert (linked.guid, linked.guid_source, linked.link) == (
            short,
            "link",
            f"https://example.com/{long}",
        )
    assert rss_item(f"<guid>{'g' * 2_000}</guid>").guid == "g" * 2_000


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


def rdf(*items: tuple[str, str, str], end: str = "") -> str:
    """RSS 1.0 with these items (about, link, title); `end` makes it ill-formed."""
    rows = "".join(
        f'<item rdf:about="{about}"><title>{title}</title>'
        + (f"<link>{link}</link>" if link else "")
        + "<dc:date>2026-01-01</dc:date></item>"
        for about, link, title in items
    )
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title></channel>{rows}{end}</rdf:RDF>'
    )


@pytest.mark.parametrize("end", ["", "</b>"], ids=["well-formed", "loose"])
def test_an_rdf_about_that_equals_a_link_of_several_items_is_no_identity(end: str) -> None:
    page = "https://e.example/conferences"
    feed = parsed(rdf((page, page, "a"), (page, page, "b"), (page, "", "c"), ("urn:1", page, "d"), end=end))
    assert [(item.guid, item.guid_source) for item in feed.items] == [
        *((md5(f"{title}2026-01-01"), "hash") for title in "abc"),
        ("urn:1", "guid"),
    ]
    assert {item.link for item in feed.items} == {page}
    assert feed.duplicate_guids == ()


def test_an_rdf_about_that_is_the_link_of_one_item_identifies_it_as_ever() -> None:
    page = "https://e.example/1"
    feed = parsed(rdf((page, page, "a"), (page, page, "a"), ("https://e.example/2", "", "b")))
    assert [(item.guid, item.guid_source) for item in feed.items] == [
        (page, "guid"),
        ("https://e.example/2", "guid"),
    ]
    assert feed.duplicate_guids == (page,)
    (item,) = parsed(rdf((page, page, "a")), key="link").items
    assert (item.guid, item.guid_source) == (page, "link")


@pytest.mark.parametrize("end", ["", "</b>"], ids=["well-formed", "loose"])
def test_an_rdf_about_of_items_with_links_and_titles_of_their_own_is_no_identity(end: str) -> None:
    site = "https://e.example/"
    feed = parsed(rdf(*((site, f"{site}{n}", f"title {n}") for n in range(4)), ("urn:1", site, "x"), end=end))
    assert [(item.guid, item.guid_source) for item in feed.items] == [
        *((f"{site}{n}", "link") for n in range(4)),
        ("urn:1", "guid"),
    ]
    twice = parsed(rdf(("urn:1", f"{site}a", "a"), ("urn:1", f"{site}a?from=feed", "a"), end=end))
    assert [item.guid for item in twice.items] == ["urn:1"]


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


def md5(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def listed(items: list[tuple[str, str | None, str]]) -> dict[str, str]:
    """Documents of every format with these items (link, title, date), none of which has a guid."""

    def each(template: str) -> str:
        return "".join(
            template.format(link=link, title="" if title is None else f"<title>{title}</title>", date=date)
            for link, title, date in items
        )

    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    dated = "<item>{title}<link>{link}</link><pubDate>{date}</pubDate></item>"
    return {
        "rss": rss(each(dated)),
        "loose": rss(
            each(dated) + "<item><link>http://e.example/other</link><description>a <b>x</description></item>"
        ),
        "rdf": f'<rdf:RDF xmlns:rdf="{rdf}" xmlns="http://purl.org/rss/1.0/" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title></channel>'
        + each("<item>{title}<link>{link}</link><dc:date>{date}</dc:date></item>")
        + "</rdf:RDF>",
        "atom": atom(each('<entry>{title}<link href="{link}"/><published>{date}</published></entry>')),
        "json": json.dumps(
            {
                "version": "https://jsonfeed.org/version/1.1",
                "items": [
                    {"url": link, "title": title, "date_published": date} for link, title, date in items
                ],
            }
        ),
    }


PAGE = "http://e.example/news"
FORMATS = ["rss", "loose", "rdf", "atom", "json"]


@pytest.mark.parametrize("form", FORMATS)
def test_items_that_share_a_link_but_differ_in_title_are_identified_by_title_and_date(form: str) -> None:
    days = ["2026-01-01", "2026-01-02"]
    document = listed([
        (PAGE, "a", days[0]), (PAGE, "b", days[0]), (PAGE, "a", days[1]), (PAGE, "a", days[0]),
        ("http://e.example/alone", "a", days[0]),
    ])[form]  # fmt: skip
    feed = parsed(document)
    found = [(item.guid, item.guid_source) for item in feed.items][:4]
    assert found == [
        (md5("a2026-01-01"), "hash"),
        (md5("b2026-01-01"), "hash"),
        (md5("a2026-01-02"), "hash"),
        ("http://e.example/alone", "link"),
    ]
    assert (feed.duplicate_guids, feed.shared_guids) == ((md5("a2026-01-01"),), 0), "a repetition"


@pytest.mark.parametrize("form", FORMATS)
def test_items_of_two_shared_links_with_one_title_and_date_stay_apart(form: str) -> None:
    other = "http://e.example/other-series"
    document = listed([(link, f"Chapter {n}", "2026-01-01") for link in (PAGE, other) for n in (1, 2)])[form]
    guids = [item.guid for item in parsed(document).items][:4]
    assert guids[:2] == [md5("Chapter 12026-01-01"), md5("Chapter 22026-01-01")]
    assert len(set(guids)) == 4


def test_an_item_without_link_has_its_hash_before_those_that_share_one() -> None:
    alone = "<item><title>a</title><pubDate>d</pubDate></item>"
    shared = "".join(f"<item><title>{t}</title><pubDate>d</pubDate><link>{PAGE}</link></item>" for t in "ab")
    guids = [item.guid for item in parsed(rss(shared + alone)).items]
    assert guids[1:] == [md5("bd"), md5("ad")]
    assert len(set(guids)) == 3


def test_items_that_share_link_and_title_are_one_item_as_ever() -> None:
    feed = parsed(listed([(PAGE, "a", "2026-01-01"), (PAGE, "a", "2026-01-02")])["rss"])
    assert [(item.guid, item.guid_source) for item in feed.items] == [(PAGE, "link")]


def test_items_with_guids_share_a_link_without_any_consequence() -> None:
    shared = "".join(f"<item><guid>{n}</guid><title>{n}</title><link>{PAGE}</link></item>" for n in "ab")
    feed = parsed(rss(shared + f"<item><title>c</title><link>{PAGE}</link></item>"))
    assert [item.guid for item in feed.items] == ["a", "b", PAGE]


def test_a_key_of_the_feed_means_what_it_says() -> None:
    document = listed([(PAGE, "a", "2026-01-01"), (PAGE, "b", "2026-01-01")])["rss"]
    by_link = parsed(document, key="link")
    assert [item.guid for item in by_link.items] == [PAGE]
    assert by_link.shared_guids == 1
    by_hash = parsed(document, key="title+date")
    assert [item.guid for item in by_hash.items] == [md5("a2026-01-01"), md5("b2026-01-01")]
    assert [item.identities for item in (*by_link.items, *by_hash.items)] == [None] * 3
