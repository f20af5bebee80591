"""An operator's moves hold for all, for what comes later and for a lost database, and can be taken back."""

import contextlib
import os
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.stories import moves, sql
from rss_pipeline.features.stories.moves import Move, list_moves
from rss_pipeline.features.stories.window_file import load
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.stories import StoredStory, story_of
from rss_pipeline_tests.features.stories import kit
from rss_pipeline_tests.features.stories.stored import (
    AGAIN,
    LANDSLIDE,
    NOW,
    OTHER,
    arrive,
    decide,
    lose,
    together,
)
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.stored import add_feeds

DAY = 24 * 60
FEEDS = "abcdefgh"


def stored(database: Database, id: str) -> StoredStory:
    found = story_of(database, id)
    assert found is not None
    return found


def date_back(database: Database, objects: FolderStore, *, minutes: int) -> None:
    """Let the last move have been said so many minutes ago."""
    move = [*list_moves(objects)][-1]
    objects.delete_many([move.key])
    at = int((NOW - timedelta(minutes=minutes)).timestamp()) * 1_000_000
    objects.put(
        replace(move, number=at).key, replace(move, number=at).body(), content_type="application/json"
    )


def test_an_operator_splits_and_joins_for_all_later_items_follow_and_undo_takes_them_back(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, third = three
    decide(database, objects, window)
    why = stored(database, first).members
    assert moves.split(database, objects, window, second)
    assert story_of(database, first) is None
    assert not moves.split(database, objects, window, third)
    assert moves.join(database, objects, window, first, third)
    assert not moves.join(database, objects, window, third, first)
    assert not moves.join(database, objects, window, third, "nothing")
    assert together(database) == {frozenset({first, third})}
    assert stored(database, third).members[1].kind == "operator"
    again = arrive(database, "c", "3", AGAIN, minutes=-1)
    decide(database, objects, window)
    assert together(database) == {frozenset({first, third}), frozenset({second, again})}

    assert moves.undo(database, objects, window) is not None
    assert together(database) == {frozenset({second, again})}
    undone = moves.undo(database, objects, window)
    assert undone is not None
    assert undone.is_apart
    assert together(database) == {frozenset({first, second, again})}
    assert stored(database, first).members[:2] == why
    assert moves.undo(database, objects, window) is None
    assert [*objects.list("")] == []
    late = arrive(database, "c", "4", AGAIN, minutes=0)
    decide(database, objects, window)
    assert together(database) == {frozenset({first, second, again, late})}


def test_an_item_that_an_operator_joined_before_it_was_decided_stays(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    _, second, third = three
    assert moves.join(database, objects, window, third, second)
    decide(database, objects, window)
    assert together(database) == {frozenset({second, third})}
    assert len(database.query("SELECT * FROM story_members").rows) == 2, "and none of the first"
    late = arrive(database, "a", "4", OTHER, minutes=0)
    decide(database, objects, window)
    assert together(database) == {frozenset({second, third, late})}


@pytest.mark.parametrize("comes_to_it", [True, False])
def test_an_item_that_came_again_is_joined_with_what_is_in_the_story_of_its_name(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str], comes_to_it: bool
) -> None:
    first, second, third = three
    decide(database, objects, window)
    database.query("DELETE FROM items WHERE id = ?", [first])
    assert arrive(database, "a", "1", LANDSLIDE, minutes=-1) == first
    assert not moves.split(database, objects, window, first), "it is not in its story yet"
    assert moves.join(database, objects, window, *((first, third) if comes_to_it else (third, first)))
    assert together(database) == {frozenset(three)}
    decide(database, objects, window)
    assert together(database) == {frozenset(three)}
    assert moves.undo(database, objects, window) is not None
    assert together(database) == {frozenset({first, second})}


@pytest.fixture
def moved(database: Database, objects: FolderStore, window: Path) -> tuple[str, ...]:
    """A week: a story of two; one of them apart; what followed it; and two that the operator joined, one of
    them moved once more."""
    add_feeds(database, *"abcde")
    first = arrive(database, "a", "1", LANDSLIDE, minutes=-4 * DAY)
    second = arrive(database, "b", "1", AGAIN, minutes=-4 * DAY + 60)
    decide(database, objects, window)
    assert moves.split(database, objects, window, second)
    date_back(database, objects, minutes=4 * DAY - 90)
    third = arrive(database, "c", "1", AGAIN, minutes=-3 * DAY)
    pears = arrive(database, "d", "1", OTHER, minutes=-3 * DAY + 1)
    decide(database, objects, window)
    assert moves.join(database, objects, window, first, pears)
    date_back(database, objects, minutes=3 * DAY - 60)
    more = arrive(database, "e", "1", OTHER, minutes=-2 * DAY)
    decide(database, objects, window)
    assert together(database) == {frozenset({second, third}), frozenset({first, pears, more})}
    return first, second, third, pears, more


def test_after_the_database_was_lost_the_same_items_are_together_and_apart(
    database: Database, objects: FolderStore, window: Path, moved: tuple[str, ...]
) -> None:
    before = together(database)
    kinds = {each.item_id: each.kind for id in moved for each in stored(database, id).members}
    lose(database)
    assert together(database) == set()
    decide(database, objects, window)
    assert together(database) == before
    assert {each.item_id: each.kind for id in moved for each in stored(database, id).members} == kinds
    assert not sql.ends(database).writer.is_restored
    first, second, third, pears, more = moved
    moves.undo(database, objects, window)
    assert together(database) == {frozenset({second, third}), frozenset({pears, more})}
    moves.undo(database, objects, window)
    assert together(database) == {frozenset({first, second, third}), frozenset({pears, more})}


def test_an_item_of_which_only_a_later_document_is_left_is_apart_from_its_first_hour(
    database: Database, objects: FolderStore, window: Path, moved: tuple[str, ...]
) -> None:
    first, second, *_ = moved
    database.query("UPDATE items SET created_at = ? WHERE id = ?", [instant(NOW - timedelta(days=2)), second])
    lose(database)
    decide(database, objects, window)
    assert second not in {each.item_id for each in stored(database, first).members}


def test_an_item_that_a_replay_brings_back_is_where_the_operator_put_it(
    database: Database, objects: FolderStore, window: Path, moved: tuple[str, ...]
) -> None:
    before = together(database)
    for id in moved:
        lose(database, id)
        decide(database, objects, window)
        assert together(database) == before


def test_an_older_copy_of_the_database_learns_of_later_moves(
    database: Database, objects: FolderStore, window: Path, three: tuple[str, str, str]
) -> None:
    first, second, third = three
    decide(database, objects, window)
    earlier = sql.ends(database).stored
    assert moves.split(database, objects, window, second)
    assert moves.join(database, objects, window, third, second)
    # The copy is put back.
    database.query("DELETE FROM story_members WHERE item_id = ?", [third])
    database.query("UPDATE story_members SET story_id = ?, evidence = NULL", [first])
    database.query("UPDATE installation SET value = ? WHERE name = 'stories'", [earlier])
    moves.restored(database)
    decide(database, objects, window)
    assert together(database) == {frozenset({second, third})}
    copy = arrive(database, "c", "2", AGAIN, minutes=-1)
    decide(database, objects, window)
    assert together(database) == {frozenset({second, third, copy})}


def test_no_item_of_a_forgotten_feed_stays_in_a_move_and_one_without_items_goes_with_the_backups(
    database: Database, objects: FolderStore, window: Path, moved: tuple[str, ...], tmp_path: Path
) -> None:
    first, second, _, pears, _ = moved
    settings = Settings(home=tmp_path, feeds_file=tmp_path / "feeds.yaml", user_agent="test")

    def named() -> set[str]:
        return {id for move in list_moves(objects) for id in (*move.moved, *move.others)}

    assert named() == {first, second, pears}
    for info in objects.list(""):
        body, _ = objects.get(info.key) or (b"", None)
        assert not any(name in body.lower() for name in (b"ravensdale", b"pear", b"landslide"))
    later = NOW + timedelta(days=60)
    assert moves.clean_moves(database, objects, settings, later) == {}
    assert named() == {first, second, pears}
    database.query("DELETE FROM items WHERE id = ?", [pears])
    moves.clean_moves(database, objects, settings, NOW)
    assert named() == {first, second, pears}, "a replay may bring it back"
    moves.clean_moves(database, objects, settings, later)
    assert named() == {first, second}
    moves.forget_moves(objects, "a")
    assert named() == set()


def test_a_broken_object_is_left_aside(
    database: Database, objects: FolderStore, window: Path, moved: tuple[str, ...]
) -> None:
    before = together(database)
    for name in ("0", "9" * 17, "x/y"):
        objects.put(f"{moves.PREFIX}{name}.json", b'{"format":[]', content_type="application/json")
    lose(database)
    decide(database, objects, window)
    assert together(database) == before


def test_what_is_decided_again_has_the_pairs_of_before(tmp_path: Path) -> None:
    """Items of six days, many of one event by two feeds: at least 99 of 100 pairs, and few others."""
    database, objects = migrated(tmp_path / "rss.sqlite"), FolderStore(tmp_path / "objects")
    path = tmp_path / "stories.window"
    rows = sorted(kit.ROWS, key=lambda row: (row["time"], row["id"]))
    feeds = {row["feed"]: f"feed-{number}" for number, row in enumerate(rows)}
    add_feeds(database, *feeds.values())
    for row in rows:
        database.query("UPDATE feeds SET language = ? WHERE id = ?", [row["language"], feeds[row["feed"]]])
    for number, row in enumerate(rows):
        text = (row["title"], f"<p>{row['text']}</p>")
        arrive(database, feeds[row["feed"]], row["id"], text, minutes=-6 * DAY + number * 50)
        if number % 20 == 19:
            decide(database, objects, path)
    before = together(database)
    assert len(before) > 30
    lose(database)
    assert together(database) == set()
    decide(database, objects, path)
    assert len(before & together(database)) >= 0.99 * len(before | together(database))
    database.close()


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 300), marks=pytest.mark.soak)], ids=len)
def test_after_any_moves_a_lost_database_comes_back_as_it_was(tmp_path: Path, seeds: range) -> None:
    """Copies and reports of six events come in over days, between moves that are taken back at times."""
    seen, found, lost = Counter[str](), set[frozenset[str]](), set[frozenset[str]]()
    for seed in seeds:
        chance, home = random.Random(seed), tmp_path / str(seed)
        stores = migrated(home / "rss.sqlite"), FolderStore(home / "objects"), home / "stories.window"
        database, objects, _ = stores
        add_feeds(database, *FEEDS)
        ids: list[str] = []
        for hour in range(-100, 0):
            what = chance.random()
            if what < 0.35:
                town = f"Town{chance.choice('ABCDEF')}ville"
                title, text = chance.choice((LANDSLIDE, AGAIN))
                report = title.replace("Ravensdale", town), text.replace("Ravensdale", town)
                ids.append(arrive(database, chance.choice(FEEDS), f"g{hour}", report, minutes=hour * 60))
                decide(*stores)
            elif what < 0.5 and len(ids) > 2:
                seen["split"] += moves.split(*stores, chance.choice(ids))
            elif what < 0.6 and len(ids) > 2:
                seen["join"] += moves.join(*stores, *chance.sample(ids, 2))
            elif what < 0.64 and seed % 2:
                seen["undo"] += moves.undo(*stores) is not None
            if [move for move in list_moves(objects) if move.number > int(NOW.timestamp() - 60) * 1_000_000]:
                date_back(database, objects, minutes=-hour * 60 - 30)
        before = together(database)
        lose(database)
        decide(*stores)
        if seed % 2:
            # What was decided beside a move that is taken back may be decided otherwise without it.
            found.update(before & together(database))
            lost.update(before ^ together(database))
        else:
            assert together(database) == before, seed
        database.close()
    assert len(lost) <= 0.05 * len(found)
    assert min(seen[act] for act in ACTS) >= len(seeds), seen


ACTS: dict[str, Callable[[Database, Any, Path, tuple[str, str, str]], object]] = {
    "split": lambda database, objects, path, ids: moves.split(database, objects, path, ids[1]),
    "join": lambda database, objects, path, ids: moves.join(database, objects, path, ids[0], ids[2]),
    "undo": lambda database, objects, path, _: moves.undo(database, objects, path),
}


class Counted:
    """A store that ends its process before the write of a number; reads count, too."""

    def __init__(self, real: Any, step: Callable[[], None]) -> None:
        self._real = real
        self._step = step

    def __getattr__(self, name: str) -> Any:
        if name in ("batch", "put", "delete_many"):
            self._step()
        return getattr(self._real, name)


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("act", [pytest.param("split", marks=pytest.mark.soak), "join", "undo"])
def test_a_move_that_is_killed_anywhere_is_completed_or_never_was(tmp_path: Path, act: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    database, objects = migrated(home / "rss.sqlite"), FolderStore(home / "objects")
    add_feeds(database, "a", "b", "c")
    texts = zip("abc", (LANDSLIDE, AGAIN, OTHER), strict=True)
    first, second, third = (arrive(database, feed, "1", text, minutes=-9) for feed, text in texts)
    decide(database, objects, home / "stories.window")
    if act == "undo":
        moves.join(database, objects, home / "stories.window", second, third)
    before, names = together(database), {move.key for move in list_moves(objects)}
    entries = [*sql.entries(database, [first, second, third]).values()]
    database.close()
    outcomes = []
    for step in range(1, 60):
        tried = tmp_path / str(step)
        shutil.copytree(home, tried)
        is_killed = killed(tried, act, (first, second, third), step)
        database, objects = SqliteDatabase(tried / "rss.sqlite"), FolderStore(tried / "objects")
        path = tried / "stories.window"
        # Its lease runs out.
        ends = sql.ends(database)
        database.batch([sql.take(ends.stored, replace(ends.writer, until="2000-01-01T00:00:00Z"))])
        decide(database, objects, path)
        ends = sql.ends(database)
        is_changed = together(database) != before
        assert ends.writer.moving == 0
        assert ({move.key for move in list_moves(objects)} != names) == is_changed, step
        arrive(database, "c", "2", ("Late news", "<p>Nothing to see, and nobody to see it.</p>"), minutes=-1)
        decide(database, objects, path)
        found = load(path, database=f"{ends.identity} {ends.writer.moves}".rstrip())
        assert found is not None
        grouped: dict[str, set[str]] = {}
        for each in entries:
            grouped.setdefault(found.decide(each).story, set()).add(each.id)
        assert {frozenset(each) for each in grouped.values() if len(each) > 1} == together(database), step
        database.close()
        outcomes.append(is_changed)
        if not is_killed:
            break
    assert outcomes == sorted(outcomes)
    assert outcomes.count(False) > 2
    assert outcomes.count(True) > 3


def killed(home: Path, act: str, ids: tuple[str, str, str], step: int) -> bool:
    """Do it in a child that is killed before its write of that number; False where it came to its end."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    with contextlib.suppress(BaseException):
        sys.addaudithook(
            lambda event, args: count() if event == "os.rename" and "window" in args[1] else None
        )
        database, objects = SqliteDatabase(home / "rss.sqlite"), FolderStore(home / "objects")
        ACTS[act](Counted(database, count), Counted(objects, count), home / "stories.window", ids)
        os._exit(0)
    os._exit(1)


def test_a_move_is_read_as_it_was_written() -> None:
    move = Move(number=7, story="a~", is_apart=True, moved={"a": ("feed", "b")}, others={"b": "other"})
    assert Move.read(move.body()) == move
    assert move.key == "state/stories/00000000000000007.json"
