"""The cost of stories in a poll: processor time of the whole tree, with and without them.

    python -m benchmarks.stories_poll FOLDER [--by up] [--feeds 500] [--rounds 4] [--new 0 50 1000] [--json]

Two homes with the same feeds, which a server on loopback has; a user of the first one reads stories. In a
round both poll all feeds, by turns, of which so many have one item more; the items are those of
stories_among.py. `--by command` polls by `rss-pipeline poll`, `--by up` by runs of `rss-pipeline up`, with
what it does in the seconds after one. A feed is asked once a minute at most, so a round takes longer. Linux
only.
"""

import argparse
import json
import multiprocessing
import resource
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from benchmarks.footprint import Usage, is_polled, until
from benchmarks.stories_among import real_items, unrelated
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.features.stories.model import Entry
from rss_pipeline_tests.support.up import LAUNCH_RUN, PROGRAM, Up, free_port, kill_session, location, members

_AT_FIRST = 4
"""Items of each feed before the first poll."""
_MINUTE = 66.0
_AFTERWARDS = 5.0
"""Seconds after a run whose processor time counts."""


class _Site(BaseHTTPRequestHandler):
    """Feeds by number: each has so many of its items as were let out."""

    protocol_version = "HTTP/1.1"
    entries: ClassVar[Sequence[Entry]]
    feeds: ClassVar[int]
    let_out: ClassVar["Synchronized[int]"]

    def do_GET(self) -> None:
        number = int(self.path.strip("/"))
        rounds, rest = divmod(self.let_out.value, self.feeds)
        count = rounds + (number < rest)
        body, tag = b"", f'"{count}"'
        is_new = self.headers["If-None-Match"] != tag
        if is_new:
            items = [self._item(number + self.feeds * each) for each in range(max(0, count - 15), count)]
            text = f"<rss version='2.0'><channel><title>Feed {number}</title>{''.join(items)}</channel></rss>"
            body = text.encode("utf-8", "replace")
        self.send_response(200 if is_new else 304)
        self.send_header("ETag", tag)
        self.send_header("Content-Type", "application/rss+xml; charset=utf-8")
        if is_new:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _item(self, place: int) -> str:
        entry = self.entries[place]
        return (
            f"<item><guid isPermaLink='false'>{place}</guid><title>{escape(entry.title)}</title>"
            f"<link>http://127.0.0.1/{place}</link><description>{escape(entry.text)}</description></item>"
        )

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing."""


def _serve(port: int, entries: Sequence[Entry], feeds: int, let_out: "Synchronized[int]") -> None:
    _Site.entries, _Site.feeds, _Site.let_out = entries, feeds, let_out
    ThreadingHTTPServer.request_queue_size = 512
    ThreadingHTTPServer(("0.0.0.0", port), _Site).serve_forever()


@contextmanager
def _serving(folder: Path, feeds: int, more: int) -> "Iterator[tuple[int, Synchronized[int]]]":
    """The port, and the number of items that were let out, of all feeds."""
    entries = list(
        islice(unrelated(real_items(folder), feeds * (_AT_FIRST + 1) + more), feeds * (_AT_FIRST + 1) + more)
    )
    let_out = multiprocessing.Value("i", feeds * _AT_FIRST)
    port = free_port()
    process = multiprocessing.Process(target=_serve, args=(port, entries, feeds, let_out), daemon=True)
    process.start()
    try:
        yield port, let_out
    finally:
        process.kill()


class Home:
    """A home that polls by commands."""

    def __init__(self, folder: Path, feeds: str, *, has_stories: bool) -> None:
        folder.mkdir()
        (folder / "feeds.yaml").write_text(feeds, "utf-8")
        self.feeds, self.has_stories = feeds.count("url:"), has_stories
        # For its settings alone.
        self.up = Up(folder, free_port(), options=["--help"])
        self.up.process.wait()
        self.read_stories()

    def poll(self) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [PROGRAM, "poll", "--all"], env=self.up.environment, check=False, stdout=subprocess.DEVNULL
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def begin(self) -> None:
        """Nothing runs."""

    def prepare(self) -> None:
        self.poll()
        self.catch_up()

    def read_stories(self) -> None:
        subprocess.run(
            [PROGRAM, "user", "add", "somebody", "--password-stdin"],
            env=self.up.environment,
            input=b"correct horse battery staple\n",
            stdout=subprocess.DEVNULL,
            check=True,
        )
        with closing(sqlite3.connect(self.up.home / "rss.sqlite", timeout=60)) as database, database:
            database.execute("UPDATE users SET preferences = ?", [json.dumps({"stories": self.has_stories})])

    def catch_up(self) -> None:
        while self.has_stories and self.behind():
            time.sleep(_MINUTE)
            self.poll()

    def behind(self) -> int:
        [(number,)] = self.up.rows(
            """SELECT (SELECT max(arrived) FROM items) -
            coalesce((SELECT json_extract(value, '$.arrived') FROM installation WHERE name = 'stories'), 0)"""
        )
        return max(0, int(number))

    def end(self) -> None:
        """Nothing runs."""


class HomeOfUp(Home):
    """A home with `up` in it."""

    def begin(self) -> None:
        # With the user in it, so that the processes that runs are forked from have what these need.
        self.up = Up(self.up.home.parent, free_port(), RSS_PARSE_WORKERS="", RSS_HOST_DELAY_SECONDS="")

    def prepare(self) -> None:
        until("the first poll", partial(is_polled, self.up, self.feeds))
        until("the UI", self.up.answers)
        self.catch_up()

    def poll(self) -> float:
        before = Usage(members(self.up.process.pid)).processor
        claim = {"config": {"not_visited_since": instant(utc_now())}}
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": location(self.up),
            "pipelineName": "poll_feeds",
        }
        params = {"mode": "default", "runConfigData": {"ops": {"claim": claim}}, "selector": selector}
        run_id = self.up.ask(LAUNCH_RUN, params=params)["launchPipelineExecution"]["run"]["runId"]
        query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

        def has_ended() -> bool:
            return self.up.ask(query, id=run_id)["runOrError"]["status"] in ("SUCCESS", "FAILURE", "CANCELED")

        until("the end of the run", has_ended, every=1.0)
        time.sleep(_AFTERWARDS)
        return Usage(members(self.up.process.pid)).processor - before

    def end(self) -> None:
        kill_session(self.up.process)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--by", choices=("up", "command"), default="up")
    parser.add_argument("--feeds", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--new", type=int, nargs="+", default=(0, 50, 1_000))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[int, list[tuple[float, float]]] = {each: [] for each in options.new}
    kind = HomeOfUp if options.by == "up" else Home
    with (
        TemporaryDirectory(prefix="rss-stories-") as folder,
        _serving(options.folder, options.feeds, options.rounds * sum(options.new)) as (port, let_out),
        ExitStack() as stack,
    ):
        feeds = "defaults: {interval: 1d, images: false}\nfeeds:\n" + "".join(
            f"  - {{url: 'http://127.1.{each // 250}.{1 + each % 250}:{port}/{each}', id: f{each},"
            " allow_private: true}\n"
            for each in range(options.feeds)
        )
        homes = [kind(Path(folder) / name, feeds, has_stories=name == "with") for name in ("with", "without")]
        for each in homes:
            each.begin()
            stack.callback(each.end)
        for each in homes:
            each.prepare()
        for turn in range(options.rounds):
            for new in options.new:
                time.sleep(_MINUTE)
                let_out.value += new
                took = {each.has_stories: each.poll() for each in (homes if turn % 2 else homes[::-1])}
                found[new].append((took[True], took[False]))
                print(f"{new} new: {took[True]:.2f} s with, {took[False]:.2f} s without", file=sys.stderr)
    for new, pairs in found.items():
        part = 100 * (median(one / other for one, other in pairs) - 1)
        figures = {
            "new": new,
            "with_s": median(one for one, _ in pairs),
            "without_s": median(other for _, other in pairs),
            "more_percent": part,
            "more_ms": 1_000 * mean(one - other for one, other in pairs),
        }
        print(json.dumps(figures) if options.json else ", ".join(f"{n} {v:,.3g}" for n, v in figures.items()))


if __name__ == "__main__":
    main()
