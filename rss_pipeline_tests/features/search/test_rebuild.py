"""The index that serves stays current while another one is built."""

from collections.abc import Callable
from itertools import chain, repeat

import pytest

from rss_pipeline.features.search import index_build as build
from rss_pipeline.features.search import sql, writing
from rss_pipeline.features.search.index_build import bring_up_to_date
from rss_pipeline.features.search.index_file import open_to_write
from rss_pipeline.progress import NoProgress
from rss_pipeline_tests.features.search.conftest import Library
from rss_pipeline_tests.features.search.test_build import repair
from rss_pipeline_tests.storage.values import NOW


class During(NoProgress):
    """Does the next of some things after each transaction of items, as long as there are two generations."""

    def __init__(self, library: Library, *things: Callable[[], object]) -> None:
        self._library = library
        self._things = iter(things)

    def advance(self, step: str, by: int = 1) -> None:
        if is_building(self._library):
            next(self._things, lambda: None)()


def is_building(library: Library) -> bool:
    return len(writing.generations(library.file)) == 2


@pytest.fixture(autouse=True)
def one_item_in_a_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "PAGE_ITEMS", 1)
    monkeypatch.setattr(build, "TRANSACTION_BYTES", 1)


@pytest.fixture
def rebuilt(library: Library) -> Library:
    """Five items, of which an index is to be built anew."""
    for guid in "12345":
        library.arrive("news", guid, "word old")
    library.index()
    writing.rebuild(library.file)
    return library


def test_items_that_come_in_during_a_rebuild_are_found_before_it_ends(rebuilt: Library) -> None:
    found: list[list[str]] = []
    during = During(
        rebuilt,
        lambda: rebuilt.arrive("news", "6", "word late"),
        lambda: found.append(rebuilt.found("late")),
        lambda: rebuilt.arrive("blog", "7", "word late"),
        lambda: found.append(rebuilt.found("late")),
    )
    assert bring_up_to_date(rebuilt.file, rebuilt.database, now=NOW, progress=during).rebuilt
    assert found == [["6"], ["7", "6"]]
    assert not is_building(rebuilt)
    assert rebuilt.found("word") == list("7654321")
    assert rebuilt.file.rows("PRAGMA freelist_count") == [(0,)], "the room of the old one is the disk's again"


def test_items_that_are_rewritten_during_a_rebuild_are_found_before_it_ends(rebuilt: Library) -> None:
    found: list[tuple[list[str], list[str]]] = []

    def rewrite() -> None:
        # Two are written, the document of the third may be made already, and the others come later.
        for guid in "12345":
            repair(rebuilt, "news", guid, "word new")

    during = During(
        rebuilt,
        lambda: None,
        rewrite,
        lambda: found.append((rebuilt.found("new"), rebuilt.found("old"))),
    )
    assert bring_up_to_date(rebuilt.file, rebuilt.database, now=NOW, progress=during).rebuilt
    assert found == [(list("54321"), [])]
    assert not is_building(rebuilt)
    assert (rebuilt.found("new"), rebuilt.found("old")) == (list("54321"), [])


def test_an_item_that_is_rewritten_when_its_document_is_made_is_found_by_its_new_text(
    rebuilt: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = build._document
    rewritten: list[int] = []

    def made(item: sql.IndexSource) -> writing.IndexedItem:
        document = original(item)
        if is_building(rebuilt) and "Title of 4" in item.title and not rewritten:
            rewritten.append(item.arrived)
            repair(rebuilt, "news", "4", "word new")
        return document

    monkeypatch.setattr(build, "_document", made)
    assert rebuilt.index().rebuilt
    assert rewritten
    assert (rebuilt.found("new"), rebuilt.found("old")) == (["4"], list("5321"))


def test_what_was_found_is_found_also_where_a_rebuild_is_ended_at_every_step(rebuilt: Library) -> None:
    everything = list("54321")
    found = rebuilt.found("word")
    steps = 0
    while is_building(rebuilt):
        steps += 1
        rebuilt.arrive("news", f"new{steps}", "word old")
        repair(rebuilt, "news", everything[0], f"word text{steps}", minutes=steps)
        everything.insert(0, f"new{steps}")
        is_over = chain([False] * steps, repeat(True)).__next__
        bring_up_to_date(rebuilt.file, rebuilt.database, now=NOW, is_over=is_over)
        before, found = found, rebuilt.found("word")
        assert found[-len(before) :] == before
    assert steps > 3
    rebuilt.index()
    assert rebuilt.found("word") == everything
    assert rebuilt.found("old") == [everything[0], *"4321"]


def test_another_process_may_end_a_rebuild(rebuilt: Library) -> None:
    def other() -> None:
        with open_to_write(rebuilt.file.path) as file:
            assert bring_up_to_date(file, rebuilt.database, now=NOW).rebuilt

    during = During(rebuilt, lambda: rebuilt.arrive("news", "6", "word"), lambda: None, other)
    done = bring_up_to_date(rebuilt.file, rebuilt.database, now=NOW, progress=during)
    assert not done.rebuilt
    assert not is_building(rebuilt)
    assert rebuilt.found("word") == list("654321")
