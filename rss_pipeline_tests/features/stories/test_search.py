"""A search shows a story once, over all of its pages: nothing twice, and nothing is lost."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.storage.database import Database
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.features.stories.stored import one_story
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.reader import Reader

pytest.importorskip("rss_pipeline.features.search")
search_api = pytest.importorskip("rss_pipeline_tests.features.search.test_api")
library_of = pytest.importorskip("rss_pipeline_tests.features.search.conftest")

Entries = list[tuple[str, ...]]
"""Ids: of each entry the item that is shown for it, and those below it."""


@pytest.fixture
def library(tmp_path: Path) -> Iterator[object]:
    index_file = pytest.importorskip("rss_pipeline.features.search.index_file")
    database = migrated(tmp_path / "rss.sqlite")
    with index_file.open_to_write(tmp_path / "search.sqlite") as file:
        yield library_of.new_library(database, file)
    database.close()


def in_story(database: Database, id: str, story: str) -> None:
    database.query(
        """INSERT INTO story_members (item_id, story_id, feed_id, arrived, article, lead, decided_at, version)
        SELECT id, ?, feed_id, arrived, id, arrived, '2026-03-02T12:00:00Z', 1 FROM items WHERE id = ?""",
        [story, id],
    )


@pytest.mark.parametrize("order", ["date", "rank"])
def test_all_pages_have_each_story_once_by_what_comes_first(library: Any, order: str) -> None:
    chance = random.Random(3)
    database = library.database
    for number in range(80):
        words = " ".join(["word"] * chance.randint(0, 4) + ["filler"] * chance.randint(0, 30))
        library.arrive(chance.choice(("news", "blog", "blog", "secret")), str(number), words)
    rows = database.query("SELECT id, feed_id FROM items").rows
    story = {}
    for row in rows:
        if chance.random() < 0.8:
            story[row["id"]] = f"story {chance.randrange(8)}"
            in_story(database, row["id"], story[row["id"]])
    library.index()
    every = [each.item.id for each in library.search("word", order=order, limit=200).found]
    assert 25 < len(every) < 60
    grouped: dict[str, list[str]] = {}
    for id in every:
        grouped.setdefault(story.get(id, id), []).append(id)
    wanted = [tuple(each) for each in grouped.values()]
    for limit in (1, 2, 3, 5, 200):
        found, key = [], None
        for number in range(100):
            page = library.search("word", order=order, limit=limit, key=key, by_story=True)
            found += [(each.item.id, *(other.item.id for other in each.others)) for each in page.found]
            key = page.next_key
            if key is None:
                break
            # By rank, what comes in changes the worth of every word.
            if number == 0 and order == "date":
                # What comes while somebody turns the pages is on none of them, and hides nothing.
                library.arrive("news", f"late {limit}", "word word word word word")
                late = database.query("SELECT id FROM items WHERE guid = ?", [f"late {limit}"]).rows[0]["id"]
                in_story(database, late, f"story {limit}")
                library.index()
        assert found == wanted
        database.query("DELETE FROM items WHERE guid LIKE 'late%'")
        library.index()


def test_pages_and_programs_find_a_story_once(reader: Reader) -> None:
    user = ann(reader, a=2, b=1, c=1)
    members = one_story(reader.database, "a1", "b1")
    other = one_story(reader.database, "a2", "c1")
    search_api.index(reader)
    client = browser(reader, user)
    reader.database.query(
        """UPDATE users SET preferences = '{"stories":true,"entries_per_page":10}' WHERE id = ?""", [user.id]
    )
    page = client.get("/search?q=title").text
    assert page.count('<li class="entry') == 2
    # To read the one is to read what is listed with it.
    client.post(f"/items/{members[1]}/read", data={"with": ",".join(members), "back": "/search?q=title"})
    found = user.client.get("/api/search", params={"q": "title", "stories": True, "limit": 1}).json()
    rest = user.client.get(
        "/api/search", params={"q": "title", "stories": True, "cursor": found["next_cursor"]}
    ).json()
    entries = [
        (each["id"], *(below["id"] for below in each["others"])) for each in found["items"] + rest["items"]
    ]
    assert {frozenset(each) for each in entries} == {frozenset(members), frozenset(other)}
    assert rest["next_cursor"] is None
    assert [each["is_read"] for each in found["items"] + rest["items"]].count(True) == 1
    alone = user.client.get("/api/search", params={"q": "title"}).json()["items"]
    assert [len(each["others"]) for each in alone] == [0, 0, 0, 0]
