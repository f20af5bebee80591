"""The documents of a topic: valid for every kind of item, the same bytes each time, never too large.

`built` checks each document against the RELAX NG grammar of RFC 4287 and the rules of JSON Feed 1.1.
"""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from lxml import etree

from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.features.topics.documents import FULL_CONTENT_BYTES, MOST_BYTES, Documents, build
from rss_pipeline.features.topics.model import Candidate, TopicContent
from rss_pipeline.features.topics.publish import index_json, index_opml
from rss_pipeline_tests.features.topics.candidates import (
    ATOM,
    INSTALLATION,
    NOW,
    URLS,
    ago,
    built,
    candidate,
    feed,
    topic,
)

BIDI = "\u202eאבג \u200fשלום\u202c"


def atom(documents: Documents, path: str) -> list[str]:
    root = etree.fromstring(documents.atom)
    return [each if isinstance(each, str) else each.text for each in root.xpath(path, namespaces=ATOM)]


def items(documents: Documents) -> list[dict[str, Any]]:
    return json.loads(documents.json)["items"]


BARE: dict[str, Any] = {"title": None, "link": None, "content_html": None}
KINDS: dict[str, dict[str, Any]] = {
    "whole": {},
    "without title": {"title": None},
    "without title and text": {"title": " ", "content_html": "<img src='/x.png'>"},
    "without link": {"link": None},
    "without anything": BARE,
    "without date": {"is_dated": False},
    "of the future": {"pub_date": NOW + timedelta(days=30_000), "updated_at": NOW + timedelta(days=40_000)},
    "of the past": {"pub_date": datetime(900, 1, 1, tzinfo=UTC), "created_at": ago(1)},
    "of another zone": {"pub_date": NOW.astimezone(timezone(timedelta(hours=9)))},
    "without id": {"guid": "/Changelog-16"},
    "with a space in its id": {"guid": "https://a.example/a b"},
    "with white space as its author": {"authors": (" ", "")},
    "with several authors": {"authors": ("A", "B", "a@b.example (C)", "C", "d@e.example")},
    "with controls": {"title": "a\x00\x0b\x1b[31m\x85\ufffe\ud800b", "categories": ("\x01", "c\x02")},
    "in Chinese": {"title": "小嶋 陽菜", "content_html": "<p>髙橋 𠮷野家</p>", "link": "https://例え.example/記事?q=東京"},
    "right to left": {"title": BIDI, "content_html": f"<p dir=rtl>{BIDI}</p>", "authors": (BIDI,)},
    "with markup as text": {"title": "1 < 2 & <b>3</b>]]>", "content_html": "<p>]]>&lt;![CDATA[</p>"},
    "with a title of 1 MB": {"title": "x" * 1_000_000},
    "with an author of 1 MB": {"authors": ("x" * 1_000_000,)},
    "with 9,000 categories": {"categories": tuple(f"c{n}" for n in range(9_000))},
    "with 9,000 enclosures": {
        "enclosures": tuple(Enclosure(url=f"https://x.example/{n}") for n in range(9_000))
    },
    "with odd enclosures": {
        "enclosures": (
            Enclosure(url="https://x.example/a b.mp3", type="audio/mpeg; codecs=x", length=12),
            Enclosure(url="https://x.example/b", type="mp3", length=-1),
            Enclosure(url="magnet:?xt=urn:btih:1", type="application/x-bittorrent", length=2**63),
            Enclosure(url="javascript:alert(1)"),
            Enclosure(url=""),
        )
    },
    "with odd links": {"link": "https://a.example/<a b>?x=|{}^`\"\\#a#b"},
    "with a link that leads nowhere": {"link": "http://["},
    "with a script as its link": {"link": "javascript:alert(1)"},
    "of a feed without a title": {"of": feed("a", title=None, link=None)},
    "of a feed with an odd title": {"of": feed("a", title="\x00<b>\u202e", link="nowhere")},
}  # fmt: skip


@pytest.mark.parametrize("content", ["full", "summary", "none"])
def test_every_kind_of_item_is_valid(content: TopicContent) -> None:
    for fields in KINDS.values():
        assert built(topic(content=content), candidate(1, **fields)).entries == 1
    every = [candidate(number, **fields) for number, fields in enumerate(KINDS.values())]
    assert built(topic(content=content), *every).entries == len(KINDS)


def test_a_topic_without_items_is_valid_and_has_a_date_of_its_own() -> None:
    documents = built(topic())
    assert atom(documents, "a:updated") == ["2000-01-01T00:00:00Z"]
    assert items(documents) == []
    assert built(topic(), urls=None, expired=True).entries == 0


def test_the_topic_says_what_it_is() -> None:
    spec = topic(
        title="ノースリーブス",
        link="https://no3b.example/",
        hub=("https://hub.example/", "https://hub.example/"),
    )
    documents = built(spec, expired=True)
    feed_json = json.loads(documents.json)
    own = "urn:uuid:865edd2f-2344-5bca-a50a-72f177a2379b"
    assert next(iter(feed_json)) == "version"
    assert feed_json | {"items": 0} == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "ノースリーブス",
        "home_page_url": "https://no3b.example/",
        "feed_url": URLS.json,
        "hubs": [{"type": "WebSub", "url": "https://hub.example/"}],
        "expired": True,
        "_rss_pipeline": {"id": own},
        "items": 0,
    }
    assert "ノースリーブス".encode() in documents.json
    assert atom(documents, "a:id") == [own]
    assert atom(documents, "a:link/@rel") == ["self", "alternate", "hub"]
    assert atom(documents, "a:link/@href") == [URLS.atom, "https://no3b.example/", "https://hub.example/"]
    plain = built(topic(), urls=None)
    assert atom(plain, "a:title") == ["no3b"]
    assert atom(plain, "a:link") == []
    assert atom(built(topic(), installation=UUID(int=1)), "a:id") != [own]


def test_an_entry_names_its_feed_and_the_date_of_that_feeds_newest_entry() -> None:
    documents = built(topic(), candidate(3), candidate(1), candidate(2, of="b", member=1))
    assert atom(documents, "//a:source/a:title") == ["Feed a", "Feed b", "Feed a"]
    newest_a, newest_b = "2026-03-01T11:00:00Z", "2026-03-01T10:00:00Z"
    assert atom(documents, "//a:source/a:updated") == [newest_a, newest_b, newest_a]
    assert atom(documents, "a:updated") == [newest_a]
    ids = atom(documents, "//a:source/a:id")
    assert ids[0] == ids[2] != ids[1]
    assert atom(documents, "//a:source/a:link/@href") == [f"https://{each}.example/" for each in "aba"]
    [first, *_] = items(documents)
    assert first["_rss_pipeline"] == {
        "source": {"id": ids[0], "member": "a", "title": "Feed a", "home_page_url": "https://a.example/"}
    }


def test_a_source_keeps_its_date_when_another_feed_brings_an_item() -> None:
    before = built(topic(), candidate(3))
    after = built(topic(), candidate(3), candidate(1, of="b", member=1))
    entry = before.atom[before.atom.index(b"<entry>") : before.atom.index(b"</feed>")]
    assert entry in after.atom


def test_an_item_in_three_feeds_is_one_entry_that_says_where_else_it_is() -> None:
    documents = built(
        topic("a", "b/x", "c"),
        candidate(1, guid="urn:x-id:1", link="https://a.example/1"),
        candidate(2, of="b", member=1, guid="urn:x-id:1", link="https://b.example/1"),
        candidate(3, of="c", member=2, link="http://a.example/1?utm_source=c"),
        candidate(3, of="c", member=2, guid="other"),
    )
    assert documents.entries == 2
    [one, _] = items(documents)
    assert one["id"] == "urn:x-id:1"
    assert one["_rss_pipeline"]["also_in"] == [
        {"member": "b/x", "title": "Feed b", "url": "https://b.example/1"},
        {"member": "c", "title": "Feed c", "url": "http://a.example/1?utm_source=c"},
    ]


def test_dates_are_those_of_the_publisher_but_never_after_the_first_request() -> None:
    dated = candidate(9, pub_date=ago(9), updated_at=ago(8), created_at=ago(7))
    future = candidate(3, pub_date=NOW + timedelta(days=99), updated_at=NOW + timedelta(days=100))
    undated = candidate(5, is_dated=False)
    documents = built(topic(), dated, future, undated)
    assert atom(documents, "a:entry/a:updated") == [
        "2026-03-01T09:00:00Z", "2026-03-01T07:00:00Z", "2026-03-01T04:00:00Z"
    ]  # fmt: skip
    assert atom(documents, "a:entry/a:published") == ["2026-03-01T09:00:00Z", "2026-03-01T03:00:00Z"]
    assert atom(documents, "a:updated") == ["2026-03-01T09:00:00Z"]
    assert [(each.get("date_published"), each.get("date_modified")) for each in items(documents)] == [
        ("2026-03-01T09:00:00Z", None),
        (None, "2026-03-01T07:00:00Z"),
        ("2026-03-01T03:00:00Z", "2026-03-01T04:00:00Z"),
    ]


def test_authors_are_names_and_there_is_always_one_in_atom() -> None:
    documents = built(
        topic(),
        candidate(1, authors=("小嶋 陽菜", "小嶋 陽菜", "Ben")),
        candidate(2, authors=("",)),
    )
    assert atom(documents, "//a:author/a:name") == ["小嶋 陽菜", "Ben", "Feed a"]
    assert [each.get("authors") for each in items(documents)] == [
        [{"name": "小嶋 陽菜"}, {"name": "Ben"}],
        None,
    ]


def test_an_item_without_a_title_is_known_by_its_text_in_atom() -> None:
    documents = built(
        topic(),
        candidate(1, title=None, content_html="<h1>A &amp; B</h1><p>" + "word " * 99),
        candidate(2, title=None, content_html=None),
        candidate(3, **BARE),
    )
    titles = atom(documents, "a:entry/a:title")
    assert titles[0].startswith("A & B word word")
    assert titles[0].endswith("…")
    assert len(titles[0]) <= 100
    assert titles[1:] == ["https://a.example/2", "Feed a"]
    assert not any("title" in each for each in items(documents))


def test_a_title_of_a_megabyte_is_cut_and_not_within_a_letter() -> None:
    documents = built(topic(), candidate(1, title="x" * 10**6), candidate(2, title="e\u0301" * 10**6))
    long, accented = (each["title"] for each in items(documents))
    assert long == "x" * 499 + "…"
    assert accented == "e\u0301" * 249 + "…"
    assert len(documents.atom) < 5_000


def test_enclosures_and_categories_are_published() -> None:
    sound = Enclosure(url="https://x.example/a.mp3", type="Audio/MPEG", length=12)
    documents = built(
        topic(),
        candidate(
            1, enclosures=(sound, sound, Enclosure(url="https://x.example/b")), categories=("x", "y", "x")
        ),
    )
    assert atom(documents, "//a:link[@rel='enclosure']/@*") == [
        "enclosure", "audio/mpeg", "12", "https://x.example/a.mp3", "enclosure", "https://x.example/b"
    ]  # fmt: skip
    assert atom(documents, "//a:category/@term") == ["x", "y"]
    [item] = items(documents)
    assert item["tags"] == ["x", "y"]
    assert item["attachments"] == [
        {"url": "https://x.example/a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 12},
        {"url": "https://x.example/b", "mime_type": "application/octet-stream"},
    ]


def test_content_is_as_much_as_the_topic_says() -> None:
    item = candidate(1, content_html="<p>All of <b>it</b></p>", summary="<i>Short</i> of it")
    full, summary, none = (built(topic(content=each), item) for each in ("full", "summary", "none"))
    assert atom(full, "//a:content") == ["<p>All of <b>it</b></p>"]
    assert atom(full, "//a:content/@type") == ["html"]
    assert atom(full, "//a:summary") == atom(summary, "//a:summary") == ["Short of it"]
    assert atom(summary, "//a:content") == atom(none, "//a:content | //a:summary") == []
    assert items(full)[0]["content_html"] == "<p>All of <b>it</b></p>"
    assert [items(each)[0]["content_text"] for each in (summary, none)] == ["Short of it", "Item 1 of a"]
    assert b"All of" not in none.atom + none.json + summary.atom + summary.json


def test_a_summary_that_is_all_of_an_item_is_its_content() -> None:
    documents = built(topic(), candidate(1, content_html=None, summary="<p>Only <b>this</b>"))
    assert atom(documents, "//a:content") == ["<p>Only <b>this</b></p>"]
    assert atom(documents, "//a:summary") == []


@pytest.mark.slow
def test_older_items_have_no_content_where_250_kb_are_full_and_none_goes_beyond_1_mb() -> None:
    def sizes(documents: Documents) -> list[int]:
        return [len(documents.atom), len(documents.json)]

    large = [candidate(n, content_html=f"<p>{'&amp;' * 3_000}</p>", title="t" * 90) for n in range(60)]
    documents = built(topic(), *large)
    whole = [item for item in items(documents) if "content_html" in item]
    assert documents.entries == 50
    assert 3 < len(whole) < 50
    assert whole == items(documents)[: len(whole)]
    full = built(topic(items=len(whole)), *large)
    assert max(sizes(full)) <= FULL_CONTENT_BYTES < max(sizes(documents)) < MOST_BYTES
    many = [
        candidate(
            n,
            title="𠮷" * 500,
            summary="𠮷" * 1_000,
            categories=tuple("𠮷" * 190 + str(c) for c in range(20)),
        )
        for n in range(60)
    ]
    documents = built(topic(), *many)
    assert 40 < documents.entries <= 50
    huge = built(topic(items=500), *(candidate(n, title="𠮷" * 500) for n in range(500)))
    assert MOST_BYTES - 10_000 < max(sizes(huge)) <= MOST_BYTES


def test_a_large_item_does_not_take_the_others_content() -> None:
    huge = candidate(1, content_html="<p>" + "word " * 100_000)
    documents = built(topic(), huge, candidate(2), candidate(3))
    assert [set(each) & {"content_html", "content_text"} for each in items(documents)] == [
        {"content_text"}, {"content_html"}, {"content_html"}
    ]  # fmt: skip
    assert items(documents)[0]["content_text"].startswith("word word")


def _of_all_kinds() -> list[Candidate]:
    kinds = [candidate(n, **fields) for n, fields in enumerate(KINDS.values())]
    return [*kinds, *(candidate(n, of="b", member=1) for n in range(9)), candidate(0, member=2, of="c")]


def test_equal_items_give_equal_bytes_in_any_order() -> None:
    every = _of_all_kinds()
    first = built(topic(), *every)
    for seed in range(5):
        assert built(topic(), *random.Random(seed).sample(every, len(every))) == first


_PROGRAM = """
import hashlib
from rss_pipeline_tests.features.topics.candidates import built, topic
from rss_pipeline_tests.features.topics.test_documents import _of_all_kinds
documents = built(topic(), *_of_all_kinds())
print(hashlib.sha256(documents.atom + documents.json).hexdigest())
"""


@pytest.mark.slow
def test_equal_items_give_equal_bytes_in_another_process() -> None:
    hashes = {
        subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": "C"},
            cwd=Path(__file__).parents[3],
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed, zone in (("1", "Asia/Tokyo"), ("2", "America/New_York"))
    }
    assert len(hashes) == 1


def test_one_item_that_changes_changes_nothing_of_the_others() -> None:
    before = built(topic(), *(candidate(n) for n in range(1, 9)))
    after = built(topic(), *(candidate(n) for n in range(2, 9)), candidate(1, title="New title"))
    different = [
        (one, other)
        for one, other in zip(before.json.splitlines(), after.json.splitlines(), strict=True)
        if one != other
    ]
    assert len(different) == 1


def test_the_index_lists_topics_by_id() -> None:
    second = replace(topic(), id="b", title="B & <C>", link="https://b.example/")
    topics = [second, replace(topic(), id="a")]
    where = {"b": URLS}
    listed = json.loads(index_json(topics, where.get, installation=INSTALLATION))
    assert listed == {
        "installation": str(INSTALLATION),
        "topics": [
            {"id": "a", "title": "a", "atom": "a.atom", "json": "a.json"},
            {
                "id": "b",
                "title": "B & <C>",
                "atom": URLS.atom,
                "json": URLS.json,
                "home_page_url": "https://b.example/",
            },
        ],
    }
    opml = etree.fromstring(index_opml(topics, where.get))
    assert opml.get("version") == "2.0"
    assert [dict(each.attrib) for each in opml.iter("outline")] == [
        {"type": "rss", "text": "a", "title": "a", "xmlUrl": "a.atom"},
        {
            "type": "rss",
            "text": "B & <C>",
            "title": "B & <C>",
            "xmlUrl": URLS.atom,
            "htmlUrl": "https://b.example/",
        },
    ]
    assert index_json(reversed(topics), where.get, installation=INSTALLATION) == index_json(
        topics, where.get, installation=INSTALLATION
    )


PICTURE = Enclosure(url="https://x.example/a.png", type="image/*")
FURTHER = Enclosure(url="https://x.example/b.png", type="image/png")
SOUND = Enclosure(url="https://x.example/a.mp3", type="audio/mpeg")


def public_copy(_: str, url: str) -> str | None:
    copies = {"a.png": "https://img.example/1.png", "b.png": "https://img.example/2.png"}
    return copies.get(url.removeprefix("https://x.example/"))


def test_a_picture_beside_the_text_is_shown_above_it_and_is_no_file() -> None:
    shown = '<p><img src="{}" alt=""></p><p>Text of 1</p>'
    one = candidate(1, enclosures=(SOUND, PICTURE, FURTHER))
    for image, url in ((public_copy, "https://img.example/1.png"), (lambda *_: None, PICTURE.url)):
        documents = build(topic(), [one], installation=INSTALLATION, image=image)
        [item] = items(documents)
        assert item["content_html"] == shown.format(url)
        assert item["image"] == url
        assert atom(documents, "//a:entry/a:content/text()") == [shown.format(url)]
        files = ["https://x.example/a.mp3", image("", FURTHER.url) or FURTHER.url]
        assert [each["url"] for each in item["attachments"]] == files
        assert atom(documents, "//a:link[@rel='enclosure']/@href") == files


def test_an_item_of_a_picture_alone_is_published_with_it() -> None:
    one = candidate(1, content_html=None, enclosures=(PICTURE,))
    [item] = items(build(topic(), [one], installation=INSTALLATION, image=public_copy))
    assert item["content_html"] == '<p><img src="https://img.example/1.png" alt=""></p>'
    assert "attachments" not in item


def test_a_picture_that_the_text_shows_is_neither_above_it_nor_a_file() -> None:
    html = '<p>a</p><img src="https://x.example/a.png?w=9">'
    one = candidate(1, content_html=html, enclosures=(SOUND, PICTURE))
    [item] = items(build(topic(), [one], installation=INSTALLATION, image=public_copy))
    assert item["content_html"] == html
    assert [each["url"] for each in item["attachments"]] == [SOUND.url]
    assert "image" not in item


def test_where_a_topic_shows_no_content_its_files_are_all_listed() -> None:
    one = candidate(1, enclosures=(SOUND, FURTHER))
    [item] = items(build(topic(content="summary"), [one], installation=INSTALLATION, image=public_copy))
    assert [each["url"] for each in item["attachments"]] == [SOUND.url, "https://img.example/2.png"]


def test_an_image_that_was_archived_by_its_former_url_is_shown() -> None:
    known = {"https://a.example/p.png": "https://img.example/1.png"}
    one = candidate(1, link="https://a.example/2026/post/", content_html='<img src="p.png">')
    [item] = items(build(topic(), [one], installation=INSTALLATION, image=lambda _, url: known.get(url)))
    assert item["content_html"] == '<img src="https://img.example/1.png">'
