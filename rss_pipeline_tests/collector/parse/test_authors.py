"""The authors of an item: all that a document names, in each format and on each way of reading."""

import json
from typing import Any

import pytest

from rss_pipeline.collector.parse.rss_atom import read_feed
from rss_pipeline.collector.parse.xml.tree import read_tree
from rss_pipeline_tests.collector.parse.documents import NOW, URL, atom, only, rss, tolerant_tree

Authors = tuple[str | None, tuple[str, ...]]

RSS_ITEMS: dict[str, tuple[str, Authors]] = {
    "dc:creator twice": (
        "<dc:creator>A</dc:creator><dc:creator> B </dc:creator><dc:creator>A</dc:creator>",
        ("A", ("A", "B")),
    ),
    "all elements, the preferred first": (
        "<itunes:author>Show</itunes:author><author>m@e.example (M)</author><dc:creator>D</dc:creator>",
        ("D", ("D", "m@e.example (M)", "Show")),
    ),
    "a person with a name": (
        "<author><name>Quentin Hardy</name><title>Head of Editorial</title></author>",
        ("Quentin Hardy", ("Quentin Hardy",)),
    ),
    "a person with an address": (
        "<author><email>m@e.example</email></author>",
        ("m@e.example", ("m@e.example",)),
    ),
    "persons of Atom": (
        "<atom:author><atom:name>N</atom:name><atom:email>n@e.example</atom:email></atom:author>"
        "<atom:author><atom:email>o@e.example</atom:email></atom:author><author>A</author>",
        ("A", ("A", "N", "o@e.example")),
    ),
    "CDATA": (
        "<author>A &amp; B</author><dc:creator><![CDATA[A & B]]></dc:creator>",
        ("A & B", ("A & B",)),
    ),
    "a line break in a name": (
        "<dc:creator>A\n   B</dc:creator><author>A B</author>",
        ("A\n   B", ("A B",)),
    ),
    "a wide space in a name": ("<author>小嶋\u3000陽菜</author>", ("小嶋\u3000陽菜", ("小嶋\u3000陽菜",))),
    "blank ones": ("<dc:creator> </dc:creator><author/>", (None, ())),
    "none, and a channel with one": ("", (None, ())),
}
DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
ITUNES = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
SOURCE = "<source><author><name>S</name></author></source>"
ATOM_ENTRIES: dict[str, tuple[str, Authors]] = {
    "two": (
        "<author><name>N</name><email>n@e.example</email></author><author><email>m@e.example</email></author>",
        ("N", ("N", "m@e.example")),
    ),
    "further elements": (
        f"<dc:creator {DC}>C</dc:creator><itunes:author {ITUNES}>I</itunes:author>"
        "<author><name>N</name></author>",
        ("N", ("N", "C", "I")),
    ),
    "none: those of the feed": ("", (None, ("F", "G"))),
    "one without a name: those of the feed": (
        "<author><uri>http://e.example</uri></author>",
        (None, ("F", "G")),
    ),
    "those of the source before those of the feed": (SOURCE, (None, ("S",))),
    "its own before those of the source": (f"{SOURCE}<author><name>N</name></author>", ("N", ("N",))),
    "dc:creator before those of the feed": (f"<dc:creator {DC}>C</dc:creator>", ("C", ("C",))),
}
DOCUMENTS = {
    **{
        f"RSS: {name}": (
            rss(f"<item><guid>1</guid>{fields}</item>", "<managingEditor>c@e.example (C)</managingEditor>"),
            expected,
        )
        for name, (fields, expected) in RSS_ITEMS.items()
    },
    **{
        f"Atom: {name}": (
            atom(
                "<author><name>F</name></author><author><name>G</name></author>"
                f"<entry><id>1</id>{fields}</entry>"
            ),
            expected,
        )
        for name, (fields, expected) in ATOM_ENTRIES.items()
    },
}


@pytest.mark.parametrize(("text", "expected"), DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_all_authors_of_an_item_are_read_on_each_way(text: str, expected: Authors) -> None:
    readings = (
        read_feed(read_tree(text), URL, now=NOW),
        read_feed(tolerant_tree(text), URL, now=NOW),
    )
    for feed in readings:
        assert feed is not None
        assert [(item.author, item.authors) for item in feed.items] == [expected]


@pytest.mark.parametrize("namespace", ["http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/"])
def test_rdf_has_the_authors_of_dublin_core(namespace: str) -> None:
    item = only(
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="{namespace}" {DC}>'
        "<channel><title>T</title></channel><item rdf:about='1'><title>1</title>"
        "<dc:creator>小嶋 陽菜</dc:creator><dc:creator>高橋 みなみ</dc:creator></item></rdf:RDF>"
    )
    assert (item.author, item.authors) == ("小嶋 陽菜", ("小嶋 陽菜", "高橋 みなみ"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"authors": [{"name": "A"}, {"url": "x"}, "y", {"name": " B\n C "}], "author": {"name": "A"}},
            ("A", ("A", "y", "B C")),
        ),
        ({"author": " Ann "}, ("Ann", ("Ann",))),
        ({"authors": "Ann"}, ("Ann", ("Ann",))),
        ({"authors": {"name": "Bob"}}, ("Bob", ("Bob",))),
        ({"authors": ["Ann", "Bob"], "author": {"name": "Cy"}}, ("Ann", ("Ann", "Bob", "Cy"))),
        ({"authors": None, "author": ["Ann", {"name": "Bob"}]}, ("Ann", ("Ann", "Bob"))),
        ({"authors": [None, True, ["x"], " "], "author": False}, (None, ("F", "G"))),
        ({"authors": [5, "Ann"], "author": 7}, ("Ann", ("Ann",))),
        ({"author": {"name": "A"}}, ("A", ("A",))),
        ({}, (None, ("F", "G"))),
        ({"authors": []}, (None, ("F", "G"))),
        ({"authors": [{"name": None}], "author": {"name": ["x"]}}, (None, ("F", "G"))),
    ],
)
def test_a_json_feed_item_has_all_its_authors_or_those_of_the_feed(
    fields: dict[str, Any], expected: Authors
) -> None:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "T",
        "authors": [{"name": "F"}, {"name": "G"}],
        "items": [{"id": "1", "content_text": "x", **fields}],
    }
    item = only(json.dumps(feed))
    assert (item.author, item.authors) == expected


@pytest.mark.parametrize("authors", [["F", {"name": "G"}], "F, G"])
def test_authors_of_a_json_feed_may_be_plain_strings(authors: Any) -> None:
    feed = {"version": "https://jsonfeed.org/version/1", "title": "T", "items": [{"id": "1"}]}
    names = ("F, G",) if isinstance(authors, str) else ("F", "G")
    assert only(json.dumps({**feed, "author": authors})).authors == names
    assert only(json.dumps({**feed, "authors": authors})).authors == names


def test_an_item_has_a_hundred_authors_at_most() -> None:
    creators = "".join(f"<dc:creator>{n // 2}</dc:creator>" for n in range(400))
    item = only(rss(f"<item><guid>1</guid>{creators}</item>"))
    assert item.authors == tuple(map(str, range(100)))
