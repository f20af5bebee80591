"""The page on which readers discuss an item, in each format and on each way of reading."""

import pytest

from rss_pipeline.collector.parse.rss_atom import read_feed
from rss_pipeline.collector.parse.xml.tree import read_tree
from rss_pipeline_tests.collector.parse.documents import (
    NOW,
    URL,
    atom,
    only,
    parsed,
    rss,
    rss_item,
    tolerant_tree,
)

TALK = "https://talk.example/9"
ITEMS = {
    "comments of RSS": (f"<comments> {TALK} </comments>", TALK),
    "relative": ("<comments>/talk/9</comments>", "https://example.com/talk/9"),
    "a part of the item's page": ("<comments>#comments</comments>", "https://example.com/1#comments"),
    "a count of comments, and their feed": (
        '<slash:comments xmlns:slash="http://purl.org/rss/1.0/modules/slash/">7</slash:comments>'
        '<wfw:commentRss xmlns:wfw="http://wellformedweb.org/CommentAPI/">https://talk.example/feed'
        "</wfw:commentRss>",
        None,
    ),
    "no web page": ("<comments>mailto:talk@talk.example</comments>", None),
    "a script": ("<comments>javascript:alert(1)</comments>", None),
    "empty": ("<comments/>", None),
}
ENTRIES = {
    "replies": (f'<link rel="replies" type="text/html" href="{TALK}"/>', TALK),
    "replies without a type": (f'<link rel="replies" href="{TALK}"/>', TALK),
    "replies as XHTML": (f'<link rel="replies" type="application/xhtml+xml" href="{TALK}"/>', TALK),
    "a feed before the page": (
        '<link rel="replies" type="application/atom+xml" href="https://talk.example/feed"/>'
        f'<link rel="replies" type="text/html" href="{TALK}"/>',
        TALK,
    ),
    "a feed alone": (
        '<link rel="replies" type="application/atom+xml; charset=utf-8" href="https://talk.example/feed"/>',
        None,
    ),
    "none": ("", None),
}
PAGE = "<title>t</title><link>https://example.com/1</link>"
DOCUMENTS = {
    **{
        f"RSS: {name}": (rss(f"<item><guid>1</guid>{PAGE}{fields}</item>"), expected)
        for name, (fields, expected) in ITEMS.items()
    },
    **{
        f"Atom: {name}": (
            atom(f'<entry><id>1</id><link href="https://example.com/1"/>{fields}</entry>'),
            expected,
        )
        for name, (fields, expected) in ENTRIES.items()
    },
}


@pytest.mark.parametrize(("text", "expected"), DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_the_page_of_an_items_comments_is_read_on_each_way(text: str, expected: str | None) -> None:
    readings = (
        read_feed(read_tree(text), URL, now=NOW),
        read_feed(tolerant_tree(text), URL, now=NOW),
    )
    for feed in readings:
        assert feed is not None
        assert [item.comments_url for item in feed.items] == [expected]
    assert only(text).comments_url == expected


def test_an_rss_item_may_name_its_comments_as_atom_does() -> None:
    assert rss_item(f'{PAGE}<atom:link rel="replies" href="{TALK}"/>').comments_url == TALK
    both = f'{PAGE}<atom:link rel="replies" href="https://other.example/"/><comments>{TALK}</comments>'
    assert rss_item(both).comments_url == TALK


def test_comments_are_no_part_of_an_items_identity() -> None:
    bare = rss_item("<title>t</title>")
    assert rss_item(f"<title>t</title><comments>{TALK}</comments>").guid == bare.guid
    [first, second] = parsed(
        rss("".join(f"<item><guid>{n}</guid><comments>{TALK}</comments></item>" for n in (1, 2)))
    ).items
    assert (first.guid, second.guid, first.comments_url) == ("1", "2", TALK)
