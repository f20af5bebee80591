"""Sentences about a web page that came instead of a feed: the feeds it names, for a person to register."""

import pytest

from rss_pipeline.collector.parse.web_page import web_page_sentence

URL = "https://blog.example/feed"
RSS = 'rel="alternate" type="application/rss+xml"'


def page(*tags: str, title: str = "A blog") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{''.join(tags)}</head><body>Hello</body></html>"


def named(*tags: str, url: str = URL) -> list[str]:
    _, found, feeds = web_page_sentence(page(*tags), url).partition("register one of them: ")
    return feeds.split(", ") if found else []


@pytest.mark.parametrize(
    ("tag", "feed"),
    [
        (f'<link {RSS} href="https://blog.example/rss.xml">', "https://blog.example/rss.xml"),
        (f'<LINK {RSS.upper()} HREF="/rss.xml">', "https://blog.example/rss.xml"),
        (
            '<link rel="feed alternate" type="application/atom+xml; charset=utf-8" href="a">',
            "https://blog.example/a",
        ),
        (
            '<link rel="alternate" type="application/feed+json" href="//cdn.example/f.json">',
            "https://cdn.example/f.json",
        ),
        (f'<link {RSS} href=" ?feed=rss2&amp;x=1 ">', "https://blog.example/feed?feed=rss2&x=1"),
        (f'<base href="https://www.example/b/"><link {RSS} href="rss">', "https://www.example/b/rss"),
        (f'<base href="/b/"><link {RSS} href="rss">', "https://blog.example/b/rss"),
        (f'<link {RSS} href="feed://blog.example/rss">', "https://blog.example/rss"),
        (f'<link {RSS} href="feed:http://blog.example/rss">', "http://blog.example/rss"),
        ('<link rel="alternate" type="text/xml" title="RSS .92" href="/x">', "https://blog.example/x"),
        (
            '<link rel="alternate" type="application/json" href="/feed.json">',
            "https://blog.example/feed.json",
        ),
    ],
)
def test_a_feed_is_named_by_its_whole_address(tag: str, feed: str) -> None:
    assert named(tag) == [feed]


@pytest.mark.parametrize(
    "tag",
    [
        '<link rel="alternate" type="text/html" hreflang="de" href="/de">',
        '<link rel="stylesheet" type="application/rss+xml" href="/style">',
        f"<link {RSS}>",
        f'<link {RSS} href="javascript:alert(1)">',
        f'<link {RSS} href="itpc://blog.example/rss">',
        '<link rel="alternate" type="application/json" title="JSON" href="/wp-json/wp/v2/pages/1">',
        '<link rel="alternate" type="text/xml" href="/anatomy.xml">',
        f'<link {RSS} href="http://[/rss">',
        f'<link {RSS} href="/{"x" * 600}">',
        f'<link {RSS} href="/feed">',
        '<link rel="alternate" type="application/atom+xml;type=entry" href="/entry">',
        "<link rel='alternate' type='application/atom+xml; charset=utf-8; Type=\"entry\"' href='/entry'>",
    ],
    ids=[
        "language",
        "no alternate",
        "empty",
        "script",
        "scheme",
        "JSON",
        "XML",
        "no URL",
        "endless",
        "what was asked for",
        "entry",
        "entry in quotes",
    ],
)
def test_what_is_no_other_feed_is_not_named(tag: str) -> None:
    assert named(tag) == []
    assert "the page names no feed. Open its address in a browser" in web_page_sentence(page(tag), URL)


def test_no_password_is_repeated() -> None:
    tags = (
        f'<link {RSS} href="https://me:hunter2@blog.example/a">',
        f'<base href="https://me:hunter2@www.example/"><link {RSS} href="b">',
    )
    sentence = web_page_sentence(page(*tags), URL)
    assert "hunter2" not in sentence
    assert "https://blog.example/a, https://www.example/b" in sentence


COMMENTS = [
    f'<link {RSS} title="Blog &raquo; Comments Feed" href="/comments/feed/">',
    f'<link {RSS} title="Blog &raquo; Hello Comments Feed" href="/hello/feed/">',
    '<link rel="alternate" type="application/atom+xml" title="Atom" href="/feeds/17/comments/default">',
    f'<link {RSS} title="Kommentare" href="/k.xml">',
    f'<link {RSS} title="Les commentaires" href="/c.xml">',
    f'<link {RSS} title="コメント" href="/co.xml">',
    f'<link {RSS} title="Replies" href="/r.xml">',
    f'<link {RSS} title="Komentáře" href="/cs.xml">',
    f'<link {RSS} title="تعليقات" href="/ar.xml">',
    f'<link {RSS} title="Blog &raquo; News" href="/category/news/feed/">',
]


@pytest.mark.parametrize("comments", COMMENTS)
def test_a_feed_of_comments_comes_after_that_of_the_site(comments: str) -> None:
    own = f'<link {RSS} title="Blog &raquo; Feed" href="/blog.xml">'
    for tags in ((comments, own), (own, comments), (comments, *[comments] * 9, own)):
        assert named(*tags)[0] == "https://blog.example/blog.xml"
    assert len(named(comments)) == 1


def test_a_site_with_comments_in_its_name_has_a_feed_of_its_own() -> None:
    tags = [
        f'<link {RSS} title="No Comment &raquo; {name}Feed" href="https://comments.example/{path}">'
        for name, path in (("Comments ", "comments/feed/"), ("", "feed/"))
    ]
    assert named(*tags)[0] == "https://comments.example/feed/"


def test_the_feed_of_a_part_comes_first_where_that_part_is_the_page() -> None:
    tags = (f'<link {RSS} href="/tag/a/feed/">', f'<link {RSS} href="/feed/">')
    for url, first in (("https://e.example/", "feed/"), ("https://e.example/tag/a/", "tag/a/feed/")):
        assert named(*tags, url=url)[0] == f"https://e.example/{first}"


def test_rss_and_atom_come_before_other_types_and_else_the_order_is_the_page_s() -> None:
    json = '<link rel="alternate" type="application/feed+json" href="/feed.json">'
    atom = '<link rel="alternate" type="application/atom+xml" href="/atom.xml">'
    assert named(json, atom, f'<link {RSS} href="/rss.xml">') == [
        "https://blog.example/atom.xml",
        "https://blog.example/rss.xml",
        "https://blog.example/feed.json",
    ]


def test_five_are_the_most_and_none_twice() -> None:
    tags = [f'<link {RSS} href="/{number // 2}">' for number in range(40)]
    assert named(*tags) == [f"https://blog.example/{number}" for number in range(5)]


def test_the_page_is_called_by_its_title() -> None:
    assert web_page_sentence(page(title="Just  a\nmoment"), URL).startswith(
        'The server sent a web page ("Just a moment"), not a feed'
    )
