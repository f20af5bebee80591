"""What an item says: content and summary as published, to the byte."""

import pytest

from rss_pipeline_tests.collector.parse.documents import entry, json_feed, only, parsed, rss_item

HTML = (
    '<p onclick="x">1 &lt; 2 &amp;amp; <img data-src="a.jpg" src=\'b\'>\u00a0Ã©\u0096<script></script></p>\n '
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


def test_a_blank_content_encoded_counts_as_none() -> None:
    item = rss_item(
        "<guid>1</guid><content:encoded><![CDATA[ \n]]></content:encoded><description>d</description>"
    )
    assert (item.content_html, item.summary) == ("d", None)


def test_other_texts_of_an_item_are_not_its_content() -> None:
    item = rss_item(
        "<guid>1</guid><itunes:summary>i</itunes:summary><media:description>m</media:description>"
    )
    assert item.content_html is None


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
        ('<content type="image/png">iVBORw0KGgo=</content><summary>s</summary>', "s"),
        ('<content type="html"> </content><summary type="html">&lt;i&gt;</summary>', "<i>"),
    ],
)
def test_atom_content_is_html(element: str, expected: str) -> None:
    assert entry(element).content_html == expected


def test_json_content_is_html() -> None:
    feed = parsed(
        json_feed(
            {"id": "1", "content_html": "<b>", "content_text": "x", "summary": "a < b"},
            {"id": "2", "content_text": "a < b"},
            {"id": "3", "content_html": " ", "summary": "s"},
        )
    )
    assert [(item.content_html, item.summary) for item in feed.items] == [
        ("<b>", "a &lt; b"),
        ("a &lt; b", None),
        ("s", None),
    ]


def test_what_no_store_can_keep_is_dropped_or_replaced() -> None:
    item = only(
        '{"version":"https://jsonfeed.org/version/1","items":[{"id":"a\\u0000b","title":"\\ud800x\\ud83d\\ude00"}]}'
    )
    assert (item.guid, item.title) == ("ab", "\ufffdx\U0001f600")
