"""A real fleet on this machine, measured: `python -m benchmarks.fleet.run`, some 20 minutes.

Postgres, Redis, `rss-pipeline up --fleet` and workers with homes of their own, each in a network namespace
where this machine allows that, collect feeds of many hosts: first all new, then once more, when all answer
304. The publishers' log decides how politely they were asked; the items that they published are compared
with the rows. `--refreshes 30` measures instead how soon a person's refresh is at the publisher while all
feeds are due. It exits with 1 where a promise is broken. Linux only.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.fleet.machines import DUE, START_SECONDS, Phase, Running, Setting, running
from benchmarks.fleet.namespaces import PUBLISHERS, are_allowed
from benchmarks.fleet.publishers import Plan, feed_id, manners
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS
from rss_pipeline_tests.support.up import PROGRAM, Up
from rss_pipeline_tests.support.waiting import soon

_PASSWORD = "a password of the benchmark"
_FIRST_BYTE_GOAL = 10.0


def broken_promises(run: Running, host_delay: float) -> list[str]:
    """A sentence for each promise that was broken; prints what the log says."""
    asked = run.publishers.asked()
    polite = manners(asked)
    print(
        f"{polite.requests} requests by {', '.join(polite.by)}; of a feed at once {polite.feeds_at_once},"
        f" of a host at once {polite.hosts_at_once}, shortest gap at a host {polite.shortest_gap:.3f} s"
    )
    published: dict[int, set[int]] = defaultdict(set)
    for each in asked:
        if each.version:
            published[each.feed].add(each.version)
    expected = {
        (feed_id(feed), guid)
        for feed, versions in published.items()
        for version in versions
        for guid in run.publishers.guids(feed, version)
    }
    rows = [(str(id), str(guid)) for id, guid in run.machines.rows("SELECT feed_id, guid FROM items")]
    missing, foreign, twice = len(expected - set(rows)), len(set(rows) - expected), len(rows) - len(set(rows))
    print(f"{len(expected)} items published, {len(rows)} rows; missing {missing}, twice {twice}")
    failed = run.machines.rows("SELECT count(*) FROM feeds WHERE last_error IS NOT NULL")[0][0]
    found = {
        "a feed was visited twice at once": polite.feeds_at_once,
        "a host was asked by two at once": polite.hosts_at_once,
        "a host was asked faster than its pace": polite.shortest_gap < host_delay,
        "items are missing": missing,
        "items are there that nobody published": foreign,
        "items are there twice": twice,
        "feeds failed": failed,
    }
    return [sentence for sentence, is_broken in found.items() if is_broken]


def collect(run: Running, *, seconds: float) -> Iterator[Phase]:
    """All feeds, new; then once more, answered 304."""
    yield run.phase("new", seconds=seconds)
    run.all_due()
    yield run.phase("unchanged", seconds=seconds)


def refreshes(run: Running, count: int, *, seconds: float) -> list[float]:
    """Seconds from so many requests of a person to the first byte at the publisher, with all feeds due."""
    feeds = run.publishers.plan.feeds
    run.phase("new", seconds=seconds)
    [up] = run.machines.mains
    api = Reader(up)
    api.add_user()
    run.all_due()
    before = run.seen
    soon(lambda: len(run.publishers.asked(before)) > 20, seconds=START_SECONDS)
    dice = random.Random(1)
    found: list[float] = []
    until = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < until:
        due = run.machines.rows(f"SELECT count(*) FROM feeds WHERE next_fetch_at <= '{DUE}'")[0][0]
        if due < 0.9 * feeds:
            run.all_due()
        feed, began = dice.randrange(min(feeds, MAX_SUBSCRIPTIONS)), time.monotonic()
        task = api.refresh(feed_id(feed))
        soon(lambda task=task: api.is_done(task))
        begins = [each.began for each in run.publishers.asked(before) if each.feed == feed]
        # A visit that was under way serves the request: its first byte came before it.
        found.append(min((began_at - began for began_at in begins if began_at > began), default=0.0))
        busy = run.machines.rows("SELECT count(*) FROM worker_runs")[0][0]
        print(f"  {found[-1]:5.2f} s, {busy} polls at work, {due} feeds due", flush=True)
        time.sleep(dice.uniform(0, 4))
    return found


class Reader:
    """A user of the reader's API."""

    def __init__(self, up: Up) -> None:
        self._up = up
        self._base = f"http://127.0.0.1:{up.reader_port}/api"
        self._token = ""

    def add_user(self) -> None:
        """Add the user, who subscribes to all feeds or the first MAX_SUBSCRIPTIONS of them, and log in."""
        subprocess.run(
            [PROGRAM, "user", "add", "ada", "--password-stdin", "--subscribe"],
            env=self._up.environment,
            input=_PASSWORD.encode(),
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.log_in()

    def log_in(self) -> None:
        self._token = self.ask("/auth/login", {"name": "ada", "password": _PASSWORD})["token"]

    def refresh(self, id: str) -> str:
        """Request a visit; return the task's id."""
        return str(self.ask(f"/feeds/{id}/refresh", {})["task_id"])

    def is_done(self, task: str) -> bool:
        return bool(self.ask(f"/tasks/{task}")["state"] == "done")

    def ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer to a GET, or to a POST of `body`."""
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from error


def _refresh_verdict(found: Sequence[float]) -> list[str]:
    ordered = sorted(found)
    at = ordered[max(0, -(-95 * len(ordered) // 100) - 1)]
    print(
        f"{len(ordered)} refreshes, {ordered.count(0.0)} of feeds that were being visited: first byte after"
        f" {ordered[len(ordered) // 2]:.2f} s at the median, {at:.2f} s at p95 (goal {_FIRST_BYTE_GOAL:g}),"
        f" {ordered[-1]:.2f} s at most"
    )
    return [] if at <= _FIRST_BYTE_GOAL else ["a refresh came too late"]


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that this benchmark has in common with throughput.py."""
    parser.add_argument("--concurrency", type=int, default=5, help="RSS_FETCH_CONCURRENCY")
    parser.add_argument("--batch-size", type=int, default=500, help="RSS_BATCH_SIZE")
    parser.add_argument("--host-delay", type=float, default=1.0, help="RSS_HOST_DELAY_SECONDS")
    parser.add_argument("--sigma", type=float, default=1.0, help="of the logarithm of the response")
    parser.add_argument("--no-namespaces", action="store_true", help="plain processes and loopback only")
    parser.add_argument("--minutes", type=float, default=20.0, help="a phase may take so long")


def begin(given: argparse.Namespace) -> bool:
    """Say what this is measured on, end in order when terminated, and return True for namespaces."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    in_namespaces = not given.no_namespaces and are_allowed()
    print(
        f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()};"
        f" workers in {'network namespaces' if in_namespaces else 'plain processes'}",
        flush=True,
    )
    return in_namespaces


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--feeds", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1, help="at once on each worker")
    parser.add_argument("--shards", type=int, default=6)
    parser.add_argument("--response", type=float, default=0.35, help="median seconds of a response")
    parser.add_argument("--refreshes", type=int, default=0, help="so many of a person, while all are due")
    add_options(parser)
    given = parser.parse_args()
    in_namespaces = begin(given)
    plan = Plan(
        feeds=given.feeds,
        hosts=given.hosts,
        response=given.response,
        sigma=given.sigma,
        network=PUBLISHERS if in_namespaces else "127",
    )
    setting = Setting(
        workers=given.workers,
        runs=given.runs,
        shards=given.shards,
        concurrency=given.concurrency,
        batch_size=given.batch_size,
        host_delay=given.host_delay,
        in_namespaces=in_namespaces,
        reader=given.refreshes > 0,
    )
    print(f"{plan}\n{setting}", flush=True)
    with running(setting, plan) as run:
        if given.refreshes:
            broken = _refresh_verdict(refreshes(run, given.refreshes, seconds=60 * given.minutes))
        else:
            for phase in collect(run, seconds=60 * given.minutes):
                print(phase.line(), flush=True)
            broken = []
        broken += broken_promises(run, given.host_delay)
    for sentence in broken:
        print(f"BROKEN: {sentence}")
    if broken:
        sys.exit(1)
    print("All promises are kept.")


if __name__ == "__main__":
    main()
