"""Bodies of kept HTML: the same as those that are made now, and not used once they would differ."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rss_pipeline.pipeline.session.renew_html import made, renew
from rss_pipeline.reader.bodies import Bodies, Body, BodyFor
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.items import body_parts as stored_bodies
from rss_pipeline_tests.reader.test_bodies import (
    FILES,
    MUTATIONS,
    PublicStore,
    archive,
    keys,
    store,
)
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.examples import examples
from rss_pipeline_tests.support.stored import FIRST, add_feeds, add_items, item

HTMLS = (
    *MUTATIONS,
    "",
    "plain & simple",
    '<p>"quoted" \\ é 設想 <a href="/b#c">b</a> <a>c</a></p>',
    '<img src="/a.png#x" srcset="/a.png 1x, b.png 2x"><img src="/b.png?x=1&amp;y=2" alt="<b>">',
    '<h1>one</h1><video poster="/a.png" src="v.mp4"></video><main>x</main>',
    "<div>" * 1_000 + "<b>text",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    database = migrated(tmp_path / "rss.sqlite")
    add_feeds(database, "news")
    yield database
    database.close()


def kept(database: Database) -> int:
    return renew(database, is_over=lambda: False)


def shown(
    database: Database, folder: Path, ids: Sequence[str], kind: BodyFor = "reader", *, public: bool = False
) -> list[Body]:
    """The bodies of these items by a reader that has none in memory."""
    objects = (PublicStore if public else FolderStore)(folder / "objects")
    found = Bodies(objects, seconds=lambda: 0.0).all_of(database, keys(database, ids).values(), shown=kind)
    return [found[id] for id in ids]


PARTS = (
    "text & <b>more</b>",
    "<p>",
    "</div>",
    '<a href="b?c=1&amp;d#e">b</a>',
    '<img src="/a.png">',
    '<img src="b.png?x=1&y=2#f" alt=\'"\'>',
    '<img src="https://img.example/thumb.jpg">',
    '<img src="https://img.example/pixel.gif" width=1 height=1>',
    '<video poster="../a.png" src="v.mp4"></video>',
    '<iframe src="https://www.youtube.com/embed/x"></iframe>',
    "<math><mi>x</mi></math>",
    "<svg viewBox='0 0 1 1'><path d='M0 0'/></svg>",
    "<table><td>cell",
    '\\u0002 \\ \x02 " 設想 \u2028',
    "<script>x</script><style>y</style>",
    "<!-- z --",
)
PLACES: dict[str, tuple[str | None, ...]] = {
    "title": ("A title", None, " "),
    "link": ("https://news.example/2026/post/", "https://a.example", "mailto:x@a.example", None),
    "base_url": (None, None, "https://news.example/base/", "feed:x"),
    "enclosures": ("[]", FILES, '[{"url": "https://news.example/a.png", "type": "image/png"}]'),
    "content_omitted": (None, None, "3 images"),
}
"""The columns of items that a body is made of, with values that change it."""


def some_items(count: int) -> list[Row]:
    """Items of a feed with a link and of one without, made of any of these."""
    dice = random.Random(1)
    rows = []
    for n in range(count):
        text = HTMLS[n] if n < len(HTMLS) else "".join(dice.choices(PARTS, k=dice.randrange(8)))
        fields = {name: dice.choice(values) for name, values in PLACES.items()}
        texts = {"content_html": text, "summary": None} if dice.random() < 0.8 else {"content_html": " "}
        texts = {"summary": text} | texts
        feed = dice.choice(["news", "bare"])
        rows.append(item(feed, str(n), FIRST, arrived=n + 1, **texts, **fields))
    return rows


def assert_a_run_keeps_the_same(database: Database) -> None:
    """A run makes HTML of the rows that it inserts, and a clean of what it reads of the tables."""
    rows = database.query(
        """SELECT i.*, f.link AS feed_link, f.url AS feed_url, k.title AS k_title, k.files AS k_files,
          k.feed_bases AS k_bases, k.html AS k_html
        FROM items AS i JOIN feeds AS f ON f.id = i.feed_id JOIN item_html AS k ON k.arrived = i.arrived"""
    ).rows
    for row in rows:
        one = made(row, feed_link=row["feed_link"], feed_url=row["feed_url"], repaired_at=None)
        assert one is not None
        of_clean = (row["k_title"], row["k_files"], row["k_bases"], row["k_html"])
        assert (one.title, one.files, one.feed_bases, one.html) == of_clean


def test_a_body_of_kept_html_is_the_one_that_is_made_now(database: SqliteDatabase, tmp_path: Path) -> None:
    add_feeds(database, "bare", link=None)
    rows = some_items(len(HTMLS) + examples(100))
    add_items(database, rows)
    ids = [row["id"] for row in rows]
    for n, id in enumerate(ids):
        archive(database, id, "https://news.example/a.png", f"images/news/{n}/0.png")
        # Known by today's URL with some bases, and by a former one with others.
        archive(database, id, "https://news.example/b.png?x=1&y=2", f'images/news/{n}/1 "é.png')
        archive(database, id, "https://img.example/thumb.jpg", f"images/news/{n}/2.jpg")
    kinds: tuple[BodyFor, ...] = ("reader", "public", "page", "page_with_publishers")
    doors = [(kind, public) for kind in kinds for public in (False, True)]
    now = [shown(database, tmp_path, ids, kind, public=public) for kind, public in doors]
    assert len({body.files for body in now[0]}) > 1
    assert kept(database) == len(ids)
    assert_a_run_keeps_the_same(database)
    # Whatever is stored as text now is not read any more.
    database.query("UPDATE items SET content_html = 'another text'")
    for (kind, public), expected in zip(doors, now, strict=True):
        assert shown(database, tmp_path, ids, kind, public=public) == expected


def test_the_images_of_kept_html_are_those_that_are_archived_when_it_is_shown(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    [id] = store(database, '<img src="/a.png">')
    kept(database)
    assert 'src="https://news.example/a.png"' in shown(database, tmp_path, [id])[0].html
    archive(database, id, "https://news.example/a.png", "images/news/1/0.png")
    assert 'src="/api/images/images/news/1/0.png"' in shown(database, tmp_path, [id])[0].html
    database.query("DELETE FROM image_tasks")
    assert 'src="https://news.example/a.png"' in shown(database, tmp_path, [id])[0].html


def test_a_title_that_is_made_of_the_text_is_kept(database: SqliteDatabase, tmp_path: Path) -> None:
    [id] = store(database, "<p>Text of <b>all</b>", title=None)
    kept(database)
    database.query("UPDATE items SET content_html = 'another text'")
    assert shown(database, tmp_path, [id])[0].title == "Text of all"
    database.query("UPDATE items SET title = 'Its own'")
    assert shown(database, tmp_path, [id])[0].title == "Text of all", "a repair drops what is kept"


def test_html_of_other_rules_is_made_when_it_is_shown_until_it_is_renewed(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    ids = store(database, "<p>a", "<p>b")
    kept(database)
    database.query("UPDATE item_html SET rules = 'before'")
    database.query("UPDATE items SET content_html = '<p>new'")
    assert [body.html for body in shown(database, tmp_path, ids)] == ["<p>new</p>"] * 2
    assert database.query("SELECT DISTINCT rules FROM item_html").rows == [{"rules": "before"}]
    assert kept(database) == 2
    assert kept(database) == 0


def test_another_link_of_the_feed_counts_for_what_depends_on_it(
    database: SqliteDatabase, tmp_path: Path
) -> None:
    texts = ('<a href="/x">x</a>', '<a href="https://a.example/">x</a>')
    ids = store(database, *texts, link=None)
    kept(database)
    database.query("UPDATE items SET content_html = '<p>new'")
    database.query("UPDATE feeds SET link = 'https://moved.example/'")
    relative, absolute = shown(database, tmp_path, ids)
    assert relative.html == "<p>new</p>"
    assert "https://a.example/" in absolute.html


def test_what_is_kept_and_what_is_not_come_in_their_order(database: SqliteDatabase, tmp_path: Path) -> None:
    ids = store(database, *(f"<p>{n}" for n in range(450)))
    kept(database)
    database.query("DELETE FROM item_html WHERE arrived % 3 = 0")
    database.query("DELETE FROM items WHERE arrived IN (4, 6, 450)")
    left = [id for n, id in enumerate(ids, start=1) if n not in (4, 6, 450)]
    bodies = Bodies(FolderStore(tmp_path), seconds=lambda: 0.0)
    found = bodies.all_of(database, keys(database, left).values())
    assert list(found) == left
    assert [found[id].html for id in left] == [f"<p>{ids.index(id)}</p>" for id in left]


@pytest.mark.parametrize("unkept", [[], [2], [0, 5], [6]])
def test_long_html_is_read_in_parts(database: SqliteDatabase, tmp_path: Path, unkept: list[int]) -> None:
    ids = store(database, *(f"<p>{n}" for n in range(7)))
    database.query("UPDATE items SET content_html = content_html || ?", ["x" * 900_000])
    kept(database)
    for n in unkept:
        database.query("DELETE FROM item_html WHERE arrived = ?", [n + 1])
    bodies = Bodies(FolderStore(tmp_path), seconds=lambda: 0.0, most_bytes=0)
    left: Sequence[stored_bodies.BodyKey] = list(keys(database, ids).values())
    seen: list[str] = []
    while left:
        found, left = bodies.page(database, left)
        assert 1 <= len(found) <= 6, "some 4 MB of what is kept, and as much of what is not"
        assert all(found[id].html.startswith(f"<p>{ids.index(id)}x") for id in found)
        seen += found
    assert seen == ids


def test_renewing_ends_when_its_time_is_over(database: SqliteDatabase) -> None:
    store(database, *(f"<p>{n}" for n in range(450)))
    assert renew(database, is_over=lambda: True) == 0
    assert renew(database, is_over=lambda: False, most=1) == 200, "a page at a time"
    newest = database.query("SELECT min(arrived) AS n FROM item_html").rows
    assert newest == [{"n": 251}]


def test_an_earlier_version_is_shown_as_it_was(database: SqliteDatabase, tmp_path: Path) -> None:
    [id] = store(database, "<p>old")
    kept(database)
    database.query(
        """INSERT INTO item_versions (item_id, replaced_at, content_html, pub_date, categories, enclosures,
          guid_source, pub_date_source) VALUES (?, '2026-02-01T00:00:00Z', '<p>first', '', '[]', '[]', 'guid',
          'feed')""",
        [id],
    )
    [earlier] = Bodies(FolderStore(tmp_path), seconds=lambda: 0.0).earlier(database, id)
    assert earlier.body.html == "<p>first</p>"
