"""XPath in a child process: limits of time and memory, crashes, and what the child leaves behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rss_pipeline.collector.models.item import ItemTree
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.features.streams.xpath import SelectableItems, selected_items
from rss_pipeline_tests.collector.parse.documents import NOW, URL, rss
from rss_pipeline_tests.support.waiting import soon

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

SLOW = "//*[count(//*[count(//*)>1])>1]"


def tree(items: int) -> ItemTree:
    each = "".join(f"<item><guid>{n}</guid><category>{n % 2}</category></item>" for n in range(items))
    found = parse_feed(rss(each).encode(), url=URL, now=NOW, keep_tree=True).tree
    assert found is not None
    return found


@pytest.mark.slow
def test_a_slow_selector_fails_alone_with_those_after_it() -> None:
    before = os.times()
    found = selected_items(
        tree(500),
        {"odd": "//item[category=1]", "bad": "count(//item)", "slow": SLOW, "all": "//item"},
        feed_id="idol",
        limit=0.3,
    )
    after = os.times()
    assert found.items == {"odd": list(range(1, 500, 2))}
    assert found.errors == {
        "bad": "The XPath of idol/bad gives a number and no elements;"
        " write a path such as //item[enclosure].",
        "slow": found.errors["slow"],
        "all": found.errors["all"],
    }
    assert found.errors["slow"].startswith("The XPath of idol/slow took longer than 0.3 s")
    assert found.errors["all"].startswith(
        "The XPath of idol/all was not evaluated: the XPath of idol/slow took"
    )
    assert after.children_user - before.children_user < 1.5, "the copy may take as much again"


@pytest.mark.slow
def test_selectors_that_are_slow_together_get_a_warning() -> None:
    slow = {f"s{n}": "//item[count(preceding-sibling::item) mod 2 = 0]" for n in range(500)}
    found = selected_items(tree(1_000), slow, feed_id="idol", limit=0.5)
    assert 0 < len(found.items) < 500
    assert list(found.items) == list(slow)[: len(found.items)]
    assert "were used by the selectors before" in found.errors[f"s{len(found.items)}"]


def test_a_tree_that_takes_too_long_to_copy_fails_them_all() -> None:
    found = selected_items(tree(2_000), {"a": "//item", "b": "//item"}, feed_id="idol", limit=0.001)
    assert found.items == {}
    assert found.errors["b"] == (
        "The XPath of idol/b was not evaluated: the copy of the document took longer than 0.001 s."
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "ended its process (exit code -11)"),
        (lambda: os.kill(os.getpid(), signal.SIGSTOP), "took longer than 0.2 s"),
        (lambda: _raise(MemoryError()), "needed more memory"),
        (lambda: _raise(ValueError("defect")), "ended its process (exit code 1)"),
    ],
)
def test_a_child_that_ends_or_stops_costs_its_streams_only(
    end: Callable[[], None], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    select = SelectableItems.select
    monkeypatch.setattr(
        SelectableItems,
        "select",
        lambda self, xpath: select(self, xpath) if xpath != "end" else end(),
    )
    found = selected_items(tree(2), {"a": "//item", "b": "end", "c": "//item"}, feed_id="idol", limit=0.2)
    assert found.items == {"a": [0, 1]}
    assert words in found.errors["b"]
    assert "not evaluated: the XPath of idol/b" in found.errors["c"]


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.slow
def test_the_child_runs_none_of_the_parent_s_ends_and_leaves_nothing(tmp_path: Path) -> None:
    """Neither exit handlers nor unwritten buffers, neither open files nor a process."""
    script = f"""
import atexit, os
from rss_pipeline_tests.features.streams.test_forked import tree, selected_items
atexit.register(lambda: os.write(1, b"end "))
file = open({str(tmp_path / "file")!r}, "w")
file.write("once ")
print("buffered", end=" ")
for _ in range(2):
    found = selected_items(tree(2), {{"a": "//item"}}, feed_id="f").items["a"]
    print(found == [0, 1], len(os.listdir("/proc/self/fd")), end=" ")
"""
    before = psutil.Process().children()
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    buffered, first, files, second, files_after, end, _ = run.stdout.split(" ")
    assert (buffered, first, second, end) == ("buffered", "True", "True", "end"), run.stdout
    assert files == files_after
    assert (tmp_path / "file").read_text() == "once "
    assert psutil.Process().children() == before


@pytest.mark.slow
def test_a_killed_worker_takes_the_child_with_it() -> None:
    """The kernel counts the child's processor time: it ends although nothing waits for it any more."""
    script = (
        "from rss_pipeline_tests.features.streams.test_forked import SLOW, selected_items, tree;"
        "selected_items(tree(500), {'slow': SLOW}, feed_id='f', limit=0.5)"
    )
    with subprocess.Popen([sys.executable, "-c", script]) as worker:
        soon(lambda: bool(psutil.Process(worker.pid).children()))
        [child] = psutil.Process(worker.pid).children()
        worker.kill()
        worker.wait()
        psutil.wait_procs([child], timeout=60)
        assert not child.is_running()


def test_no_process_left_on_the_machine_is_an_error_of_the_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refused)
    found = selected_items(tree(2), {"a": "//item"}, feed_id="idol")
    assert found.items == {}
    assert "no process could be started" in found.errors["a"]
    assert "Resource temporarily unavailable" in found.errors["a"]
