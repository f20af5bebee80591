"""Files that a killed process leaves go with the next start."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rss_pipeline.held_folders import SOCKETS, HeldFolder, sweep
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.prepared import program

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@contextmanager
def holding(pipeline: Pipeline) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """A process with a session open, and its folders: the spool's and that of the sockets."""
    command = [*program("rss_pipeline_tests.pipeline.session.holding"), str(pipeline.settings.home)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        assert process.stdout is not None
        folders = [Path(text) for text in process.stdout.readline().split()]
        assert [folder.is_dir() for folder in folders] == [True, True]
        assert any(each.is_socket() for each in folders[1].iterdir())
        try:
            yield process, folders
        finally:
            process.kill()


def kill(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
def test_the_next_start_removes_what_a_killed_process_left_and_nothing_of_a_living_one(
    pipeline: Pipeline,
) -> None:
    with holding(pipeline) as (killed, left), holding(pipeline) as (_, theirs):
        kill(killed)
        assert [folder.is_dir() for folder in left] == [True, True]
        with pipeline.session() as session:
            assert session.spool.folder.is_dir()
            assert [folder.exists() for folder in left] == [False, False]
        assert [folder.is_dir() for folder in theirs] == [True, True]
        assert (theirs[0] / "body").read_bytes() == b"<rss/>"


@pytest.mark.slow
def test_a_process_that_ends_by_itself_leaves_nothing(pipeline: Pipeline) -> None:
    with holding(pipeline) as (process, folders):
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait() == 0
        assert [folder.exists() for folder in folders] == [False, False]


def test_a_folder_without_a_lock_is_left_alone_until_it_is_old(tmp_path: Path) -> None:
    """A file of an older version, or of a process that has just made it."""
    folder = tmp_path / "12345678-abc"
    folder.mkdir()
    (folder / "body").touch()
    os.utime(folder, (1_000_000_000, 1_000_000_000))
    made = datetime.fromtimestamp(1_000_000_000, UTC)
    assert sweep(tmp_path, before=made) == 0
    assert sweep(tmp_path, before=made + timedelta(seconds=1)) == 1
    assert list(tmp_path.iterdir()) == []


def test_files_links_and_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    root = tmp_path / "root"
    held = HeldFolder(root, prefix=SOCKETS)
    (root / f"{SOCKETS}file").touch()
    (root / f"{SOCKETS}link").symlink_to(elsewhere)
    (root / "another").mkdir()
    later = datetime.now(UTC) + timedelta(days=400)
    assert sweep(root, prefix=SOCKETS, before=later) == 0
    assert len(list(root.iterdir())) == 4
    held.remove()
    assert not held.path.exists()


def test_a_sweep_without_a_folder_is_none(tmp_path: Path) -> None:
    assert sweep(tmp_path / "none", before=LONG_AGO) == 0
