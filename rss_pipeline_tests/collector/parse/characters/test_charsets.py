"""Guid and content to the byte, in every format and in the charsets that go wrong in the wild."""

import json

import pytest

from rss_pipeline.collector.parse.document import parse_feed

TEXTS = {
    "gbk under gb2312": ("gb2312", "gb18030", "镕喆 北京举行人工智能大会", "gb18030"),
    "big5": ("big5", "cp950", "台北舉行人工智慧大會", "cp950"),
    "euc-jp": ("euc-jp", "euc_jp", "東京で人工知能の会議が開催", "euc_jp"),
    "cp932 under shift_jis": ("shift_jis", "cp932", "①②Ⅲ髙﨑 東京の会議", "cp932"),
    "euc-kr": ("euc-kr", "cp949", "서울에서 인공지능 회의가 열렸습니다", "cp949"),
    "windows-1251": ("windows-1251", "cp1251", "Сегодняшние новости: в Москве", "cp1251"),
    "utf-8": ("utf-8", "utf-8", "中文 ① é \U0001f600", "utf-8"),
    "utf-16 le": ("utf-16", "utf-16-le", "中文 ① é \U0001f600", "utf-16-le"),
    "utf-16 be": ("utf-16", "utf-16-be", "中文 ① é \U0001f600", "utf-16-be"),
}
RSS_20 = (
    '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel><title>T</title><item>'
    "<guid>GUID</guid><content:encoded><![CDATA[HTML]]></content:encoded></item></channel></rss>"
)
RSS_10 = (
    '<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<channel rdf:about="c"><title>T</title></channel><item rdf:about="GUID"><title>t</title>'
    "<description><![CDATA[HTML]]></description></item></rdf:RDF>"
)
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>GUID</id>'
    '<content type="html"><![CDATA[HTML]]></content></entry></feed>'
)
FORMATS = {"rss20": RSS_20, "rss10": RSS_10, "atom10": ATOM, "json11": ""}


def document(form: str, text: str, encoding: str | None) -> tuple[str, str, str]:
    guid, html = f"id {text}?a=1", f'<p class="x">{text} &lt;&amp;nbsp; <br></p> \n'
    if form == "json11":
        feed = {"version": "https://jsonfeed.org/version/1.1", "items": [{"id": guid, "content_html": html}]}
        return json.dumps(feed, ensure_ascii=False), guid, html
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>\n' if encoding else ""
    return declaration + FORMATS[form].replace("GUID", guid).replace("HTML", html), guid, html


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(("label", "written_in", "text", "charset"), TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("by", ["declaration", "http", "header against declaration"])
def test_guid_and_content_come_out_as_they_were_written(
    form: str, label: str, written_in: str, text: str, charset: str, by: str
) -> None:
    header_decides = by != "declaration" or form == "json11"
    declared = {"declaration": label, "http": None, "header against declaration": "iso-8859-2"}[by]
    source, guid, html = document(form, text, declared)
    wide = written_in.startswith("utf-16")
    body = ("\ufeff" * wide + source).encode(written_in)
    feed = parse_feed(body, content_type=f"text/xml; charset={label}" if header_decides else "text/xml")
    (item,) = feed.items
    assert (feed.header.format, feed.header.charset) == (form, charset)
    assert feed.header.charset_rule == ("bom" if wide else "http" if header_decides else "declaration")
    assert item.guid.encode() == guid.encode()
    assert (item.content_html or "").encode() == html.encode()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "name", ["gbk under gb2312", "big5", "cp932 under shift_jis", "euc-kr", "windows-1251", "utf-8"]
)
def test_an_undeclared_document_comes_out_as_it_was_written(form: str, name: str) -> None:
    _, written_in, text, charset = TEXTS[name]
    source, guid, html = document(form, text * 3, None)
    feed = parse_feed(source.encode(written_in), hint=charset)
    (item,) = feed.items
    assert feed.header.charset_rule in ("detected", "hint", "utf-8")
    assert (feed.header.charset, item.guid, item.content_html) == (charset, guid, html)
