"""Bodies of items: safe, with their archived images, and made once a version."""

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from rss_pipeline.reader.bodies import Bodies, Body, BodyFor, image_path
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import body_parts as stored_bodies
from rss_pipeline.storage.items.body_parts import BodyKey
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.counted import Counted
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class PublicStore(FolderStore):
    def url(self, key: str) -> str | None:
        return f"https://img.example/{key}"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Counted]:
    database = migrated(tmp_path / "rss.sqlite")
    add_feeds(database, "news")
    yield Counted(database)
    database.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cache(tmp_path: Path, clock: Clock) -> Bodies:
    return Bodies(FolderStore(tmp_path / "objects"), seconds=clock)


def store(database: Database, *htmls: str | None, **fields: Any) -> list[str]:
    """The ids of new items with this HTML."""
    rows = [
        item("news", str(number), FIRST, arrived=number + 1, content_html=html, **fields)
        for number, html in enumerate(htmls)
    ]
    add_items(database, rows)
    return [row["id"] for row in rows]


def archive(database: Database, id: str, url: str, key: str) -> None:
    database.query(
        """INSERT INTO image_tasks
          (id, item_id, original_url, r2_key, status, attempts, created_at, updated_at, host, position)
          VALUES (?, ?, ?, ?, 'success', 0, ?, ?, 'h', 0)""",
        [key, id, url, key, FIRST, FIRST],
    )


def keys(database: Database, ids: Sequence[str]) -> dict[str, BodyKey]:
    found: dict[str, BodyKey] = {}
    for start in range(0, len(ids), 200):
        found |= stored_bodies.keys_of(database.batch([stored_bodies.versions(ids[start : start + 200])])[0])
    return found


def known(cache: Bodies, keys: Mapping[str, BodyKey], shown: BodyFor = "reader") -> dict[str, Body]:
    return cache.known({id: key.version for id, key in keys.items()}, shown=shown)


def html_of(database: Database, cache: Bodies, html: str | None, **fields: Any) -> str:
    [id] = store(database, html, **fields)
    return cache.all_of(database, keys(database, [id]).values())[id].html


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ('<a href="/b" target=_blank onclick=x()>b</a>',
         '<a href="https://news.example/b" rel="noopener noreferrer">b</a>'),
        ('<a href="https://c.example/">c</a>',
         '<a href="https://c.example/" rel="noopener noreferrer">c</a>'),
        ('<a href="JaVa\tScript:alert(1)">a</a>', '<a rel="noopener noreferrer">a</a>'),
        ('<a href="&#106;avascript:alert(1)">a</a>', '<a rel="noopener noreferrer">a</a>'),
        ('<a href="data:text/html,<script>alert(1)</script>">a</a>', '<a rel="noopener noreferrer">a</a>'),
        ('<img src="data:image/svg+xml;base64,AAAA" alt=a>', '<img alt="a">'),
        ("<div style='position:fixed;inset:0' class=modal id=root>a</div>", "<div>a</div>"),
        ("<style>*{display:none}</style>a", "a"),
        ('<meta http-equiv=refresh content="0;url=https://e.example/">a', "a"),
        ('<base href="https://e.example/">a<link rel=stylesheet href=//e.example/x>', "a"),
        ("<form action=https://e.example/><input name=p><button>Log in</button></form>", "Log in"),
        ("<iframe srcdoc='<script>x</script>'></iframe><object data=data:,x></object><embed src=blob:x>a",
         '<a href="https://news.example/0" rel="noopener noreferrer">Embedded page at news.example</a> a'),
        ("<svg><a xlink:href=javascript:x><text>a</text></a></svg>b",
         "<svg><g><text>a</text></g></svg>b"),
        ("<script>alert(1)</script>", ""),
        ("", ""),
        (None, ""),
    ],
)  # fmt: skip
def test_nothing_in_a_body_runs_loads_a_page_or_covers_one(
    database: Counted, cache: Bodies, html: str | None, expected: str
) -> None:
    assert html_of(database, cache, html) == expected


MUTATIONS = (
    "<noscript><p title=\"</noscript><img src=x onerror=alert(1)>\"></noscript>",
    "<math><mtext><table><mglyph><style><!--</style><img title=\"--&gt;&lt;img src=1 onerror=alert(1)&gt;\">",
    "<svg></p><style><a id=\"</style><img src=1 onerror=alert(1)>\">",
    "<form><math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "<math><annotation-xml encoding=\"text/html\"><style><img src=x onerror=alert(1)></style>",
    "<svg><foreignobject><p><style><!--</style><a href=\"--><img src=x onerror=alert(1)>\">",
    "<table><td><select><style></select><img src=x onerror=alert(1)></style>",
    "<xmp><p id=\"</xmp><img src=x onerror=alert(1)>\">",
    "<textarea><a title=\"</textarea><img src=x onerror=alert(1)>\">",
    "<template><img src=x onerror=alert(1)></template>",
    "<!--><img src=x onerror=alert(1)>-->",
    "<![CDATA[<img src=x onerror=alert(1)>]]>",
    "<plaintext><img src=x onerror=alert(1)>",
    "<p title='`\"><img src=x onerror=alert(1)>'>",
    "<img src=\"x` `<script>alert(1)</script>\"` `>",
    "<img src=x:alert(1) onerror=eval(src)>",
    "<details open ontoggle=alert(1)><summary>a</summary></details>",
    "<video><source onerror=alert(1) src=x></video>",
    "<a href=\"\u0001javascript:alert(1)\">a</a>",
    "<a href=\"vbscript:x\">a</a><a href='blob:https://x.example/1'>b</a><a href='file:///etc/passwd'>c</a>",
    "<img srcset=\"javascript:alert(1) 1x, data:text/html,x 2x\">",
    "<img src='https://x.example/\"onerror=alert(1)//.png'>",
)  # fmt: skip
_ATTRIBUTES = {"href", "src", "title", "rel", "alt", "open", "poster", "controls"}
_OF_TEXTS = {"x", "y", "text-anchor", "dominant-baseline"}
"""Attributes that the words of HTML in a drawing get."""


@pytest.mark.parametrize("html", MUTATIONS)
def test_html_that_changes_when_it_is_parsed_again_stays_harmless(
    database: Counted, cache: Bodies, html: str
) -> None:
    cleaned = html_of(database, cache, f"<p>before {html} after</p>")
    for _ in range(2):
        root = etree.fromstring(f"<div>{cleaned}</div>", etree.HTMLParser())
        for element in root.iter():
            assert isinstance(element.tag, str), cleaned
            assert element.tag not in {
                "script",
                "style",
                "foreignobject",
                "annotation-xml",
                "mglyph",
                "iframe",
                "form",
                "noscript",
                "template",
            }
            allowed = _ATTRIBUTES | _OF_TEXTS if element.tag == "text" else _ATTRIBUTES
            assert set(element.keys()) <= allowed, cleaned
            for name in ("href", "src", "poster"):
                assert re.match("https?://|mailto:|$", element.get(name, "")), cleaned
        cleaned = etree.tostring(root, method="html", encoding="unicode")


def test_links_and_images_are_resolved_against_the_base_of_the_item(database: Counted, cache: Bodies) -> None:
    found = html_of(database, cache, '<a href="c#d">x</a><img src="e.png">', base_url="https://b.example/x/")
    assert 'href="https://b.example/x/c#d"' in found
    assert 'src="https://b.example/x/e.png"' in found


def test_an_item_without_content_shows_its_summary(database: Counted, cache: Bodies) -> None:
    assert html_of(database, cache, " \n", summary="<b>short</b>") == "<b>short</b>"


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("a\n <b> &amp; c", "a <b> &amp; c"),
        (None, "Text of all"),
        ("", "Text of all"),
        ("x" * 501, "x" * 499 + "…"),
    ],
)
def test_titles_are_plain_text_on_one_line(
    database: Counted, cache: Bodies, title: str | None, expected: str
) -> None:
    [id] = store(database, "<p>Text of <b>all</b></p>", title=title)
    assert cache.all_of(database, keys(database, [id]).values())[id].title == expected


def test_archived_images_are_the_readers_own_or_public_ones(
    database: Counted, cache: Bodies, tmp_path: Path, clock: Clock
) -> None:
    [id] = store(database, '<img src="/a.png"><img src="b.png">')
    key = "images/news/0cc175b9/0 a語#?,%.png"
    archive(database, id, "https://news.example/a.png", key)
    wanted = keys(database, [id])
    rest = '<img src="https://news.example/b.png">'
    own = "/api/images/images/news/0cc175b9/0%20a%E8%AA%9E%23%3F%2C%25.png"
    assert image_path(key) == own
    assert cache.all_of(database, wanted.values())[id].html == f'<img src="{own}">{rest}'
    # A program that shows HTML without a login gets what it can load; each kind is cached by itself.
    original = f'<img src="https://news.example/a.png">{rest}'
    assert cache.all_of(database, wanted.values(), shown="public")[id].html == original
    assert known(cache, wanted)[id].html == f'<img src="{own}">{rest}'
    public = Bodies(PublicStore(tmp_path / "public"), seconds=clock)
    for places in ("reader", "public"):
        body = public.all_of(database, wanted.values(), shown=places)[id]
        assert body.html.startswith('<img src="https://img.example/images/news/0cc175b9/0 a語')


FILES = (
    '[{"url": "https://news.example/1.mp3", "type": "audio/mpeg"},'
    ' {"url": "https://img.example/thumb.jpg", "type": "image/*"}]'
)


def test_a_picture_beside_the_text_is_shown_above_it_and_is_no_file(database: Counted, cache: Bodies) -> None:
    [id] = store(database, "<p>Text</p>", enclosures=FILES)
    archive(database, id, "https://img.example/thumb.jpg", "images/news/1/0.jpg")
    wanted = keys(database, [id])
    for shown, image in (
        ("reader", '<img src="/api/images/images/news/1/0.jpg" alt="">'),
        ("public", '<img src="https://img.example/thumb.jpg" alt="">'),
        ("page", '<img src="/api/images/images/news/1/0.jpg" class="unsized" alt="" loading="lazy"'),
    ):
        body = cache.all_of(database, wanted.values(), shown=shown)[id]  # type: ignore[arg-type]
        assert body.html.startswith(f"<p>{image}")
        assert body.html.endswith("</p><p>Text</p>")
        assert [each.url for each in body.files] == ["https://news.example/1.mp3"]


def test_an_item_of_a_picture_alone_shows_it(database: Counted, cache: Bodies) -> None:
    html = html_of(database, cache, None, enclosures=FILES)
    assert html == '<p><img src="https://img.example/thumb.jpg" alt=""></p>'


@pytest.mark.parametrize(
    ("reference", "former"),
    [
        ("p.png", "https://news.example/p.png"),
        ("img/p.png?x=1&amp;y", "https://news.example/img/p.png?x=1&y"),
        ("../p.png", "https://news.example/p.png"),
        ("./a:b.png", "https://news.example/a:b.png"),
    ],
)
def test_an_image_that_was_archived_by_its_former_url_is_shown(
    database: Counted, cache: Bodies, reference: str, former: str
) -> None:
    """Until `replay --repair`, the tasks of older items have URLs against the feed's link."""
    [id] = store(database, f'<img src="{reference}">', link="https://news.example/2026/post/")
    archive(database, id, former, "images/news/1/0.png")
    wanted = keys(database, [id])
    assert 'src="/api/images/images/news/1/0.png"' in cache.all_of(database, wanted.values())[id].html
    assert (
        'src="/api/images/images/news/1/0.png"'
        in cache.all_of(database, wanted.values(), shown="page")[id].html
    )


def test_a_former_url_is_none_of_another_host_or_base(database: Counted, cache: Bodies) -> None:
    [id] = store(database, '<img src="https://img.example/p.png">', link="https://news.example/2026/post/")
    archive(database, id, "https://news.example/p.png", "images/news/1/0.png")
    assert "/api/images/" not in cache.all_of(database, keys(database, [id]).values())[id].html
    database.query(
        "UPDATE items SET content_html = '<img src=\"p.png\">', base_url = 'https://news.example/x/'"
    )
    another = keys(database, [id])[id]._replace(version="another")
    assert "/api/images/" not in cache.all_of(database, [another])[id].html


def test_a_page_shows_archived_images_in_their_size_and_links_to_the_others(
    database: Counted, cache: Bodies, tmp_path: Path, clock: Clock
) -> None:
    [id] = store(database, '<a href="c"><img src="/a.png#x"></a><img src="b.png" onload=x()>')
    archive(database, id, "https://news.example/a.png", "images/news/1/0.png")
    database.query("UPDATE image_tasks SET width = 6, height = 4")
    wanted = keys(database, [id])
    image = 'width="6" height="4" alt="Image" loading="lazy" decoding="async">'
    page = cache.all_of(database, wanted.values(), shown="page")[id].html
    assert f'<img src="/api/images/images/news/1/0.png" {image}</a>' in page
    assert page.count("<img") == 1
    assert ">Image at news.example</a>" in page
    more = cache.all_of(database, wanted.values(), shown="page_with_publishers")[id].html
    assert '<img src="https://news.example/b.png" referrerpolicy="no-referrer"' in more
    # Each kind is kept by itself.
    assert "image-link" not in cache.all_of(database, wanted.values())[id].html
    assert known(cache, wanted, "page")[id].html == page
    public = Bodies(PublicStore(tmp_path / "public"), seconds=clock)
    found = public.all_of(database, wanted.values(), shown="page")[id].html
    assert f'<img src="https://img.example/images/news/1/0.png" {image}' in found


@pytest.mark.parametrize("shown", ["page", "page_with_publishers"])
@pytest.mark.parametrize("html", MUTATIONS)
def test_a_page_adds_nothing_that_runs(database: Counted, cache: Bodies, html: str, shown: BodyFor) -> None:
    [id] = store(database, f"<p>before {html} after</p>")
    found = cache.all_of(database, keys(database, [id]).values(), shown=shown)[id].html
    root = etree.fromstring(f"<div>{found}</div>", etree.HTMLParser())
    for element in root.iter():
        assert element.tag not in {
            "script",
            "style",
            "foreignobject",
            "iframe",
            "form",
            "noscript",
            "template",
        }
        assert not [name for name in map(str, element.attrib) if name.startswith("on")], found
        assert element.get("class") in (None, "image-link", "unsized", "scrolls")
        for name in ("href", "src", "poster"):
            assert re.match("https?://|mailto:|$", element.get(name, "")), found


def test_a_publisher_cannot_name_a_path_of_the_reader(database: Counted, cache: Bodies) -> None:
    html = '<img src="/api/images/images/other/1/0.png"><a href="/api/feeds">x</a>'
    found = html_of(database, cache, html)
    assert 'src="https://news.example/api/images/images/other/1/0.png"' in found
    assert 'href="https://news.example/api/feeds"' in found


def test_a_body_is_made_once_for_each_version(database: Counted, cache: Bodies) -> None:
    ids = store(database, "<p>a</p>", "<p>b</p>")
    wanted = keys(database, ids)
    before = database.requests
    first = cache.all_of(database, wanted.values())
    assert database.requests - before == 1
    assert cache.all_of(database, wanted.values()) == first
    assert database.requests - before == 1
    archive(database, ids[0], "https://news.example/x.png", "images/news/1/0.png")
    assert list(known(cache, keys(database, ids))) == [ids[1]]


def test_a_body_is_kept_with_the_version_that_was_read(database: Counted, cache: Bodies) -> None:
    [id] = store(database, "<p>a</p>")
    old = keys(database, [id])
    database.query("UPDATE items SET content_html = 'new', arrived = 9")
    assert cache.all_of(database, old.values())[id].html == "new"
    assert known(cache, old) == {}
    assert {id: body.html for id, body in known(cache, keys(database, [id])).items()} == {id: "new"}


def test_a_body_is_kept_for_an_hour(database: Counted, cache: Bodies, clock: Clock) -> None:
    [id] = store(database, "<p>a</p>")
    wanted = keys(database, [id])
    cache.all_of(database, wanted.values())
    clock.now = 3599.0
    assert known(cache, wanted)
    clock.now = 3600.0
    assert not known(cache, wanted)


def test_what_was_used_longest_ago_makes_room(database: Counted, tmp_path: Path, clock: Clock) -> None:
    ids = store(database, *("x" * 1_000 for _ in range(10)))
    wanted = keys(database, ids)
    small = Bodies(FolderStore(tmp_path / "objects"), seconds=clock, most_bytes=12_000)
    for id in ids[:4]:
        small.all_of(database, [wanted[id]])
    known(small, {ids[0]: wanted[ids[0]]})
    small.all_of(database, [wanted[id] for id in ids[4:8]])
    left = list(known(small, wanted))
    assert ids[0] in left
    assert ids[1] not in left
    assert ids[7] in left
    assert len(left) <= 6
    none = Bodies(FolderStore(tmp_path / "objects"), seconds=clock, most_bytes=100)
    assert len(none.all_of(database, wanted.values())) == 10
    assert known(none, wanted) == {}


@pytest.mark.slow
def test_bodies_of_long_texts_are_read_in_parts_and_gone_items_left_out(
    database: Counted, cache: Bodies
) -> None:
    ids = store(database, *("" for _ in range(9)))
    database.query("UPDATE items SET content_html = ?", ["<p>" + "x" * 900_000])
    wanted = keys(database, ids)
    database.query("DELETE FROM items WHERE id IN (?, ?)", [ids[2], ids[8]])
    made, left = cache.page(database, list(wanted.values()))
    assert list(made) == [ids[0], ids[1], ids[3], ids[4]]
    assert [key.id for key in left] == ids[5:]
    assert list(cache.all_of(database, wanted.values())) == [id for id in ids if id not in (ids[2], ids[8])]


def test_items_of_any_number_are_read(database: Counted, cache: Bodies) -> None:
    ids = store(database, *("a" for _ in range(450)))
    before = database.requests
    assert (
        list(cache.all_of(database, [BodyKey(id, None, None, None, None, "[]", None, "", "") for id in ids]))
        == ids
    )
    assert database.requests - before == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "<b>text",
        "<p>text</p>" + "x" * 1_999_000,
        "<p " + "a " * 9_000 + ">text",
        "<" * 1_000_000,
    ],
    ids=["deep", "2 MB", "attributes", "brackets"],
)
def test_html_that_cannot_be_read_safely_is_shown_as_text(
    database: Counted, cache: Bodies, html: str
) -> None:
    with costs_less_than(5):
        found = html_of(database, cache, html)
    assert len(found) <= 4_500_000
    if "text" in html:
        assert re.match(r"<p>text</p>(<p>x++</p>)?$", found)
        assert not html.endswith("x") or found.count("x") > 900_000


def test_an_item_of_5000_images_has_them_all(database: Counted, cache: Bodies) -> None:
    [id] = store(database, "".join(f'<img src="/{n}.png">' for n in range(5_000)))
    for n in range(0, 5_000, 500):
        archive(database, id, f"https://news.example/{n}.png", f"images/news/1/{n}.png")
    with costs_less_than(5):
        found = cache.all_of(database, keys(database, [id]).values())[id].html
    assert found.count("<img ") == 5_000
    assert found.count('src="/api/images/') == 10


def test_threads_that_miss_the_same_page_make_each_body_once(database: Counted, cache: Bodies) -> None:
    ids = store(database, *(f"<p>{n}</p>" * 50 for n in range(50)))
    wanted = list(keys(database, ids).values())
    bodies: list[dict[str, Body]] = []
    threads = [
        threading.Thread(target=lambda: bodies.append(cache.all_of(database, wanted))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(each == bodies[0] for each in bodies)
    # The very same objects: the first thread made them for all.
    assert all(each[id] is bodies[0][id] for each in bodies for id in ids)


@pytest.mark.slow
def test_100_cached_bodies_take_less_than_a_millisecond(database: Counted, cache: Bodies) -> None:
    wanted = keys(database, store(database, *("<p>text</p>" * 400 for _ in range(100))))
    cache.all_of(database, wanted.values())
    spent = []
    for _ in range(50):
        started = time.process_time()
        assert len(known(cache, wanted)) == 100
        spent.append(time.process_time() - started)
    assert min(spent) < 0.001
