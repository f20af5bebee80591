"""The text of an item: content and summary as published, to the byte."""

import base64
import hashlib

import pytest

from rss_pipeline.collector.images.find import item_images
from rss_pipeline.collector.models.item import Enclosure, Item
from rss_pipeline.errors import NotAFeed
from rss_pipeline_tests.collector.parse.documents import atom, entry, json_feed, only, parsed, rss, rss_item

HTML = (
    '<p onclick="x">1 &lt; 2 &amp;amp; <img data-src="a.jpg" src=\'b\'>\u00a0Ã©\u200b<script></script></p>\n '
)


@pytest.mark.parametrize("cdata", [True, False])
@pytest.mark.parametrize("name", ["content:encoded", "description"])
def test_content_is_what_was_published_to_the_byte(name: str, cdata: bool) -> None:
    inner = f"<![CDATA[{HTML}]]>" if cdata else HTML.replace("&", "&amp;").replace("<", "&lt;")
    assert rss_item(f"<guid>1</guid><{name}>{inner}</{name}>").content_html == HTML


def test_content_encoded_comes_before_description_which_is_then_the_summary() -> None:
    for fields in (
        "<description>d</description><content:encoded>c</content:encoded>",
        "<content:encoded>c</content:encoded><description>d</description>",
        "<itunes:summary>i</itunes:summary><content:encoded>c</content:encoded>"
        "<media:description>m</media:description><description>d</description>",
    ):
        item = rss_item(f"<guid>1</guid>{fields}")
        assert (item.content_html, item.summary) == ("c", "d")


SILENT = [
    "<!-- empty -->",
    "<!-- a > b",
    "&nbsp;",
    "<p>&nbsp;</p><br/>",
    "<p>&#160;&#xA0;</p>\n<div><span></span></div>",
    "\u200b\ufeff",
    "<p>&#8203;&zwnj;&shy;</p>",
    "<script>var a = 1 < 2;</script><style>p { color: red }</style>",
    '<img src="https://feeds.example/~r/1" height="1" width="1"/>',
]
SPEAKING = [
    "<p>.</p>",
    "&amp;",
    "&lt;!-- --&gt;",
    '<img src="a.jpg">',
    "<iframe src='a'></iframe>",
    "<!-- --> x",
]


@pytest.mark.parametrize("ill_formed", ["", "<b></itme>"])
@pytest.mark.parametrize("text", SILENT)
def test_a_content_that_shows_nothing_hides_no_other_text(text: str, ill_formed: str) -> None:
    def of(content: str, description: str) -> Item:
        encoded = f"<content:encoded><![CDATA[{content}]]></content:encoded>" if content else ""
        fields = f"{encoded}<description><![CDATA[{description}]]></description>"
        return rss_item(f"<itunes:summary>further</itunes:summary>{fields}{ill_formed}")

    for item in (of(text, "said"), of("", "said")):
        assert (item.content_html, item.summary) == ("said", None)
    assert of(text, "").content_html == of("", text).content_html == "further"
    assert of(text, text).guid == of(text, "said").guid
    assert only(json_feed({"id": "1", "content_html": text, "content_text": "said"})).content_html == "said"
    assert only(json_feed({"id": "1", "content_html": text, "summary": "said"})).content_html == "said"
    assert only(json_feed({"id": "1", "content_html": text})).content_html == text


@pytest.mark.parametrize("text", SPEAKING)
def test_a_content_that_shows_anything_is_the_content(text: str) -> None:
    item = rss_item(f"<content:encoded><![CDATA[{text}]]></content:encoded><description>d</description>")
    assert (item.content_html, item.summary) == (text, "d")


FILES = {
    '<podcast:alternateEnclosure type="video/mp4"><podcast:source uri="/2.mp4"/></podcast:alternateEnclosure>'
    '<podcast:alternateEnclosure type="audio/mpeg" length="9" default="true">'
    '<podcast:source uri="magnet:?xt=1"/>'
    '<podcast:source uri="https://cdn.example/1.mp3"/></podcast:alternateEnclosure>': [
        Enclosure(url="https://cdn.example/1.mp3", type="audio/mpeg", length=9),
        Enclosure(url="https://example.com/2.mp4", type="video/mp4"),
    ],
    '<ppg:enclosureSecure url="https://cdn.example/1.mp3" type="audio/mpeg" length="9"/>': [
        Enclosure(url="https://cdn.example/1.mp3", type="audio/mpeg", length=9)
    ],
}


@pytest.mark.parametrize(("fields", "files"), FILES.items())
def test_a_file_that_another_vocabulary_alone_names_is_an_enclosure(
    fields: str, files: list[Enclosure]
) -> None:
    item = rss_item(f"<guid>1</guid>{fields}")
    assert list(item.enclosures) == files
    assert rss_item(f"<guid>1</guid>{fields}<b></itme>").enclosures
    named = rss_item(f'<guid>1</guid>{fields}<enclosure url="https://cdn.example/0.mp3"/>')
    assert [each.url for each in named.enclosures] == ["https://cdn.example/0.mp3"]
    assert rss_item(fields).guid == rss_item("").guid


def test_a_document_of_one_atom_entry_is_one_item() -> None:
    text = (
        '<entry xmlns="http://www.w3.org/2005/Atom" xml:base="https://a.example/b/"><id>urn:1</id>'
        '<title>One</title><link href="c"/><content type="html">&lt;feed&gt; text</content></entry>'
    )
    feed = parsed(text)
    assert (feed.header.format, feed.cut_off) == ("atom10", False)
    [item] = feed.items
    assert (item.guid, item.title, item.link) == ("urn:1", "One", "https://a.example/b/c")
    with pytest.raises(NotAFeed, match="cut off"):
        parsed(text.removesuffix("</entry>"))


GEMINI, NOSTR, PAGE = (
    f'<{{0}}link rel="alternate" {attributes}/>'
    for attributes in (
        'href="gemini://a.example/1"',
        'href="nostr:naddr1"',
        'type="text/html" href="https://a.example/1"',
    )
)


@pytest.mark.parametrize("ill_formed", ["", "<b></itme>"])
@pytest.mark.parametrize("first", [GEMINI, NOSTR, GEMINI + NOSTR])
def test_no_alternate_elsewhere_beats_a_page_on_the_web(first: str, ill_formed: str) -> None:
    links = first + PAGE
    assert entry(links.replace("{0}", "") + ill_formed).link == "https://a.example/1"
    assert (
        rss_item(f"<guid>1</guid>{links.replace('{0}', 'atom:')}{ill_formed}").link == "https://a.example/1"
    )
    header = parsed(atom(f"{links.replace('{0}', '')}<entry><id>1</id></entry>")).header
    assert header.link == "https://a.example/1"
    assert entry(GEMINI.replace("{0}", "")).link == "gemini://a.example/1"


@pytest.mark.parametrize("html", ["<b>x</b>", "<b>ïãï?</b>", "<b>ïã?~</b>"])
def test_base64_without_its_padding_is_read(html: str) -> None:
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for text in (encode(html.encode()).decode(), encode(html.encode()).decode().rstrip("=")):
            content = f'<content mode="base64" type="text/html">\n{text}\n</content>'
            assert entry(content).content_html == html


def test_a_blank_content_encoded_counts_as_none() -> None:
    item = rss_item(
        "<guid>1</guid><content:encoded><![CDATA[ \n]]></content:encoded><description>d</description>"
    )
    assert (item.content_html, item.summary) == ("d", None)


MEDIA = "<media:group><media:description>a &lt; b\nc</media:description></media:group>"


@pytest.mark.parametrize(
    ("fields", "content"),
    [
        (MEDIA, "a &lt; b<br>\nc"),
        ("<itunes:summary>i</itunes:summary><media:description>m</media:description>", "m"),
        ('<media:description type="html">&lt;b&gt;m&lt;/b&gt;</media:description>', "<b>m</b>"),
        ("<media:description>&lt;p&gt;m&lt;/p&gt;</media:description>", "<p>m</p>"),
        (
            "<itunes:summary><![CDATA[one &amp; <a href='/x'>two</a>]]></itunes:summary>",
            "one &amp; <a href='/x'>two</a>",
        ),
        ("<itunes:summary> </itunes:summary><dc:description>&lt;i&gt;d</dc:description>", "<i>d"),
        ('<body xmlns="http://www.w3.org/1999/xhtml"><p>x</p></body>', "<p>x</p>"),
    ],
)
def test_another_text_of_an_item_without_content_is_its_content(fields: str, content: str) -> None:
    in_rss = rss_item(f"<guid>1</guid>{fields}")
    assert (in_rss.content_html, in_rss.summary) == (content, None)
    assert entry(fields).content_html == content
    soup = only(rss(f"<item><guid>1</guid>{fields}</item></b>"))
    assert soup.content_html == content, "also where only the tolerant parser reads the document"
    own = rss_item(f"<guid>1</guid><description>d</description>{fields}")
    assert (own.content_html, own.summary) == ("d", None)


def test_another_text_gives_an_item_no_other_identity() -> None:
    assert rss_item(MEDIA).guid == rss_item("<pubDate></pubDate>").guid


THUMBNAIL = Enclosure(url="https://example.com/large.jpg", type="image/*")


@pytest.mark.parametrize(
    "fields",
    [
        '<media:thumbnail url="/large.jpg"/>',
        '<media:thumbnail url="/small.jpg" width="120"/><media:thumbnail url="/large.jpg" width="480"/>',
        '<media:group><media:thumbnail url="/large.jpg"/></media:group>',
        '<media:content url=""><media:thumbnail url="/large.jpg"/></media:content>',
        '<media:content url="/large.jpg" medium="image"/>',
        '<itunes:image href="/large.jpg"/>',
        '<media:thumbnail url="http://[bad"/><itunes:image href="/large.jpg"/>',
    ],
)
def test_the_widest_thumbnail_of_an_item_is_its_image(fields: str) -> None:
    ill_formed = only(rss(f"<item><guid>1</guid>{fields}</item></b>"))
    for item in (rss_item(f"<guid>1</guid>{fields}"), entry(fields), ill_formed):
        assert item.enclosures == (THUMBNAIL,)
        assert item_images(item, None, None) == (THUMBNAIL.url,)


def test_a_thumbnail_is_left_out_where_the_content_shows_an_image() -> None:
    item = rss_item(
        '<guid>1</guid><media:thumbnail url="/small.jpg"/><description>&lt;img src="/a.jpg"&gt;</description>'
    )
    assert item.enclosures == ()
    html = '<img src="/a.jpg">'
    shown = {"id": "1", "content_html": html, "image": "/small.jpg"}
    assert only(json_feed(shown)).enclosures == ()
    video = rss_item(
        '<guid>1</guid><media:thumbnail url="/large.jpg"/><enclosure url="/a.mp4" type="video/mp4"/>'
    )
    assert [each.type for each in video.enclosures] == ["video/mp4", "image/*"]


TRACKERS = (
    '<img src="https://feeds.feedburner.com/~r/x" height="1" width="1" alt=""/>',
    "<p>x</p><img width=1 height=1 src=/t.gif><img style='width:0px; height: 1px' src=/u.gif>",
)


@pytest.mark.parametrize("html", TRACKERS)
def test_a_tracker_in_the_content_is_no_image_in_place_of_the_thumbnail(html: str) -> None:
    fields = f'<guid>1</guid><media:thumbnail url="/large.jpg"/><description><![CDATA[{html}]]></description>'
    item_of_json = only(json_feed({"id": "1", "content_html": html, "image": "/large.jpg"}))
    for item in (rss_item(fields), only(rss(f"<item>{fields}</item></b>")), item_of_json):
        assert item.enclosures == (THUMBNAIL,)


@pytest.mark.parametrize(
    "size", ['width="100%" height="1"', 'width="10" height="1"', 'width="1.5em" height="1"']
)
def test_a_low_image_is_one(size: str) -> None:
    html = f"<img src='/a.png' {size}>"
    item = rss_item(f'<media:thumbnail url="/l.jpg"/><description><![CDATA[{html}]]></description>')
    assert item.enclosures == ()


def test_the_rss_image_of_an_item_is_its_image() -> None:
    fields = "<image><title>t</title><url>\n /large.jpg\n</url></image>"
    assert rss_item(f"<guid>1</guid>{fields}").enclosures == (THUMBNAIL,)


def test_the_image_of_a_json_item_is_its_image() -> None:
    for image in ({"image": "/large.jpg", "banner_image": "/b.jpg"}, {"banner_image": "/large.jpg"}):
        assert only(json_feed({"id": "1", **image})).enclosures == (THUMBNAIL,)


def test_an_enclosure_of_atom_may_be_named_in_the_text_of_its_link() -> None:
    target = "https://e.example/a.jpg"
    item = entry(
        f'<link rel="enclosure" type="image/jpeg"> {target} </link><link rel="enclosure">none</link>'
    )
    assert [each.url for each in item.enclosures] == [target]


ELSEWHERE: dict[str, tuple[str | None, list[tuple[str, str | None]]]] = {
    '<content type="image/png" src="a.png"/><summary>s</summary>': ("s", [("a.png", "image/png")]),
    '<content type="image/svg+xml" src="a.svg"/>': (None, [("a.svg", "image/svg+xml")]),
    "<content type='video/mp4' src='a.mp4?x=1&amp;y=2'/>": (None, [("a.mp4?x=1&y=2", "video/mp4")]),
    '<content src="a.mp3"/><link rel="enclosure" href="b.mp3"/>': (
        None,
        [("b.mp3", None), ("a.mp3", None)],
    ),
    '<content src="a.jpg"/><summary>s</summary>': ("s", [("a.jpg", None)]),
    '<content type="image/png">iVBORw0KGgo=</content><summary>s</summary>': ("s", []),
    '<content type="image/svg+xml">&lt;svg/></content>': ("<svg/>", []),
}


@pytest.mark.parametrize("ill_formed", ["", "<b></itme>"])
@pytest.mark.parametrize("fields", ELSEWHERE)
def test_a_content_of_atom_that_is_a_file_is_one_of_the_items_files(fields: str, ill_formed: str) -> None:
    item = entry(fields + ill_formed)
    content, files = ELSEWHERE[fields]
    assert item.content_html == content
    found = [(each.url.removeprefix("https://example.com/dir/"), each.type) for each in item.enclosures]
    assert sorted(found) == sorted(files)


def test_a_content_of_atom_that_is_a_page_is_the_items_page_unless_it_has_another() -> None:
    page = '<title>t</title><content type="text/html" src="/a"/>'
    assert (entry(page).link, entry(page).content_html) == ("https://example.com/a", None)
    assert entry(f'{page}<link href="/p"/>').link == "https://example.com/p"
    without_id = only(atom(f"<entry>{page}</entry>"))
    assert (without_id.link, without_id.guid) == (
        "https://example.com/a",
        only(atom("<entry><title>t</title></entry>")).guid,
    )


def test_contents_of_atom_may_be_alternatives_or_in_an_rss_item_without_others() -> None:
    html = '<content type="text/html" mode="escaped">&lt;p&gt;x</content>'
    parts = f'<content type="multipart/alternative"><content>y</content>{html}</content>'
    assert entry(parts).content_html == "<p>x"
    assert entry('<content type="application/html">&lt;p&gt;x</content>').content_html == "<p>x"
    for name, fields in (("content", html), ("atom:content", html), ("atom:summary", "<x/>")):
        named = (
            fields.replace("content", name)
            if fields != "<x/>"
            else '<atom:summary type="text">a\nb</atom:summary>'
        )
        item = rss_item(f"<title>t</title>{named}")
        assert item.content_html == ("a<br>\nb" if name == "atom:summary" else "<p>x")
        assert item.guid == rss_item("<title>t</title>").guid
        assert rss_item(f"<description>d</description>{named}").content_html == "d"


def test_the_link_of_an_atom_entry_may_be_named_in_its_text_and_is_then_no_part_of_an_identity() -> None:
    item = only(atom("<entry><title>t</title><link>https://e.example/1</link></entry>"))
    assert item.link == "https://e.example/1"
    assert item.guid == only(atom("<entry><title>t</title></entry>")).guid
    own = entry("<link>https://e.example/1</link><link href='https://e.example/2'/>")
    assert own.link == "https://e.example/2"


def test_dc_author_is_the_author_by_last_fallback() -> None:
    assert rss_item("<dc:author>A</dc:author>").author == "A"
    assert (
        rss_item("<dc:author>A</dc:author><atom:author><atom:name>B</atom:name></atom:author>").author == "B"
    )


FURTHER_CATEGORIES = (
    "<media:category>atlanta georgia</media:category>"
    "<media:keywords>sea, sky,</media:keywords><itunes:keywords>sky,sun</itunes:keywords>"
)


def test_categories_by_last_fallback_are_those_of_media_rss_and_itunes() -> None:
    itunes = rss_item('<itunes:category text="Arts"/>' + FURTHER_CATEGORIES)
    assert itunes.categories == (CATEGORIES[0], "Arts", *CATEGORIES[1:])
    for item in (
        entry(FURTHER_CATEGORIES),
        only(rss(f"<item><guid>1</guid>{FURTHER_CATEGORIES}</item></b>")),
    ):
        assert item.categories == CATEGORIES
    for own in (
        FURTHER_CATEGORIES + "<category>own</category>",
        "<dc:subject>own</dc:subject>" + FURTHER_CATEGORIES,
    ):
        ill_formed = only(rss(f"<item><guid>1</guid>{own}</item></b>"))
        assert rss_item(own).categories == ill_formed.categories == ("own",)


CATEGORIES = ("atlanta georgia", "sea", "sky", "sun")


@pytest.mark.parametrize("name", ["media:title", "itunes:title"])
def test_a_title_by_last_fallback_is_no_part_of_an_identity(name: str) -> None:
    further = f"<{name}>further</{name}>"
    ill_formed = only(rss(f"<item><guid>1</guid>{further}</item></b>"))
    for item in (rss_item(further), entry(further), ill_formed):
        assert item.title == "further"
    assert rss_item(further).guid == rss_item("").guid
    own = only(rss(f"<item><guid>1</guid><title>own</title>{further}</item></b>"))
    assert rss_item(f"{further}<title>own</title>").title == own.title == "own"
    feed = parsed(rss("<item><guid>1</guid></item>", channel=further))
    assert feed.header.title == "further"


PLACES = {
    "item": "{}",
    "group": "<media:group>{}</media:group>",
    "content": '<media:content url="/v.mp4">{}</media:content>',
    "content of a group": '<media:group><media:content url="/v.mp4">{}</media:content></media:group>',
    "group of a group": "<media:group><media:group>{}</media:group></media:group>",
    "group of a content": '<media:content url="/v.mp4"><media:group>{}</media:group></media:content>',
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_texts_of_media_rss_are_read_wherever_they_are(place: str) -> None:
    media = place.format(
        "<media:title>M</media:title><media:description>a\nb</media:description>"
        "<media:keywords>x, y</media:keywords><media:category>c</media:category>"
    )
    for item in (rss_item(media), entry(media), only(rss(f"<item><guid>1</guid>{media}</item></b>"))):
        assert (item.title, item.content_html) == ("M", "a<br>\nb")
        assert set(item.categories) == {"x", "y", "c"}
    own = rss_item(f"<title>own</title><description>d</description>{media}")
    assert (own.title, own.content_html) == ("own", "d")


def test_the_outer_text_of_media_rss_comes_first() -> None:
    inner = "<media:content><media:title>inner</media:title></media:content>"
    assert rss_item(f"<media:group>{inner}<media:title>group</media:title></media:group>").title == "group"
    assert rss_item(f"{inner}<media:title>item</media:title>").title == "item"


@pytest.mark.parametrize("plain", ["a\nb < c\n\nd", " \n a\nb < c\n\nd \n"])
def test_plain_text_keeps_its_line_breaks(plain: str) -> None:
    broken = "a<br>\nb &lt; c<br>\n<br>\nd"
    text = plain.replace("<", "&lt;")
    for kind in ("", ' type="text"', ' type="text/plain"', ' type="TEXT"'):
        assert entry(f"<content{kind}>{text}</content>").content_html == broken
        both = entry(f"<content>x</content><summary{kind}>{text}</summary>")
        assert (both.content_html, both.summary) == ("x", broken)
        assert entry(f"<summary{kind}>{text}</summary>").content_html == broken
    soup = only(atom(f"<entry><id>1</id><content type='text'>{text}</content></entry></b>"))
    assert soup.content_html == broken
    other = plain.replace("\n", "\r\n")
    json_item = only(json_feed({"id": "1", "content_text": other, "summary": f"s\r{plain}"}))
    assert json_item.content_html == broken
    assert (json_item.summary or "").startswith("s<br>\n")


def test_html_gets_no_line_breaks() -> None:
    html = "<content type='html'>a\nb</content>"
    assert entry(html).content_html == "a\nb"
    assert rss_item("<description>a\nb</description>").content_html == "a\nb"
    assert only(json_feed({"id": "1", "content_html": "a\nb"})).content_html == "a\nb"


def test_line_breaks_give_an_item_of_content_alone_no_other_identity() -> None:
    guid = hashlib.md5(b"a\nb &lt; c").hexdigest()
    assert only(json_feed({"content_text": "a\nb < c"})).guid == guid
    assert only(atom("<entry><content>a\nb &lt; c</content></entry>")).guid == guid


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ('<content type="html">&lt;b&gt;x&lt;/b&gt; &amp;amp;</content>', "<b>x</b> &amp;"),
        ('<content type="html"><![CDATA[<b>x</b>]]></content>', "<b>x</b>"),
        ('<content type="text">a &lt; b &amp; c</content>', "a &lt; b &amp; c"),
        ("<content>a &lt; b</content>", "a &lt; b"),
        (
            '<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p a="&quot;">1 &lt; 2<br/>x</p>'
            "y</div></content>",
            '<p a="&quot;">1 &lt; 2<br />x</p>y',
        ),
        ('<content src="https://e.example/a.mp4" type="video/mp4"/><summary>s</summary>', "s"),
        ('<content type="text/html" mode="base64">PGI+eDwvYj4=</content>', "<b>x</b>"),
        ('<content type="text/html" mode="base64">/w==</content><summary>s</summary>', "s"),
        ('<content type="application/octet-stream">PGI+eDwvYj4=</content>', "<b>x</b>"),
        ('<content type="application/octet-stream">AAECAw==</content><summary>s</summary>', "s"),
        ('<content type="image/png">iVBORw0KGgo=</content><summary>s</summary>', "s"),
        ('<content type="html"> </content><summary type="html">&lt;i&gt;</summary>', "<i>"),
    ],
)
def test_atom_content_is_html(element: str, expected: str) -> None:
    assert entry(element).content_html == expected


@pytest.mark.parametrize(
    ("element", "title"),
    [
        ("<title>Tom &amp;amp; Jerry &amp;#8217;s &amp;eacute;</title>", "Tom & Jerry ’s é"),
        ("<title><![CDATA[Tom &amp; Jerry]]></title>", "Tom & Jerry"),
        ("<title>AT&amp;T; 1 &lt; 2, &lt;b&gt; and &amp;lt;i&amp;gt;</title>", "AT&T; 1 < 2, <b> and <i>"),
        ("<title>AT&amp;T: R&amp;D &amp; co; 1 &lt; 2 &lt;b&gt;</title>", "AT&T: R&D & co; 1 < 2 <b>"),
    ],
)
def test_an_rss_title_that_was_escaped_twice_is_plain_text(element: str, title: str) -> None:
    assert rss_item(f"<guid>1</guid>{element}").title == title
    assert parsed(rss("", element)).header.title == title


@pytest.mark.parametrize(
    ("element", "title"),
    [
        ('<title type="html">&lt;b&gt;Tom&lt;/b&gt; &amp;amp;\n Jerry&lt;br&gt;</title>', "Tom & Jerry"),
        ('<title type="html">1 &amp;lt; 2</title>', "1 < 2"),
        (
            '<title type="html"><![CDATA[<p>One</p>two<br/>three <img src="x" alt="\U0001f600">]]></title>',
            "One two three \U0001f600",
        ),
        ('<title type="html"><![CDATA[<script>x</script>a<!-- b -->&#8217;c]]></title>', "a’c"),
        (
            '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <em>b</em>&amp;</div></title>',
            "a b&",
        ),
        ('<title type="text">&lt;b&gt; &amp;amp;</title>', "<b> &amp;"),
        ("<title>a</title>", "a"),
        ('<title mode="base64">VG9tICYgSmVycnk=</title>', "Tom & Jerry"),
        ('<title type="text/html" mode="base64">PGI+VG9tPC9iPg==</title>', "Tom"),
    ],
)
def test_an_atom_title_is_plain_text(element: str, title: str) -> None:
    assert entry(element).title == title


def test_a_title_is_part_of_an_identity_as_it_was_published() -> None:
    published = "Tom &amp; Jerry"
    item = rss_item("<title>Tom &amp;amp; Jerry</title>")
    assert item.guid == hashlib.md5(published.encode(), usedforsecurity=False).hexdigest()


def test_values_of_json_in_another_form_than_specified_are_read() -> None:
    item = only(
        json_feed(
            {
                "title": "Tom &amp; Jerry&#8217;s",
                "url": [{"href": "/p"}],
                "tags": [{"name": "a"}, {"term": "b"}, 3, None, "c"],
                "image": [None, {"url": "/large.jpg", "width": 3}, "/b.jpg"],
                "attachments": ["/a.mp3", {"href": "/b.mp3", "size_in_bytes": 12.0}, {"x": 1}, None],
            }
        )
        + "\n<!-- Dynamic page generated in 0.5 seconds. -->"
    )
    assert (item.title, item.link, item.categories) == (
        "Tom & Jerry’s",
        "https://example.com/p",
        ("a", "b", "3", "c"),
    )
    assert item.guid == only(json_feed({"title": "Tom &amp; Jerry&#8217;s"})).guid, "as before"
    assert [(each.url.rpartition("/")[2], each.length) for each in item.enclosures] == [
        ("a.mp3", None),
        ("b.mp3", 12),
        ("large.jpg", None),
    ]
    fields = {"id": "1", "tags": "a, b", "banner_image": {"src": "/large.jpg"}, "attachments": "/a.mp3"}
    item = only(json_feed(fields))
    assert item.categories == ("a", "b")
    assert [each.url.rpartition("/")[2] for each in item.enclosures] == ["a.mp3", "large.jpg"]
    assert only(
        json_feed({**fields, "attachments": {"url": "/a.mp3"}, "tags": {"label": "a, b"}})
    ).categories == ("a, b",)


def test_json_content_is_html() -> None:
    feed = parsed(
        json_feed(
            {"id": "1", "content_html": "<b>y", "content_text": "x", "summary": "a < b"},
            {"id": "2", "content_text": "a < b"},
            {"id": "3", "content_html": " ", "summary": "s"},
        )
    )
    assert [(item.content_html, item.summary) for item in feed.items] == [
        ("<b>y", "a &lt; b"),
        ("a &lt; b", None),
        ("s", None),
    ]


def test_what_no_store_can_keep_is_dropped_or_replaced() -> None:
    item = only(
        '{"version":"https://jsonfeed.org/version/1","items":[{"id":"a\\u0000b","title":"\\ud800x\\ud83d\\ude00"}]}'
    )
    assert (item.guid, item.title) == ("ab", "\ufffdx\U0001f600")
