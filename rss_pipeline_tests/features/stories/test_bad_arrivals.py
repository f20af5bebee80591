"""The writer of stories with what feeds should not send, with several methods, and with a full window."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.stories import moves, service, sql
from rss_pipeline.features.stories.window import VERSION, Window
from rss_pipeline.features.stories.window_file import load
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline_tests.features.stories import kit
from rss_pipeline_tests.features.stories.stored import AGAIN, LANDSLIDE, NOW, OTHER, arrive, decide, together
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.stored import add_feeds, add_items, item


class Stores:
    """A database with feeds, a folder of objects, and the place of a window."""

    def __init__(self, folder: Path, objects: ObjectStore, *, feeds: int) -> None:
        self.database = migrated(folder / "rss.sqlite")
        self.objects = objects
        self.window = folder / "stories.window"
        self.feeds = [f"f{number}" for number in range(feeds)]
        self.number = int((NOW - timedelta(hours=5)).timestamp()) * 1_000_000
        add_feeds(self.database, *self.feeds)

    def arrive(self, *texts: tuple[str, str], **fields: Any) -> list[str]:
        """Items of one feed after the other; their ids."""
        rows = []
        for place, (title, text) in enumerate(texts):
            self.number += 1_000
            at = datetime.fromtimestamp(self.number / 1_000_000, UTC)
            row = item(self.feeds[place % len(self.feeds)], str(self.number), instant(at), title=title)
            rows.append({**row, "content_html": text, "arrived": self.number, **fields})
        add_items(self.database, rows)
        self.database.query(
            "INSERT INTO sequences (name, value) VALUES ('items', CAST(? AS INTEGER))"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            [self.number],
        )
        return [str(row["id"]) for row in rows]

    def decide(self) -> set[frozenset[str]]:
        decide(self.database, self.objects, self.window)
        return together(self.database)

    def lose_window(self) -> None:
        self.window.unlink()

    def kept(self) -> Window:
        """The window as it was saved."""
        ends = sql.ends(self.database)
        found = load(self.window, database=f"{ends.identity} {ends.writer.moves}".rstrip())
        assert found is not None
        return found


@pytest.fixture
def stores(tmp_path: Path, objects: ObjectStore, request: pytest.FixtureRequest) -> Iterator[Stores]:
    made = Stores(tmp_path, objects, feeds=getattr(request, "param", 5))
    yield made
    made.database.close()


def word(number: int) -> str:
    return "".join(chr(97 + number // 26**place % 26) for place in range(4)).capitalize()


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("stores", [200], indirect=True)
def test_items_of_one_template_are_not_joined_however_many_there_are(stores: Stores, count: int) -> None:
    stores.arrive(
        *(
            (
                f"Council of {word(n)}by approves budget for {n + 10} schools",
                f"<p>The council of {word(n)}by has approved its budget on Tuesday with {n + 10} votes.</p>",
            )
            for n in range(count)
        )
    )
    joined = sum(map(len, stores.decide()))
    assert joined <= 0.02 * count


def test_a_word_as_title_and_no_text_join_nothing(stores: Stores) -> None:
    bare = [("Update", ""), ("", ""), ("News", "<p></p>"), ("", "<img src='a.jpg'>"), ("!", "<p>&nbsp;</p>")]
    stores.arrive(*(each for each in bare for _ in stores.feeds), *[("", "<p>Photo: Reuters</p>")] * 5)
    bare = [
        ("Orla Brandt resigns as mayor of Ravensdale", ""),
        ("Mayor of Ravensdale Orla Brandt resigns", ""),
    ]
    stores.arrive(*bare)
    assert stores.decide() == set()
    assert stores.arrive(*[("Update", "")] * 5, link="https://example.org/update/7")
    [copies] = stores.decide()
    assert len(copies) == 5


@pytest.mark.parametrize("date", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"])
def test_a_date_that_is_a_mistake_is_none(stores: Stores, date: str) -> None:
    ids = stores.arrive(LANDSLIDE, AGAIN, OTHER, pub_date=date, pub_date_source="feed")
    assert stores.decide() == {frozenset(ids[:2])}
    [late] = stores.arrive(AGAIN)
    assert stores.decide() == {frozenset([*ids[:2], late])}


@pytest.mark.parametrize("date", ["1970-01-01T00:00:00Z", "2099-12-31T23:59:59Z"])
def test_what_a_machine_with_a_wrong_clock_fetched_is_decided_and_harms_nothing(
    stores: Stores, date: str
) -> None:
    first = stores.arrive(LANDSLIDE, AGAIN)
    assert stores.decide() == {frozenset(first)}
    wrong = stores.arrive(OTHER, OTHER, created_at=date)
    assert stores.decide() == {frozenset(first), frozenset(wrong)}
    [*_, late] = stores.arrive(OTHER, OTHER, AGAIN)
    assert any({*first, late} <= story for story in stores.decide())


@pytest.mark.parametrize(("count", "most"), [(40, 12), pytest.param(3_000, 200, marks=pytest.mark.soak)])
@pytest.mark.parametrize("stores", [100], indirect=True)
def test_a_story_that_never_ends_is_full_and_another_one_begins(
    stores: Stores, count: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_MEMBERS", most)
    for start in range(0, count, 40):
        stores.arrive(*(AGAIN if n % 2 else LANDSLIDE for n in range(start, min(start + 40, count))))
        stores.decide()
    stories = together(stores.database)
    assert max(map(len, stories)) == most
    assert sum(map(len, stories)) >= 0.9 * count
    stores.lose_window()
    [last] = stores.arrive(AGAIN)
    assert sum(map(len, stores.decide())) >= 0.9 * count
    assert last in {id for story in stores.decide() for id in story}


def test_an_item_that_is_edited_into_another_story_stays_where_it_is(stores: Stores) -> None:
    ids = stores.arrive(LANDSLIDE, AGAIN, OTHER)
    before = stores.decide()
    for id, text in ((ids[2], LANDSLIDE), (ids[0], OTHER)):
        stores.database.query(
            "UPDATE items SET title = ?, content_html = ?, arrived = arrived WHERE id = ?", [*text, id]
        )
    assert stores.decide() == before
    stores.lose_window()
    later = stores.arrive(("A storm", "<p>Nobody has seen it, and it has no name.</p>"))
    assert stores.decide() == before
    assert later[0] not in {id for story in before for id in story}


@pytest.mark.parametrize("stores", [60], indirect=True)
def test_a_feed_made_to_join_everything_joins_no_stories_of_others_and_leads_none(stores: Stores) -> None:
    news = [
        (
            title.replace("Ravensdale", f"{word(n)}dale").replace("Brandt", f"{word(n + 9)}son"),
            text.replace("Ravensdale", f"{word(n)}dale").replace("Brandt", f"{word(n + 9)}son"),
        )
        for n in range(1, 200, 10)
        for title, text in (LANDSLIDE, AGAIN)
    ]
    stores.arrive(*news)
    before = stores.decide()
    everything = f"<p>{' '.join(text for _, text in news[:6])}</p>"
    spam = stores.arrive(
        *((f"{title} and win a car", text) for title, text in news),
        *((title, f"{text}{everything}") for title, text in news),
        feed_id="f59",
    )
    after = stores.decide()
    # All others are where they were.
    assert {story - {*spam} for story in after} - {frozenset()} == before
    leads = {
        row["story_id"]: row["item_id"]
        for row in stores.database.query("SELECT * FROM story_members ORDER BY lead DESC").rows
    }
    assert not any(leads[row] in spam for row in leads if {leads[row]} & {id for one in before for id in one})
    assert stores.arrive(AGAIN)
    assert {story - {*spam} for story in stores.decide()} - {frozenset()} >= before


def test_two_methods_at_once_do_not_undo_each_other(
    database: Database, objects: ObjectStore, window: Path, three: tuple[str, str, str]
) -> None:
    """A process of a newer version took over while an older one was at work."""
    decide(database, objects, window)
    before = together(database)
    stored = sql.ends(database).stored
    newer = {**json.loads(stored or "{}"), "version": VERSION + 1, "what this one does not know": 7}
    database.query("UPDATE installation SET value = ? WHERE name = 'stories'", [json.dumps(newer)])
    arrive(database, "c", "4", AGAIN, minutes=-1)
    acts = (
        lambda: service.catch_up(database, objects, window),
        lambda: moves.split(database, objects, window, three[0]),
        lambda: moves.join(database, objects, window, three[0], three[2]),
        lambda: moves.undo(database, objects, window),
    )
    for act in acts:
        with pytest.raises(RssPipelineError, match="update this one"):
            act()
    assert together(database) == before
    assert sql.ends(database).stored == json.dumps(newer)
    assert [*objects.list("")] == []


def test_a_window_of_another_method_is_made_anew_and_the_stories_stay(
    database: Database,
    objects: ObjectStore,
    window: Path,
    three: tuple[str, str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decide(database, objects, window)
    before = together(database)
    for module in ("window_file", "lease"):
        monkeypatch.setattr(f"rss_pipeline.features.stories.{module}.VERSION", VERSION + 1)
    late = arrive(database, "c", "4", AGAIN, minutes=-1)
    decide(database, objects, window)
    assert together(database) == {frozenset({*story, late}) for story in before}
    assert sql.ends(database).writer.version == VERSION + 1


@pytest.mark.parametrize("stores", [100], indirect=True)
def test_more_items_than_a_window_has_are_decided_by_the_newest(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.window.MOST_ITEMS", 60)
    monkeypatch.setattr("rss_pipeline.features.stories.window._SPARE_ITEMS", 20)
    old = stores.arrive(LANDSLIDE)
    stores.arrive(
        *((f"The {word(n)} of {word(n + 7)}", f"<p>A {word(n * 3)} was seen.</p>") for n in range(250))
    )
    ids = stores.arrive(AGAIN, LANDSLIDE)
    assert frozenset(ids) in stores.decide()
    assert old[0] not in {id for story in stores.decide() for id in story}
    for _ in range(2):
        assert len(stores.kept()) <= 80
        stores.lose_window()
        ids += stores.arrive(AGAIN)
        assert frozenset(ids) in stores.decide()


def test_a_lost_window_is_made_of_the_newest_items_and_decides_as_one_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.window.MOST_ITEMS", 300)
    monkeypatch.setattr("rss_pipeline.features.stories.window._SPARE_ITEMS", 20)
    # As with the numbers of the product: frequencies of more texts than a window has are halved.
    monkeypatch.setattr("rss_pipeline.features.stories.frequencies.MOST_TEXTS", 300)
    rows = sorted((row["id"][-1:], row["title"], f"<p>{row['text']}</p>") for row in kit.ROWS)
    ones, others = ([row[1:] for row in rows if row[0] == number] for number in "12")

    def made(name: str) -> tuple[set[frozenset[str]], int]:
        """The stories after the window was lost between the first and the second texts of the sets; and the
        number of items with which it was made."""
        stores = Stores(tmp_path / name, FolderStore(tmp_path / name / "objects"), feeds=100)
        stores.arrive(
            *((f"The {word(n)} of {word(n + 7)}", f"<p>A {word(n * 3)} was seen.</p>") for n in range(450))
        )
        stores.arrive(*ones)
        stores.decide()
        stores.lose_window()
        stores.arrive(*others)
        found, kept = stores.decide(), stores.kept()
        stores.database.close()
        return found, kept.items.first + len(kept)

    of_newest, few = made("newest")
    monkeypatch.setattr(sql, "before_newest", lambda _, arrived, **__: arrived)
    of_all, many = made("all")
    assert of_newest == of_all
    assert len(of_all) > 20
    assert (few, many) == (319 + len(others), 450 + len(rows))


def test_marks_that_no_store_takes_are_in_no_reason(stores: Stores) -> None:
    marks = "&#0;&#xD800;&#x1F; \x7f\u2028 \U0001f30a"
    texts = [
        (title, text.replace("Brandt", f"Brandt{marks}").replace("Ravensdale", f"{marks}Ravensdale{marks}"))
        for title, text in (LANDSLIDE, AGAIN)
    ]
    assert stores.decide() == set()
    ids = stores.arrive(*texts)
    assert stores.decide() == {frozenset(ids)}


def test_a_writer_s_row_of_a_newer_version_is_read() -> None:
    writer = sql.Writer(arrived=7, version=3)
    known = {**json.loads(str(writer)), "else": [1]}
    assert sql.Writer.read(json.dumps(known)) == writer
    assert sql.Writer.read(None) == replace(writer, arrived=0, version=0)
