"""A window goes on after a restart as if there had been none, and a file that cannot be used is none."""

from pathlib import Path

import pytest

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import load, save
from rss_pipeline_tests.features.stories import kit

HERE = "this database"


def saved(path: Path, entries: list[Entry]) -> Window:
    window = Window()
    for entry in entries:
        window.decide(entry)
    save(window, path, database=HERE)
    return window


def loaded(path: Path) -> Window:
    window = load(path, database=HERE)
    assert window is not None
    return window


def test_a_window_that_was_saved_and_loaded_decides_as_one_that_was_not(tmp_path: Path) -> None:
    entries = kit.in_order()
    whole = Window()
    wanted = [whole.decide(each) for each in entries]
    got = []
    window = Window()
    for at, entry in enumerate(entries):
        if at % 29 == 0:
            save(window, tmp_path / "window", database=HERE)
            window = loaded(tmp_path / "window")
        got.append(window.decide(entry))
    assert got == wanted
    assert len(window) == len(entries)


def test_items_that_are_restored_are_where_they_were_and_decide_what_comes(tmp_path: Path) -> None:
    entries = kit.in_order()
    window = Window()
    wanted = [window.decide(each) for each in entries]
    again = Window()
    for decision, entry in zip(wanted[:90], entries[:90], strict=True):
        again.restore(entry, decision.story if decision.joins else None)
    assert [again.decide(each) for each in entries[90:]] == wanted[90:]


@pytest.mark.parametrize("length", [0, 5, 40, 400, 4_000, -1])
def test_a_torn_file_is_no_window(tmp_path: Path, length: int) -> None:
    path = tmp_path / "window"
    saved(path, kit.in_order()[:40])
    path.write_bytes(path.read_bytes()[:length])
    assert load(path, database=HERE) is None


@pytest.mark.parametrize("place", [0.0, 0.002, 0.01, 0.3, 0.6, 0.999])
def test_a_damaged_byte_is_found(tmp_path: Path, place: float) -> None:
    path = tmp_path / "window"
    saved(path, kit.in_order()[:40])
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 0xFF
    path.write_bytes(data)
    assert load(path, database=HERE) is None


def test_a_file_that_is_lost_or_of_another_database_version_or_kind_is_no_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "window"
    assert load(path, database=HERE) is None
    saved(path, kit.in_order()[:4])
    assert load(path, database="another") is None
    with monkeypatch.context() as patched:
        patched.setattr("rss_pipeline.features.stories.window_file.VERSION", 10_000)
        assert load(path, database=HERE) is None
    assert load(path, database=HERE) is not None
    path.write_bytes(b"SQLite format 3\0" * 100)
    assert load(path, database=HERE) is None


def test_a_process_that_is_killed_while_it_writes_leaves_the_last_window(tmp_path: Path) -> None:
    path = tmp_path / "window"
    saved(path, kit.in_order()[:7])
    path.with_name("window.new").write_bytes(path.read_bytes()[:900])
    assert len(loaded(path)) == 7
    saved(path, kit.in_order()[:9])
    assert len(loaded(path)) == 9


def test_a_file_that_another_process_cut_short_harms_no_open_window(tmp_path: Path) -> None:
    path = tmp_path / "window"
    entries = kit.in_order()
    window = saved(path, entries[:80])
    window = loaded(path)
    with path.open("r+b") as file:
        file.truncate(100)
    for entry in entries[80:]:
        window.decide(entry)
    assert len(window) == len(entries)
