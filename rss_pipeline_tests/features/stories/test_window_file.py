"""A window goes on after a restart as if there had been none, and a file that cannot be used is none."""

import resource
from pathlib import Path

import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.features.stories import records
from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.segments import NEWEST
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
        again.restore(entry, decision.story if decision.evidence else None)
    assert [again.decide(each) for each in entries[90:]] == wanted[90:]


def test_a_window_for_which_there_is_no_room_takes_none_and_the_one_before_stays(tmp_path: Path) -> None:
    entries = kit.in_order()
    path = tmp_path / "window"
    window = saved(path, entries[:40])
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    largest = max(map(len, before.values()))
    decisions = [window.decide(each) for each in entries[40:]]
    # As where the disk is full in the middle of a file.
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, hard))
    try:
        with pytest.raises(DatabaseUnavailable, match=f"{path} cannot be written: "):
            save(window, path, database=HERE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    save(window, path, database=HERE)
    assert len(loaded(path)) == 40 + len(decisions)


def test_what_could_not_be_saved_is_whole_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.segments.NEWEST", 40)
    entries = kit.in_order()
    window = Window()
    for each in entries:
        window.decide(each)
    path, beside = tmp_path / "window", tmp_path / "window.new"
    # The files of its segments are written, and this one cannot be.
    beside.mkdir()
    with pytest.raises(DatabaseUnavailable):
        save(window, path, database=HERE)
    beside.rmdir()
    save(window, path, database=HERE)
    again = loaded(path)
    numbers = range(window.items.first, window.items.first + len(window))
    assert [*map(again.items.record, numbers)] == [*map(window.items.record, numbers)] != [b""] * len(window)


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
    damage(path, place)
    assert load(path, database=HERE) is None


def damage(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 0xFF
    path.write_bytes(data)


def files(path: Path) -> list[Path]:
    """The other files of a window."""
    return sorted(path.parent.glob(f"{path.name}.*"))


def others(path: Path, window: Window) -> dict[str, Path]:
    """The file of its first segment, if it has one, and that of its counts."""
    names = [("counts", window.counts[0]), *(("segment", each.name) for each in window.items.segments[:1])]
    return {kind: path.with_name(f"{path.name}.{name}") for kind, name in names}


@pytest.mark.parametrize("length", [0, 40, 3_000, -1, None])
@pytest.mark.parametrize("name", ["segment", "counts"])
def test_another_file_that_is_torn_or_lost_is_no_window(
    tmp_path: Path, name: str, length: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.segments.NEWEST", 20)
    path = tmp_path / "window"
    file = others(path, saved(path, kit.in_order()[:40]))[name]
    if length is None:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:length])
    assert load(path, database=HERE) is None


@pytest.mark.parametrize(("name", "least"), [("segment", 5), ("counts", 30)])
def test_damage_in_another_file_is_found_or_harms_nothing(
    tmp_path: Path, name: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.segments.NEWEST", 40)
    path = tmp_path / "window"
    entries = kit.in_order()
    file = others(path, saved(path, entries[:80]))[name]
    whole, found = file.read_bytes(), 0
    for place in range(1, 100, 3):
        file.write_bytes(whole)
        damage(file, place / 100)
        window = load(path, database=HERE)
        found += window is None
        for entry in entries[80:] if window else ():
            window.decide(entry)
    # Columns and counts are read at once, records when they are needed.
    assert found > least


def test_a_call_writes_what_came_and_not_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "window"
    window = Window()
    for number in range(3 * NEWEST - 5):
        window.decide(Entry(id=f"{number}", feed=f"{number}", title=f"Item {number}", text="", seen=number))
    save(window, path, database=HERE)
    before = files(path)
    window = loaded(path)
    window.decide(Entry(id="new", feed="new", title="Another item", text="", seen=900))
    save(window, path, database=HERE)
    assert files(path) == before
    window = loaded(path)
    for number in range(8):
        window.decide(Entry(id=f"new {number}", feed="new", title=f"A new item {number}", text="", seen=900))
    save(window, path, database=HERE)
    assert len(set(files(path)) - set(before)) == 1
    window.forget(1_000)
    save(window, path, database=HERE)
    assert files(path) == [others(path, window)["counts"]]
    assert len(loaded(path)) == 0


def test_what_is_counted_after_the_counts_were_written_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.frequencies._MOST_CHANGES", 2_000)
    path = tmp_path / "window"
    whole, window = Window(), Window()
    for number in range(400):
        title, text = f"Item {number} of the harbour", f"The harbour has {number} ships. It is open today."
        entry = Entry(id=f"{number}", feed=f"{number % 3}", title=title, text=text, seen=number)
        assert window.decide(entry) == whole.decide(entry)
        if number % 90 == 0:
            save(window, path, database=HERE)
            window = loaded(path)
    # More often than a byte holds.
    words = ["harbour", "ships", "399"]
    assert window.frequencies.weights("latin", words) == whole.frequencies.weights("latin", words)
    assert window.boilerplate.added == whole.boilerplate.added > 400


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
    for name in ("window.new", "window.0123456789abcdef"):
        path.with_name(name).write_bytes(path.read_bytes()[:900])
    assert len(loaded(path)) == 7
    saved(path, kit.in_order()[:9])
    assert len(loaded(path)) == 9
    assert len(files(path)) == 1


def test_a_file_that_another_process_cut_short_harms_no_open_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rss_pipeline.features.stories.segments.NEWEST", 40)
    path = tmp_path / "window"
    entries = kit.in_order()
    saved(path, entries[:80])
    window = loaded(path)
    for each in files(path):
        with each.open("r+b") as file:
            file.truncate(20_000)
    for entry in entries[80:]:
        window.decide(entry)
    assert len(window) == len(entries)


def test_a_record_that_is_cut_short_is_less_of_an_item() -> None:
    entry = kit.in_order()[0]
    for sample in (b"", entry.text.encode()):
        whole = records.packed(entry, (), [1, 2, 3], [30, 20, 10], sample)
        assert records.entry(records.text(whole, sample), entry.time or 0.0)[0].text == entry.text
        for length in range(len(whole)):
            cut = whole[:length]
            terms, weights = records.vector(cut)
            assert len(terms) == len(weights)
            assert records.entry(records.text(cut, sample), 0.0)[0].text in entry.text
