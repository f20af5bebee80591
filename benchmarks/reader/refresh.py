"""The time from a click on "refresh" to stored items: `python -m benchmarks.reader.refresh [--clicks 30]`.

`rss-pipeline up` as a person has it, on loopback with the embedded database. One feed after the other, each
on a host of its own, gets a new item; then `POST /api/feeds/{id}/refresh` is sent, and the task is read until
it is done. The time ends there, with the item in the feed's list. Between two clicks some seconds pass, so
that each finds the installation idle. It is not in `make bench`: the goal, 8 s at the 95th percentile, is for
a machine with nothing else to do. The processor time is that of all processes of `up` meanwhile, which a busy
machine changes less.
"""

import argparse
import json
import os
import platform
import random
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.run import Verdict
from rss_pipeline.reader.accounts.users import change_password
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, members, started
from rss_pipeline_tests.support.waiting import soon

GOAL_SECONDS = 8
_USER, _PASSWORD = f"{1:032x}", "a password of the benchmark"
"""The id of the user, and also the name."""
_ASK_EVERY_SECONDS = 0.05
_MOST_SECONDS = 120.0


class Reader:
    """The JSON API of a running installation, with a session of its user."""

    def __init__(self, up: Up) -> None:
        self._url = f"http://127.0.0.1:{up.reader_port}/api/"
        self._headers = {"Content-Type": "application/json"}
        # A proxy of the environment has no business on loopback.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        login = self.call("POST", "auth/login", {"name": _USER, "password": _PASSWORD})
        self._headers["Authorization"] = f"Bearer {login['token']}"

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The answer to a request."""
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        with self._opener.open(request, timeout=_MOST_SECONDS) as answer:
            return json.load(answer)

    def seconds_to_refresh(self, feed: str, *, title: str) -> float:
        """The time from the click until the item of this title, the only new one, is in the feed's list."""
        clicked = time.perf_counter()
        task = self.call("POST", f"feeds/{feed}/refresh")["task_id"]
        while (found := self.call("GET", f"tasks/{task}"))["state"] != "done":
            if time.perf_counter() - clicked > _MOST_SECONDS:
                raise SystemExit(f"{feed}: still {found['state']} after {_MOST_SECONDS:g} s")
            time.sleep(_ASK_EVERY_SECONDS)
        [newest] = self.call("GET", f"feeds/{feed}/items?limit=1")["items"]
        took = time.perf_counter() - clicked
        if found["result"]["items_new"] != 1 or newest["title"] != title:
            raise SystemExit(f"{feed}: {found['result']}, and the newest item is {newest['title']!r}")
        return took


def _host(number: int) -> str:
    return f"127.0.1.{number + 2}"


def _registered(folder: Path, server: FeedServer, clicks: int) -> list[str]:
    """The ids of the feeds, with an entry each in feeds.yaml. By themselves they are due once in a day."""
    ids = [f"click-{number}" for number in range(clicks)]
    entries = [
        {
            "url": server.route(_host(number), "/feed", Answer(body=rss("first"))),
            "id": id,
            "interval": "24h",
            "allow_private": True,
        }
        for number, id in enumerate(ids)
    ]
    (folder / "feeds.yaml").write_text(json.dumps({"feeds": entries}), "utf-8")
    return ids


def _cpu(up: Up) -> float:
    """Seconds of all processes, with those that have ended."""
    found = 0.0
    for process in members(up.process.pid):
        with suppress(psutil.NoSuchProcess):
            found += sum(process.cpu_times()[:4])
    return found


def _clicks(
    up: Up, server: FeedServer, feeds: Sequence[str], *, most_pause: float
) -> Iterator[tuple[float, float]]:
    """Seconds and processor time of each click."""
    soon(up.answers)
    soon(lambda: len(up.rows("SELECT id FROM items")) == len(feeds))
    with closing(SqliteDatabase(up.home / "rss.sqlite")) as database:
        subscribe(database, _USER, *feeds)
        change_password(database, name=_USER, password=_PASSWORD, revoke_apps=False)
    soon(lambda: "The reader is at" in Path(up.log.name).read_text("utf-8"))
    reader, chance = Reader(up), random.Random(15)
    # The first poll ends, and the processes have begun all that they begin at the start.
    time.sleep(2 * most_pause)
    for number, feed in enumerate(feeds):
        time.sleep(chance.uniform(most_pause / 2, most_pause))
        server.route(_host(number), "/feed", Answer(body=rss("first", "second")))
        before = _cpu(up)
        seconds = reader.seconds_to_refresh(feed, title="Title of second")
        yield seconds, _cpu(up) - before


def main() -> None:
    """Measure and print; a missed goal is only said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--clicks", type=int, default=30, help="at most 200")
    parser.add_argument("--most-pause", type=float, default=6.0, help="seconds between two clicks, at most")
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    took, spent = list[float](), list[float]()
    with tempfile.TemporaryDirectory(prefix="rss-bench-") as name, FeedServer() as server:
        feeds = _registered(Path(name), server, arguments.clicks)
        with started(Path(name), RSS_HOST_DELAY_SECONDS="1") as up:
            for seconds, cpu in _clicks(up, server, feeds, most_pause=arguments.most_pause):
                took.append(seconds)
                spent.append(cpu)
                print(f"click {len(took):3}: {seconds:6.2f} s, processor {cpu:6.2f} s", flush=True)
    took.sort()
    p95 = took[min(len(took) - 1, int(len(took) * 0.95))]
    print(
        f"\np50 {statistics.median(took):.2f} s, p95 {p95:.2f} s, slowest {took[-1]:.2f} s,"
        f" processor p50 {statistics.median(spent):.2f} s"
    )
    one = Verdict(name="from the click to stored items, p95 (s)", value=p95, goal=GOAL_SECONDS)
    print(f"{one.name:<48}{one.value:>8.2f}   goal {one.goal:g}: {'met' if one.is_met else 'MISSED'}")
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
