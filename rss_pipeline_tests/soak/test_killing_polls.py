"""Two processes that poll the same feeds are killed and stopped, again and again: nothing is lost or doubled.

Without Dagster, so that many kills fit into some minutes. `test_killing.py` has all of `rss-pipeline up`.
"""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from rss_pipeline_tests.soak.polling import real_pipeline
from rss_pipeline_tests.soak.test_killing import Publishers, is_alive, parsers
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.waiting import soon

KILLS = int(os.environ.get("RSS_SOAK_KILLS") or 100)
LEASE_SECONDS = 3
KINDS = ("poll", "parser", "stopped poll", "stopped parser")


class Pollers:
    """Two polling processes; one that was killed is started again."""

    def __init__(self, home: Path) -> None:
        self._command = [sys.executable, "-m", "rss_pipeline_tests.soak.polling", str(home)]
        self._log = (home / "polls.log").open("ab")
        self._running: list[subprocess.Popen[bytes]] = []

    def ensure(self) -> list[psutil.Process]:
        """Both, started where they are not running."""
        self._running = [each for each in self._running if each.poll() is None]
        while len(self._running) < 2:
            command = [*self._command, str(LEASE_SECONDS)]
            self._running.append(subprocess.Popen(command, stdout=self._log, stderr=self._log))
        return [psutil.Process(each.pid) for each in self._running]

    def end(self) -> None:
        for process in self._running:
            with suppress(psutil.NoSuchProcess):
                for child in psutil.Process(process.pid).children(recursive=True):
                    with suppress(psutil.NoSuchProcess):
                        child.kill()
            process.kill()
            process.wait()
        self._log.close()


@contextmanager
def polling(home: Path) -> Iterator[Pollers]:
    pollers = Pollers(home)
    try:
        yield pollers
    finally:
        pollers.end()


def strike(pollers: Pollers, kind: str, chance: random.Random) -> bool:
    """Kill or stop one process of this kind; False where there is none just now."""
    poll = chance.choice(pollers.ensure())
    found = parsers(poll) if "parser" in kind else [poll]
    if not found:
        return False
    with suppress(psutil.NoSuchProcess):
        if kind.startswith("stopped"):
            found[0].suspend()
            time.sleep(LEASE_SECONDS + 1)
            found[0].resume()
        else:
            found[0].kill()
            soon(lambda: not is_alive(found[0]))
    return True


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_polls_that_are_killed_and_stopped_lose_and_double_nothing(
    tmp_path: Path, server: FeedServer
) -> None:
    chance = random.Random(KILLS)
    publishers = Publishers(server, chance)
    publishers.are_cut = True
    publishers.register(tmp_path / "feeds.yaml")
    done: Counter[str] = Counter()
    pipeline = real_pipeline(tmp_path, lease_seconds=LEASE_SECONDS)
    with polling(tmp_path) as pollers:
        while done.total() < KILLS:
            time.sleep(chance.uniform(0, 2))
            kind = chance.choice(KINDS)
            done[kind] += strike(pollers, kind, chance)
    publishers.has_news = False
    soon(lambda: not pipeline.rows("SELECT 1 FROM leases WHERE expires_at > strftime('%Y-%m-%dT%H:%M:%SZ')"))
    # Killed three times while it was visited, a feed is a failure once, without a request.
    for _ in range(2):
        pipeline.poll(all_feeds=True)
    published = sorted((id, guid) for id, guids in publishers.guids.items() for guid in guids)
    stored = [(row["feed_id"], row["guid"]) for row in pipeline.rows("SELECT feed_id, guid FROM items")]
    pipeline_feeds = pipeline.rows("SELECT * FROM feeds")
    pipeline.close()
    assert sorted(stored) == published
    for feed in pipeline_feeds:
        faults = {name: feed[name] for name in ("warning", "cut_hash", "failed_hash", "last_error")}
        assert faults == dict.fromkeys(faults), feed["id"]
        assert (feed["lease_token"], feed["unclosed_claims"]) == (None, 0), feed["id"]
    assert publishers.cut > 0
    assert publishers.overlaps == []
    figures = f"{len(published)} items, {publishers.cut} cut documents, {len(server.requests)} requests"
    print(dict(done), figures)  # noqa: T201 - the figures of the test, with -s
