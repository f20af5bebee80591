"""Ill-formed documents: what is repaired, what is left out, and that two ways of reading agree."""

from contextlib import suppress
from datetime import UTC, datetime
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.collector.parse.rss_atom import read_feed
from rss_pipeline.collector.parse.xml.repair import opened
from rss_pipeline.collector.parse.xml.tree import read_tree
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.collector.parse.documents import atom, parsed, tolerant_tree
from rss_pipeline_tests.support.cost import costs_less_than

URL = "https://example.com/feed"
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def rss(items: str) -> str:
    return f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'


ONE = rss("<item><guid>1</guid><title>t</title></item>")
MENDED = {
    "bom and blank lines": ("\ufeff\n\n<?xml version='1.0' encoding='gb2312'?>" + ONE, "t"),
    "junk before the declaration": ("<br />\n<b>Warning</b>: x in y.php\n<?xml version='1.0'?>" + ONE, "t"),
    "text before the root": ("ok " + ONE, "t"),
    "script before the declaration": ("<script>x</script><?xml version='1.0'?>" + ONE, "t"),
    "junk behind the root": (ONE + "<script>x</script>", "t"),
    "comment behind the root": (ONE + "<!-- cached -->", "t"),
    "named entities": (
        rss("<item><guid>1</guid><title>&copy;&nbsp;&hellip;&amp;&AMP;</title></item>"),
        "©\u00a0…&&",
    ),
    "bare ampersand": (
        rss("<item><guid>1</guid><title>A & B &c &foo; C&T</title></item>"),
        "A & B &c &foo; C&T",
    ),
    "entities in CDATA": (
        rss("<item><guid>1</guid><title><![CDATA[&nbsp;& <b>]]> & x</title></item>"),
        "& <b> & x",
    ),
    "bare less-than": (rss("<item><guid>1</guid><title>1 < 2 <3</title></item>"), "1 < 2 <3"),
    "control characters": (rss("<item><guid>1</guid><title>a\x00\x0b\x1fb</title></item>"), "ab"),
    "references to control characters": (rss("<item><guid>1</guid><title>a&#0;&#x8;b</title></item>"), "ab"),
    "surrogate references": (
        rss("<item><guid>1</guid><title>&#55357;&#56832; &#xD83D;&#xDE00; &#xD800;</title></item>"),
        "\U0001f600 \U0001f600 \ufffd",
    ),
    "undeclared prefix": (rss('<item><guid>1</guid><media:x/><title foo:bar="1">t</title></item>'), "t"),
    "external document type": (
        '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://127.0.0.1:9/x.dtd">'
        + rss("<item><guid>1</guid><title>caf&eacute;</title></item>"),
        "café",
    ),
    "internal entities": (
        '<!DOCTYPE rss [<!ENTITY firm "A Co">]>' + rss("<item><guid>1</guid><title>&firm;</title></item>"),
        "A Co",
    ),
    "internal entities with references": (
        '<!DOCTYPE rss [<!ENTITY firm "Caf&#233; &#xab;Co&#187; &amp; &eacute;l&#xE8;ve">'
        '<!ENTITY dash "&#38;#8212;">]>'
        + rss("<item><guid>1</guid><title>&firm; &dash; &#8212;</title></item>"),
        "Café «Co» & élève — —",
    ),
    "internal entities that make markup": (
        "<!DOCTYPE rss [<!ENTITY less '&#38;#60;b&#62;'>]>"
        + rss("<item><guid>1</guid><title>a &less; &eacute;</title></item>"),
        "a <b> é",
    ),
    "internal entities of others": (
        '<!DOCTYPE rss [<!ENTITY b "&a;&eacute;"><!ENTITY a "100% x"><!ENTITY c \'"&#38;b;"\'>'
        '<!ENTITY eacute "&lt;&a;"><!ENTITY a "second"><!ENTITY none ""><!ENTITY site-name "&b.c;">'
        '<!ENTITY b.c "y"><!ENTITY d "&e;"><!ENTITY e "&d;"><!ENTITY f "&#37;p;">]>'
        + rss("<item><guid>1</guid><title>&a; &b; &c; &none;| &site-name; &d; &f;</title></item>"),
        '100% x 100% x<100% x "100% x<100% x" | y &d; %p;',
    ),
    "internal entities in an attribute": (
        "<!DOCTYPE rss [<!ENTITY a '\"'><!ENTITY b \"a'&a;\">]>"
        + rss("<item><guid isPermaLink='&b;'>1</guid><title x='&b;' y=\"&b;\">&b;</title></item>"),
        "a'\"",
    ),
    "a stray empty feed": ("<feed/>\n" + ONE, "t"),
    "a stray empty feed after the declaration": (
        '<?xml version="1.0"?>\n<feed xmlns="http://www.w3.org/2005/Atom" >\n</feed>\n<?xml version="1.0"?>'
        + atom("<entry><id>1</id><title>t</title></entry>"),
        "t",
    ),
    "two stray empty feeds, a comment and a document type": (
        "<rss></rss><!-- c --><rdf:RDF /><!DOCTYPE rss>" + ONE,
        "t",
    ),
    "a stray empty feed before an ill-formed one": (
        "<feed/>" + rss("<item><guid>1</guid><title>t</title></itme></item>"),
        "t",
    ),
    "document type of a web page": ("<!DOCTYPE html>\n" + ONE, "t"),
    "declaration and type of a web page": ("<?xml version='1.0'?><!doctype html >" + ONE, "t"),
    "body of a web page": (
        '<html lang="en"><head><meta charset="utf-8"></head><body class="x">' + ONE + "</body>",
        "t",
    ),
    "saved view of a browser": (
        '<html><body><div id="webkit-xml-viewer-source-xml">' + ONE + "</div></body></html>",
        "t",
    ),
    "names in another case": (rss("<Item><GUID>1</GUID><Title>t</Title></Item>"), "t"),
    "tags that do not match": (rss("<item><guid>1</guid><title>t</title></itme></item>"), "t"),
}


@pytest.mark.parametrize(("text", "title"), MENDED.values(), ids=MENDED.keys())
def test_a_document_is_read_in_spite_of(text: str, title: str) -> None:
    (item,) = parse_feed(text.encode(), url=URL).items
    assert (item.guid, item.title) == ("1", title)


def test_undeclared_content_prefix_is_the_content_module() -> None:
    text = rss("<item><guid>1</guid><description>d</description><content:encoded>c</content:encoded></item>")
    feed = parse_feed(text.encode())
    assert (feed.items[0].content_html, feed.items[0].summary) == ("c", "d")
    assert feed.header.repairs == ("undeclared prefixes declared",)


def test_a_document_read_as_it_is_has_no_repairs() -> None:
    assert parse_feed(f"<?xml version='1.0'?>{ONE}".encode()).header.repairs == ()


@pytest.mark.parametrize("page", ["<p>How a feed begins:</p>", "<title>x</title>", "text "])
def test_a_web_page_with_a_feed_among_other_things_is_a_web_page(page: str) -> None:
    with pytest.raises(NotAFeed, match="web page") as caught:
        parse_feed(f"<!DOCTYPE html><html><body>{page}{ONE}</body></html>".encode())
    assert caught.value.kind == "html"


def test_a_feed_in_a_web_page_reads_as_it_does_alone() -> None:
    """The end of the page is cut, too: it would be the loose parser's, which writes XHTML otherwise."""
    feed = atom(
        '<entry><id>1</id><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>1 &lt; 2<br/>'
        "</p></div></content></entry>"
    )
    framed = parsed(f"<!DOCTYPE html>\n<html><body>\n{feed}\n</body>\n</html>\n")
    assert framed.header.repairs == ("web page around the feed cut",)
    assert framed.items == parsed(feed).items


def test_much_white_space_before_no_feed_takes_no_time() -> None:
    # It took longer than anyone waits: each run of white space was tried in every division.
    assert opened("<!DOCTYPE html>" + " \n" * 50_000 + "<p>x</p>").root == "html"


@pytest.mark.parametrize("items", ["<x:item><guid>1</guid></x:item>", "<entry>1</entry>"])
def test_item_tags_of_which_none_is_an_item_are_a_failure(items: str) -> None:
    with pytest.raises(NotAFeed, match=r"1 item tag\(s\), but no item could be read"):
        parse_feed(rss(items).replace("<rss", '<rss xmlns:x="urn:x"').encode())


@pytest.mark.parametrize("mention", ["<![CDATA[<item>]]>", "&lt;item&gt;", "<!-- <item> -->"])
def test_a_feed_without_items_is_a_feed(mention: str) -> None:
    assert parse_feed(rss("").replace("T<", f"T{mention}<").encode()).items == ()


CUT = rss(
    "".join(f"<item><guid>{n}</guid><description><![CDATA[text {n}]]></description></item>" for n in range(4))
)


@pytest.mark.parametrize("trouble", ["", "<title>x & &nbsp;</title>", "<b><i></b>"])
@pytest.mark.parametrize(
    "end", range(CUT.index("</item>") + len("</item>"), len(CUT) - len("</channel></rss>"), 7)
)
def test_of_a_document_that_was_cut_off_the_items_that_end_are_kept(trouble: str, end: int) -> None:
    text = CUT[:end].replace("<title>T</title>", f"<title>T</title>{trouble}", 1)
    feed = parse_feed(text.encode())
    assert [(item.guid, item.content_html) for item in feed.items] == [
        (str(n), f"text {n}") for n in range(CUT[:end].count("</item>"))
    ]
    assert any("cut off" in repair for repair in feed.header.repairs)


def test_a_document_that_was_cut_off_before_an_item_ended_is_a_failure() -> None:
    with pytest.raises(NotAFeed, match="cut off"):
        parse_feed(CUT[: CUT.index("</item>")].encode())


def test_entities_cannot_explode() -> None:
    declared = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol"}">' for n in range(12))
    text = f"<!DOCTYPE rss [{declared}]>" + rss("<item><guid>1</guid><title>&e11;</title></item>")
    with costs_less_than(1):
        (item,) = parse_feed(text.encode()).items
    assert item.title == "&e11;"


def test_what_a_documents_own_entities_become_has_a_limit() -> None:
    text = f'<!DOCTYPE rss [<!ENTITY a "{"x" * 1000}"><!ENTITY b "{"x" * 1001}">]>' + rss(
        f"<item><guid>1</guid><title>&b;{'&a;' * 5000}</title></item>"
    )
    (item,) = parse_feed(text.encode()).items
    assert item.title is not None
    assert item.title.startswith("&b;xxx")
    assert item.title.count("x") == 1_000_000
    assert item.title.count("&a;") == 4000


def test_an_empty_feed_alone_is_a_feed_and_one_with_something_in_it_is_not_stray() -> None:
    assert parse_feed(b'<feed xmlns="http://www.w3.org/2005/Atom"/>').header.format == "atom10"
    twice = parse_feed((ONE + ONE.replace("<title>t", "<title>u")).encode())
    assert [item.title for item in twice.items] == ["t"]
    assert parse_feed(f"<feed/>{ONE}".encode()).header.repairs == ("empty feed before the feed cut",)


def test_no_file_is_opened_for_an_entity() -> None:
    text = '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + rss(
        "<item><guid>1</guid><title>&x;</title></item>"
    )
    assert parse_feed(text.encode()).items[0].title == "&x;"


def test_a_format_of_feedparsers_own_is_read_by_it() -> None:
    text = '<channel href="https://example.com/"><title>T</title>'
    text += '<item href="https://example.com/1"><title>t</title></item></channel>'
    feed = parse_feed(text.encode(), url=URL)
    assert feed.header.format == "cdf"
    assert [(item.guid, item.guid_source, item.title) for item in feed.items] == [
        ("https://example.com/1", "link", "t")
    ]


def test_an_id_of_an_ill_formed_document_is_not_resolved() -> None:
    text = rss('<item xml:base="https://b.example/"><guid>post/1</guid></itme></item>')
    assert parse_feed(text.encode(), url=URL).items[0].guid == "post/1"


@pytest.mark.parametrize("tag", ['b x=">"', "b x='<>'"])
def test_a_tag_of_an_ill_formed_document_may_have_thousands_of_attributes(tag: str) -> None:
    many = " ".join(f'a{n}=""' for n in range(20_000))
    text = rss(f"<item><guid>1</guid><{tag} {many}/></itme></item>")
    with costs_less_than(2):
        assert parse_feed(text.encode()).items[0].guid == "1"


def test_equal_signs_in_a_long_address_are_no_attributes() -> None:
    url = "https://a.example/?" + "&amp;".join(f"a{n}={n}" for n in range(600))
    text = rss(f'<item><guid>1</guid><enclosure url="{url}" type="audio/mpeg"/></itme></item>')
    assert parse_feed(text.encode()).items[0].enclosures[0].url == url.replace("&amp;", "&")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        rss("<item><guid>1</guid><title>" + "<!--" * 50_000 + "</title></item>"),
        rss("<item><guid>1</guid><title>" + "&" * 200_000 + "</title></item>"),
        "<!DOCTYPE rss [" + "]" * 100_000 + rss("<item><guid>1</guid></item>"),
        "<?" * 100_000 + ONE,
        rss("<item><guid>1</guid>" + "<a>" * 100_000 + "</a>" * 100_000 + "</item>"),
        rss(
            "<item><guid>1</guid><description>" + "<a>" * 100_000 + "</a>" * 100_000 + "</description></item>"
        ),
        "<rss "
        + "".join(f'a{n}="" ' for n in range(40_000))
        + "><channel><item><guid>1</guid></item></channel></rss>",
    ],
    ids=["comments", "ampersands", "brackets", "instructions", "nesting", "nesting in content", "attributes"],
)
def test_hostile_documents_take_no_more_than_their_length(text: str) -> None:
    with costs_less_than(10), suppress(NotAFeed):
        assert parse_feed(text.encode()).items[0].guid == "1"


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp", "Co", "Cn"]),
    min_size=1,
    max_size=20,
)
TEXT = st.lists(
    WORDS | st.sampled_from(["<b>", "</b>", "&", "&amp;", "&lt;", "Ã©", "]]", "<img src=x>", "a\r\nb\rc"]),
    min_size=1,
    max_size=5,
).map(" ".join)


@st.composite
def documents(draw: st.DrawFn) -> str:
    def text(value: str) -> str:
        plain = draw(st.booleans()) or "]]>" in value
        return escape(value) if plain else f"<![CDATA[{value}]]>"

    items = ""
    for number in range(draw(st.integers(0, 3))):
        items += "<item>"
        if draw(st.booleans()):
            items += f"<guid isPermaLink='false'>{text(draw(TEXT))} {number}</guid>"
        items += f"<title>{text(draw(TEXT))}</title><link>https://example.com/{number}</link>"
        if draw(st.booleans()):
            items += f"<description>{text(draw(TEXT))}</description>"
        if draw(st.booleans()):
            items += f"<content:encoded>{text(draw(TEXT))}</content:encoded>"
        items += "<pubDate>Thu, 01 Jan 2004 19:48:21 GMT</pubDate><category>c</category>"
        items += "<enclosure url='https://example.com/a.mp3' type='audio/mpeg' length='1'/></item>"
    return (
        '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>T</title>'
        f"<link>https://example.com/</link>{items}</channel></rss>"
    )


@pytest.mark.slow
@given(documents())
def test_a_well_formed_document_reads_the_same_on_both_ways(text: str) -> None:
    strict = read_feed(read_tree(text), URL, now=NOW)
    tolerant = read_feed(tolerant_tree(text), URL, now=NOW)
    assert strict is not None
    assert tolerant is not None
    assert strict.items == tolerant.items


@given(documents())
def test_reading_twice_gives_the_same(text: str) -> None:
    assert parse_feed(text.encode()) == parse_feed(text.encode())


@given(documents(), st.data())
def test_no_cut_makes_an_item_other_than_it_was(text: str, data: st.DataObject) -> None:
    whole = parse_feed(text.encode()).items
    body = text.encode()
    cut = body[: data.draw(st.integers(0, len(body)))]
    try:
        kept = parse_feed(cut).items
    except NotAFeed:
        return
    assert kept == whole[: len(kept)]


@given(
    st.text(max_size=200),
    st.sampled_from(["", "<rss>", "<feed>", "{", '{"version":"https://jsonfeed.org/version/1","items":[']),
)
def test_no_text_raises_anything_but_not_a_feed(text: str, start: str) -> None:
    with suppress(NotAFeed):
        parse_feed((start + text).encode(errors="replace"), url=URL)


def test_junk_is_not_looked_for_in_a_web_page() -> None:
    assert opened("<!DOCTYPE html><html><body><p>x</p><rss version='2.0'></rss></body></html>").root == "html"
