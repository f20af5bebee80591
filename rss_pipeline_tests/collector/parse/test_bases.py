"""The bases of an item's relative references: xml:base, the item's link, the feed's link, the feed's URL."""

from rss_pipeline.collector.images.find import item_images
from rss_pipeline.collector.models.item import Item
from rss_pipeline_tests.collector.parse.documents import URL, atom, json_feed, only, parsed, rss, rss_item

XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'


def images(item: Item) -> list[str]:
    return list(item_images(item, "https://example.com/", URL))


def test_what_is_beside_an_article_is_resolved_against_its_link() -> None:
    fields = (
        "<guid>1</guid><link>/2021/post/</link><description>&lt;img src='a.jpg'></description>"
        '<enclosure url="b.mp3" type="audio/mpeg"/>'
    )
    for item in (rss_item(fields), only(rss(f"<item>{fields}</item></b>"))):
        assert item.link == "https://example.com/2021/post/"
        assert [each.url for each in item.enclosures] == ["https://example.com/2021/post/b.mp3"]
        assert images(item) == ["https://example.com/2021/post/a.jpg"]
    picture = '<guid>1</guid><link>/2021/post/</link><media:thumbnail url="c.jpg"/><image>d.jpg</image>'
    for item in (rss_item(picture), only(rss(f"<item>{picture}</item></b>"))):
        assert images(item) == ["https://example.com/2021/post/c.jpg"]
    of_json = {"id": "1", "url": "/2021/post/", "image": "c.jpg", "attachments": [{"url": "b.mp3"}]}
    assert [each.url for each in only(json_feed(of_json)).enclosures] == [
        "https://example.com/2021/post/b.mp3",
        "https://example.com/2021/post/c.jpg",
    ]


def test_without_a_link_the_feeds_link_counts_then_its_url() -> None:
    fields = '<guid isPermaLink="false">1</guid><enclosure url="b.mp3"/>'
    assert only(rss(f"<item>{fields}</item>")).enclosures[0].url == "https://example.com/b.mp3"
    alone = rss(f"<item>{fields}</item>", channel="<title>T</title>")
    assert only(alone).enclosures[0].url == "https://example.com/dir/b.mp3"


def test_the_innermost_xml_base_counts_also_that_of_the_element_itself() -> None:
    item = only(
        atom(
            '<entry xml:base="https://b.example/feeds/feed.xml"><id>1</id><link href="post" xml:base="x/"/>'
            '<link rel="enclosure" href="a.mp3"/><link rel="enclosure" href="b.mp3" xml:base="https://c.example/"/>'
            "</entry>"
        )
    )
    assert item.link == "https://b.example/feeds/x/post"
    assert [each.url for each in item.enclosures] == [
        "https://b.example/feeds/a.mp3",
        "https://c.example/b.mp3",
    ]
    of_rss = rss_item('<guid>1</guid><link xml:base="https://c.example/x/">post</link>')
    assert of_rss.link == "https://c.example/x/post"
    thumbnail = '<guid>1</guid><media:thumbnail xml:base="https://c.example/x/" url="t.jpg"/>'
    assert images(rss_item(thumbnail)) == ["https://c.example/x/t.jpg"]


def test_an_xml_base_that_is_empty_or_no_page_is_that_around_it() -> None:
    for base in ("", " ", "mailto:a@b.example", "javascript:x", "http://["):
        item = only(
            atom(
                f'<entry xml:base="{base}"><id>1</id><link rel="enclosure" href="a.mp3"/>'
                f'<content type="html" xml:base="{base}">&lt;img src="a.png"></content></entry>',
                'xml:base="https://me:pw@b.example/x/"',
            )
        )
        assert [each.url for each in item.enclosures] == ["https://b.example/x/a.mp3"]
        assert (item.base_url, images(item)) == ("https://b.example/x/", ["https://b.example/x/a.png"])


def test_the_xml_base_of_the_div_around_xhtml_is_that_of_the_content() -> None:
    html = f'<div {XHTML} xml:base="https://pics.example/2026/x.html"><img src="p.jpg"/></div>'
    for name in ("content", "summary"):
        item = only(atom(f'<entry><id>1</id><link href="/a"/><{name} type="xhtml">{html}</{name}></entry>'))
        assert item.content_html == '<img src="p.jpg" />'
        assert item.base_url == "https://pics.example/2026/x.html"
        assert images(item) == ["https://pics.example/2026/p.jpg"]


INNER = (
    '<p xml:base="/x/"><img src="p.jpg"/><a href="#n">n</a><a href="q">q</a></p>'
    '<img srcset="s.jpg 1x, m.jpg 2x" data-src="l.jpg" xml:base="https://c.example/y/"/><img src="r.jpg"/>'
)
FOLDED = (
    '<p><img src="{0}/x/p.jpg" /><a href="#n">n</a><a href="{0}/x/q">q</a></p>'
    '<img srcset="https://c.example/y/s.jpg 1x, https://c.example/y/m.jpg 2x"'
    ' data-src="https://c.example/y/l.jpg" /><img src="r.jpg" />'
)


def test_an_xml_base_below_the_content_is_put_into_its_references() -> None:
    content = f'<content type="xhtml"><div {XHTML}>{INNER}</div></content>'
    item = only(atom(f'<entry><id>1</id><link href="/2026/a"/>{content}</entry>'))
    assert item.content_html == FOLDED.format("https://example.com")
    assert item.base_url is None
    assert images(item)[-1] == "https://example.com/2026/r.jpg"
    described = rss_item(
        f'<link>/2026/a</link><description xml:base="https://b.example/z/">{INNER}</description>'
    )
    assert described.content_html == FOLDED.format("https://b.example")
    assert images(described)[-1] == "https://b.example/z/r.jpg"
    body = rss_item(f'<link>/a</link><body {XHTML} xml:base="https://b.example/z/"><img src="p.jpg"/></body>')
    assert body.content_html == '<img src="https://b.example/z/p.jpg" />'


def test_markup_may_be_nested_deeper_than_pythons_stack() -> None:
    deep = "<b>" * 20_000 + '<i xml:base="/x/"><img src="p.jpg"/></i>' + "</b>" * 20_000
    item = rss_item(f"<link>/a</link><description>{deep}</description>")
    assert 'src="https://example.com/x/p.jpg"' in (item.content_html or "")


def test_an_ill_formed_document_has_the_bases_of_its_items_and_contents() -> None:
    entries = (
        '<entry xml:base="https://b.example/feeds/f.xml"><id>x/1</id><link href="post"/>'
        '<link rel="enclosure" href="a.mp3"/>'
        '<content type="html" xml:base="img/">&lt;img src="p.jpg"></content></entry>'
        '<entry><id>2</id><link href="two"/><content type="html">&lt;img src="q.jpg"></content></entry>'
    )
    text = atom(entries + "</b>", 'xml:base="https://site.example/blog/"')
    read = parsed(text).items
    assert [item.guid for item in read] == ["x/1", "2"]
    assert [item.link for item in read] == ["https://b.example/feeds/post", "https://site.example/blog/two"]
    assert [each.url for each in read[0].enclosures] == ["https://b.example/feeds/a.mp3"]
    assert [images(item) for item in read] == [
        ["https://b.example/feeds/img/p.jpg"],
        ["https://site.example/blog/q.jpg"],
    ]
