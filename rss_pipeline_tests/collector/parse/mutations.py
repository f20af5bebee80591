"""Documents for the fuzzing tests: some made by a grammar, some made of sound ones by breaking them.

No test is in here.
"""

import random
import re
from collections.abc import Callable

from hypothesis import strategies as st

_RSS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE rss [<!ENTITY firm "A Co">]>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">
<channel><title>Notes &amp; 笔记</title><link>https://example.com/</link><language>zh-CN</language><ttl>60</ttl>
<skipHours><hour>1</hour><hour>24</hour></skipHours><skipDays><day>Sunday</day></skipDays>
<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>
<item><guid isPermaLink="false">tag:1</guid><title>&firm; — one</title><link>/posts/1?a=1&amp;b=2</link>
<pubDate>Mon, 02 Mar 2026 08:00:00 +0800 (CST)</pubDate><category>a</category><dc:creator>Zoë</dc:creator>
<description><![CDATA[<p>One
<img src="a.jpg" data-src="//cdn.example/a.jpg?w=1&h=2" srcset="a.jpg 1x, b.jpg 2x"></p>]]></description>
<content:encoded><![CDATA[<picture><source srcset="c.webp 100w">
<img src="data:image/gif;base64,R0" width="1"></picture>]]>
</content:encoded><enclosure url="https://example.com/a.mp3" length="12" type="audio/mpeg"/></item>
<item xml:base="https://b.example/x/"><guid>https://example.com/2</guid><title>two</title>
<pubDate>2004年1月1日 星期四 19:48</pubDate><description>&lt;b&gt;2&lt;/b&gt; &nbsp;&#128512;</description>
<media:group><media:content url="m.png" type="image/png"/></media:group></item>
</channel></rss>"""
_RDF = """<?xml version="1.0" encoding="iso-8859-1"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="http://example.com/"><title>R</title>
<link>http://example.com/</link></channel><item rdf:about="http://example.com/1"><title>é</title>
<link>http://example.com/1</link><dc:date>2026-03-02T08:00:00Z</dc:date>
<description>x &amp; y</description></item>
</rdf:RDF>"""
_ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.com/blog/">
<title type="html">A &amp;amp; B</title><id>urn:x</id><link rel="self" href="https://example.com/atom"/>
<link href="https://example.com/"/><updated>2026-03-02T08:00:00+08:00</updated>
<entry><id>urn:1</id><title>one</title><link rel="alternate" href="1"/><link rel="enclosure" href="1.mp3"/>
<updated>2026-03-02T08:00:00.123Z</updated><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">
<p>One<br/><img src="1.png"/></p></div></content><author><name>A</name></author></entry>
<entry><id>urn:2</id><title type="text">1 &lt; 2</title><published>2026/3/2 8:00</published>
<content type="text/html" mode="base64">PGI+Mjwvbj4=</content>
<summary type="html">&lt;i&gt;s&lt;/i&gt;</summary></entry></feed>"""
_JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "J", "home_page_url": "https://example.com/",
"items": [{"id": 1.0, "url": "/1", "title": "one\\u0000\\ud83d", "content_html": "<img src='1.png'>",
"date_published": "2026-03-02T08:00:00Z", "tags": ["a", 2, null], "authors": [{"name": "A"}],
"attachments": [{"url": "a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 12}]},
{"content_text": "1 < 2", "summary": "s"}, null, 7]}"""
_CDF = """<channel href="https://example.com/"><title>C</title><item href="https://example.com/1"><title>t</title>
<abstract>a</abstract></item></channel>"""
_PAGE = """<!doctype html><html><head><title>A page</title><base href="/x/"><link rel="alternate"
 type="application/rss+xml" href="feed.xml"></head><body><p>Hello<img src="a.png"></body></html>"""

SOUND = tuple(
    text.encode(codec)
    for text, codec in (
        (_RSS, "utf-8"),
        (_RSS.replace('encoding="utf-8"', 'encoding="gb2312"'), "gb18030"),
        (_RDF, "latin-1"),
        (_ATOM, "utf-8"),
        (_ATOM, "utf-16"),
        (_JSON, "utf-8"),
        (_CDF, "utf-8"),
        (_PAGE, "utf-8"),
    )
)

_TOKENS: tuple[bytes, ...] = (
    b"<",
    b">",
    b"&",
    b"&amp;",
    b"&#0;",
    b"&#xD800;",
    b"&#55357;&#56832;",
    b"&nbsp;",
    b"&firm;",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1b$B",
    b"<![CDATA[",
    b"]]>",
    b"<!--",
    b"-->",
    b"<!DOCTYPE html>",
    b"<?",
    b"?>",
    b"<?xml version='1.0' encoding='utf-7'?>",
    b"<?xml encoding='unicode_escape'?>",
    b"<rss>",
    b"</rss>",
    b"<item>",
    b"</item>",
    b"</channel>",
    b"<feed>",
    b"<entry>",
    b"</entry>",
    b"<guid>",
    b"<guid/>",
    b"</guid>",
    b"<title>",
    b"<html>",
    b"<script>",
    b"<img ",
    b"<svg><",
    b"srcset=',, ,'",
    b" xml:base='http://['",
    b" xml:base='//'",
    b" xmlns=''",
    b" xmlns:a='a'",
    b"<a:b c:d='e'>",
    b"http://[",
    b"http://me:pw@x",
    b"//",
    b"javascript:a()",
    b"data:,",
    b'"',
    b"'",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b"null",
    b"1e999",
    b"9" * 400,
    b"\\ud800",
    b"\\u0000",
    b"Tue, 30 Feb 2026 25:61:61 +9999",
    b"0000-00-00",
    b"99999999999",
    b"\xf0\x9f\x98\x80",
    b"\xe4\xb8\xad",
    "\U0010ff700\U0010ff71".encode(),
)

_Mutation = Callable[[bytes], bytes]


def _mutation(kind: str, at: float, length: int, token: bytes) -> _Mutation:
    def apply(body: bytes) -> bytes:
        start = int(at * len(body))
        piece = body[start : start + length]
        match kind:
            case "cut off":
                return body[:start]
            case "drop":
                return body[:start] + body[start + length :]
            case "double":
                return body[:start] + piece + body[start:]
            case "repeat":
                return body[:start] + piece * 20 + body[start:]
            case "swap":
                return body[start + length :] + piece + body[:start]
            case "flip":
                return body[:start] + bytes(255 - byte for byte in piece[:3]) + body[start + 3 :]
            case "replace":
                return body[:start] + token + body[start + length :]
            case _:
                return body[:start] + token + body[start:]

    return apply


_KINDS = ("cut off", "drop", "double", "repeat", "swap", "flip", "replace", "insert", "insert")
_mutations = st.lists(
    st.builds(
        _mutation,
        st.sampled_from(_KINDS),
        st.floats(0, 1, width=16),
        st.integers(1, 60),
        st.sampled_from(_TOKENS),
    ),
    max_size=6,
)


def _mutated(body: bytes, mutations: list[_Mutation]) -> bytes:
    for mutation in mutations:
        body = mutation(body)[:100_000]
    return body


mutated = st.builds(_mutated, st.sampled_from(SOUND), _mutations)
"""Sound documents with up to six faults."""

_TAG = re.compile(rb"<[^<>]{1,2000}>")
_LABEL = re.compile(rb"(<\?xml[^>]*?encoding=[\"'])[^\"']*")
_LABELS = (
    b"utf-8",
    b"utf-16",
    b"gb2312",
    b"shift_jis",
    b"iso-8859-1",
    b"koi8-r",
    b"big5",
    b"iso-2022-jp",
    b"x",
)


def broken(body: bytes, dice: random.Random) -> bytes:
    """A document with one to six faults: those above, and faults of its tags, its charset and its size."""
    for _ in range(dice.randint(1, 6)):
        body = _fault(body, dice)
    return body


def _fault(body: bytes, dice: random.Random) -> bytes:
    kind = dice.choice(
        ("bytes", "bytes", "bytes", "tags", "label", "nested", "attribute", "attributes", "long")
    )
    if kind == "bytes":
        how = dice.choice(_KINDS)
        return _mutation(how, dice.random(), dice.randint(1, 200), dice.choice(_TOKENS))(body)
    if kind == "label":
        label = dice.choice(_LABELS)
        named = _LABEL.sub(rb"\g<1>" + label, body, count=1)
        return named if named != body else b"<?xml version='1.0' encoding='" + label + b"'?>" + body
    tags = list(_TAG.finditer(body))
    tag = dice.choice(tags) if tags else None
    if tag is None:
        return body
    before, found, after = body[: tag.start()], tag[0], body[tag.end() :]
    match kind:
        case "tags":
            return before + found * dice.choice((0, 0, 2, 3)) + after
        case "nested":
            name = dice.choice((b"item", b"div", b"entry", b"a", b"media:group", b"x:y"))
            depth = dice.choice((10, 1_000, 10_000))
            return before + found + b"<%s>" % name * depth + b"</%s>" % name * dice.choice((0, depth)) + after
        case "attribute":
            value = dice.choice((b"x", b"&amp;", b"/", b"\xe4\xb8\xad", b" ")) * dice.choice((1_000, 100_000))
            return before + found.rstrip(b"/>") + b" href='" + value + b"'>" + after
        case "attributes":
            many = b"".join(b" a%d='b'" % n for n in range(dice.choice((100, 20_000))))
            return before + found.rstrip(b"/>") + many + b">" + after
        case _:
            return (
                before
                + found
                + dice.choice((b"&", b"<", b"]]>", b"&nbsp;", b"&#146;", b"<p>")) * 10_000
                + after
            )


_texts = st.text(max_size=12) | st.sampled_from(["", " ", "http://example.com/1", "1", "&amp;", "<b>", "é中"])
_NAMES = (
    "item entry channel guid id title link pubDate updated description content content:encoded summary author"
    " name enclosure media:content image category ttl skipHours hour dc:date source a textInput"
)
_ATTRIBUTES = "type href rel url length xml:base isPermaLink xmlns x:y mode"
_VALUES = "html xhtml text base64 alternate enclosure /1 http://[ false"
_KEYS = "id url title content_html tags authors attachments items name"
_names = st.sampled_from(_NAMES.split())
_attributes = st.dictionaries(
    st.sampled_from(_ATTRIBUTES.split()),
    st.sampled_from(["", *_VALUES.split(), "9" * 30]),
    max_size=2,
)


def _element(name: str, attributes: dict[str, str], inner: list[str], closed: bool) -> str:
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(inner)}" + (f"</{name}>" if closed else "")


_elements = st.recursive(
    _texts | st.sampled_from(("<![CDATA[<p>x</p>]]>", "<br/>", "&nbsp;", "<!-- c -->", "<img src='a.png'>")),
    lambda inner: st.builds(
        _element, _names, _attributes, st.lists(inner, max_size=4), st.integers(0, 15).map(bool)
    ),
    max_leaves=12,
)
_roots = st.sampled_from(
    (
        '<rss version="2.0"><channel>{}</channel></rss>',
        "<rss><channel><item>{}</item></channel></rss>",
        '<feed xmlns="http://www.w3.org/2005/Atom"><entry>{}</entry></feed>',
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#">{}</feed>',
        '<RDF xmlns="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:r="http://purl.org/rss/1.0/">{}</RDF>',
        "<html>{}</html>",
        "<channel>{}</channel>",
        "{}",
    )
)
_codecs = st.sampled_from(
    ("utf-8", "utf-8", "utf-8", "utf-16", "utf-16-le", "gb18030", "cp1252", "shift_jis", "koi8-r")
)

grammar_made = st.builds(
    lambda root, inner, codec: root.replace("{}", "".join(inner)).encode(codec, "replace"),
    _roots,
    st.lists(_elements, max_size=4),
    _codecs,
)
"""RSS, Atom, RDF and HTML in which the elements of feeds are anywhere."""

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_KEYS.split()),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
json_made = st.lists(_json, max_size=4)
"""Values in the place of a JSON Feed's items."""

CONTENT_TYPES = (
    None,
    "application/rss+xml",
    "text/xml; charset=utf-8",
    "text/xml; charset=gb2312",
    'application/xml; charset="ISO-8859-1"',
    "text/html; charset=undefined",
    "text/xml; charset=unicode_escape",
    "application/json",
    ";;charset==,\xff",
)
content_types = st.sampled_from(CONTENT_TYPES)
