"""A full disk, as the commands say it: first, where, and how much is free.

/proc is a file system without any room, and /dev/full a file that takes nothing.
"""

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline_tests.cli.program import PROGRAM, environment
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.waiting import PATIENCE


@pytest.mark.parametrize("command", ["poll", "up"])
def test_no_run_is_started_on_a_full_disk(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        main, [command], env={"RSS_PIPELINE_HOME": "/proc/nowhere", "RSS_PORT": "3979"}
    )
    assert (result.exit_code, result.stderr.strip()) == (
        1,
        "the disk is full: make room below /proc/nowhere (0 bytes are free)",
    )


def test_an_export_to_a_full_disk_says_so_first(collected: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = collected.settings.home
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, ["export", "-o", "/dev/full"], env=environment(folder))
    assert (result.exit_code, result.stderr.startswith("the disk is full: make room below /dev (")) == (
        1,
        True,
    )


def test_an_output_that_takes_nothing_is_one_sentence(collected: Pipeline) -> None:
    folder = collected.settings.home
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [PROGRAM, "items", "news"],
            env=environment(folder),
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
            timeout=PATIENCE,
        )
    assert done.returncode == 1
    assert done.stderr.decode().startswith("the disk is full. It was noticed by OSError: ")
    assert b"Traceback" not in done.stderr
