"""A running `rss-pipeline up` ends as always after its files were deleted."""

import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rss_pipeline_tests.cli.up.test_supervisor import FAMILY, KEEPER
from rss_pipeline_tests.support.up import members, started
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT, soon, times_as_long


def test_the_supervisor_ends_all_where_nothing_can_be_imported_any_more(tmp_path: Path) -> None:
    program = KEEPER.replace("command =", "sys.path.clear(); sys.path_importer_cache.clear()\ncommand =")
    file = tmp_path / "pids"
    with subprocess.Popen(
        [sys.executable, "-c", program, FAMILY, str(file)], stderr=subprocess.PIPE, start_new_session=True
    ) as keeper:
        # The child of the command has the session, too.
        soon(lambda: file.exists() and len(members(keeper.pid)) == 3)
        keeper.send_signal(signal.SIGTERM)
        _, said = keeper.communicate(timeout=PATIENCE)
    assert (said, keeper.returncode) == (b"", 128 + signal.SIGTERM)
    assert members(keeper.pid) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_up_ends_in_time_and_with_a_sentence_when_its_home_was_deleted(tmp_path: Path) -> None:
    """Also where a shell started it in the background, which lets it ignore SIGINT."""
    (tmp_path / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    with ExitStack() as stack:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            up = stack.enter_context(started(tmp_path))
        finally:
            signal.signal(signal.SIGINT, before)
        soon(up.answers)
        # At once: its processes write there.
        up.home.rename(tmp_path / "deleted")
        shutil.rmtree(tmp_path / "deleted", ignore_errors=True)
        began = time.monotonic()
        up.process.send_signal(signal.SIGTERM)
        assert up.process.wait(PATIENCE) == 0
        assert time.monotonic() - began < PROMPT * times_as_long()
        assert members(up.process.pid) == []
    said = (tmp_path / "up.log").read_text("utf-8")
    assert said.count("It could not be recorded which runs were stopped: ") == 1
    assert "the process rss-cancel failed" not in said
