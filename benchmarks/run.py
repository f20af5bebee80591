"""The speed claims of README.md, measured: `make bench`, or `python -m benchmarks.run`.

A thousand feeds on a loopback server, collected by `rss-pipeline poll` and by lemon24/reader in turns, each
as a whole process, and both checked for what they stored. Claims are claim.py's.
"""

import argparse
import json
import os
import platform
import shlex
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.claim import ClaimTime, claim_lines, measure_claims
from benchmarks.documents import ITEMS_A_FEED, made_up_feeds
from benchmarks.feeds_file import write_feeds_file
from benchmarks.processes import Measured, environment, measure, rss_pipeline
from benchmarks.server import Counts, Running, serving
from benchmarks.stored import totals

_REPOSITORY = Path(__file__).resolve().parent.parent
_WORKERS = 10
_MB = 1_000_000

FIRST, UNCHANGED, EMPTY = "first poll", "all 304", "nothing due"
OURS, READER = "ours", "reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One measured process. Seconds and bytes."""

    who: str
    what: str
    round: int
    seconds: float
    peak_rss: int
    peak_pss: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A figure of the claims and the most it may be."""

    name: str
    value: float
    goal: float

    @property
    def is_met(self) -> bool:
        return self.value <= self.goal


class Wrong(Exception):
    """Something was not stored or not asked as it must be, so its time says nothing."""


class Round:
    """One round of both, in new homes. Every method is one measured process."""

    def __init__(self, server: Running, folder: Path, number: int) -> None:
        self._server = server
        self._number = number
        self._home = folder / "home"
        self._folder = folder
        self._reader_database = folder / "reader.sqlite"
        write_feeds_file(folder / "feeds.yaml", server.feeds)

    def measured(self) -> Iterator[Timing]:
        """First polls, polls that find nothing changed, and a poll with nothing to do.

        Who goes first changes from round to round.
        """
        self._register_with_reader()
        turns = [(OURS, self._ours), (READER, self._reader)]
        if self._number % 2:
            turns.reverse()
        for what in (FIRST, UNCHANGED):
            for who, run in turns:
                yield self._timing(who, what, run(what))
        yield self._timing(OURS, EMPTY, self._ours(EMPTY))

    def _timing(self, who: str, what: str, measured: Measured) -> Timing:
        return Timing(
            who=who,
            what=what,
            round=self._number,
            seconds=measured.seconds,
            peak_rss=measured.peak_rss,
            peak_pss=measured.peak_pss,
        )

    def _ours(self, what: str) -> Measured:
        env = environment(
            RSS_PIPELINE_HOME=str(self._home),
            RSS_FEEDS_FILE=str(self._folder / "feeds.yaml"),
            RSS_HOST_DELAY_SECONDS="0",
            RSS_FETCH_CONCURRENCY=str(_WORKERS),
        )
        everything = ["--all"] if what == UNCHANGED else []
        measured = self._run([rss_pipeline(), "poll", "--json", *everything], cwd=self._folder, env=env)
        feeds = len(self._server.feeds)
        said = json.loads(measured.stdout)
        items = ITEMS_A_FEED * feeds
        images = sum(feed.images or 0 for feed in self._server.feeds)
        expected = {
            FIRST: {"stored": feeds, "unchanged": 0, "failed": 0, "items_new": items},
            UNCHANGED: {"stored": 0, "unchanged": feeds, "failed": 0, "items_new": 0},
            EMPTY: {"stored": 0, "unchanged": 0, "failed": 0, "items_new": 0},
        }[what]
        _must_be(f"{what}: the poll's summary", {name: said[name] for name in expected}, expected)
        _must_be(
            f"{what}: what is stored",
            totals(self._home),
            {"items": items, "image_tasks": images, "backups": feeds},
        )
        self._check_requests(f"{what}, ours", what)
        return measured

    def _reader(self, what: str) -> Measured:
        command = [*self._peer("update"), "--workers", str(_WORKERS)]
        measured = self._run(command, cwd=_REPOSITORY, env=environment())
        with closing(sqlite3.connect(self._reader_database)) as connection:
            entries = connection.execute("SELECT count(*) FROM entries").fetchone()[0]
        _must_be(f"{what}: reader's entries", entries, ITEMS_A_FEED * len(self._server.feeds))
        self._check_requests(f"{what}, reader", what)
        return measured

    def _register_with_reader(self) -> None:
        urls = "\n".join(feed.url for feed in self._server.feeds)
        subprocess.run(
            self._peer("add"), cwd=_REPOSITORY, env=environment(), input=urls, text=True, check=True
        )

    def _peer(self, what: str) -> list[str]:
        return [sys.executable, "-m", "benchmarks.peer_reader", what, str(self._reader_database)]

    def _run(self, command: Sequence[str], *, cwd: Path, env: dict[str, str]) -> Measured:
        self._server.forget()
        measured = measure(command, cwd=cwd, env=env)
        if measured.exit_code != 0:
            raise Wrong(
                f"{shlex.join(command)} ended with {measured.exit_code}:\n{measured.stdout}{measured.stderr}"
            )
        return measured

    def _check_requests(self, name: str, what: str) -> None:
        feeds = len(self._server.feeds)
        expected = {
            FIRST: Counts(ok=feeds, not_modified=0, other=0, conditional=0, unconditional=feeds),
            UNCHANGED: Counts(ok=0, not_modified=feeds, other=0, conditional=feeds, unconditional=0),
            EMPTY: Counts(ok=0, not_modified=0, other=0, conditional=0, unconditional=0),
        }[what]
        _must_be(f"{name}: requests", self._server.counts(), expected)


def _must_be(name: str, found: object, expected: object) -> None:
    if found != expected:
        raise Wrong(f"{name}: {found}, expected {expected}")


def verdicts(timings: Sequence[Timing]) -> list[Verdict]:
    """The claims, from medians over the rounds; memory from the largest of all."""

    def seconds(who: str, what: str) -> float:
        return statistics.median(t.seconds for t in timings if (t.who, t.what) == (who, what))

    peak = max(timing.peak_rss for timing in timings if timing.who == OURS)
    return [
        Verdict(
            name="first poll, ours / reader", value=seconds(OURS, FIRST) / seconds(READER, FIRST), goal=0.33
        ),
        Verdict(
            name="all 304, ours / reader",
            value=seconds(OURS, UNCHANGED) / seconds(READER, UNCHANGED),
            goal=1.4,
        ),
        Verdict(name="nothing due, ours (s)", value=seconds(OURS, EMPTY), goal=1.6),
        Verdict(name="peak memory, ours (MB)", value=peak / _MB, goal=280),
    ]


def conditions(feeds: int, bytes_a_feed: float) -> dict[str, object]:
    """What the figures depend on."""
    packages = {name: version(name) for name in ("rss_pipeline", "dagster", "reader", "feedparser", "lxml")}
    return {
        "command": shlex.join(["python", "-m", "benchmarks.run", *sys.argv[1:]]),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "versions": packages,
        "feeds": feeds,
        "items_a_feed": ITEMS_A_FEED,
        "bytes_a_feed": round(bytes_a_feed),
    }


def report(
    where: dict[str, object], timings: Sequence[Timing], judged: Sequence[Verdict], claims: list[ClaimTime]
) -> str:
    """All of it, for a person."""
    versions = where["versions"]
    assert isinstance(versions, dict)
    lines = [
        f"$ {where['command']}",
        f"Python {where['python']}, {where['system']}, {where['cores']} cores; "
        + ", ".join(f"{name} {number}" for name, number in versions.items()),
        f"{where['feeds']} feeds of {where['items_a_feed']} items and {where['bytes_a_feed']:,} bytes on"
        f" loopback, {_WORKERS} at once, no pacing. Every figure is a whole process, interpreter start"
        " included.",
        "Ours: `rss-pipeline poll`; its first poll also syncs the registry, backs up every document and finds"
        " images.",
        f"reader: update_feeds(workers={_WORKERS}, scheduled=False); adding the feeds is not counted.",
        "",
        f"{'':<24}{'median s':>10}{'min':>8}{'max':>8}{'peak RSS MB':>14}{'peak PSS MB':>14}",
    ]
    for what in (FIRST, UNCHANGED, EMPTY):
        for who in (OURS, READER):
            if these := [t for t in timings if (t.who, t.what) == (who, what)]:
                seconds = [t.seconds for t in these]
                shared = [t.peak_pss for t in these if t.peak_pss is not None]
                lines.append(
                    f"{what + ', ' + who:<24}{statistics.median(seconds):>10.2f}{min(seconds):>8.2f}"
                    f"{max(seconds):>8.2f}{max(t.peak_rss for t in these) / _MB:>14.0f}"
                    f"{format(max(shared) / _MB, '.0f') if shared else '-':>14}"
                )
    lines.append("")
    for verdict in judged:
        met = "met" if verdict.is_met else "MISSED"
        lines.append(f"{verdict.name:<44}{verdict.value:>8.2f}   goal {verdict.goal:g}: {met}")
    return "\n".join([*lines, "", *claim_lines(claims)])


def main() -> None:
    """Measure, print, and exit with 1 where something was stored wrong; a missed goal is only said."""
    parser = argparse.ArgumentParser(description="Measure the pipeline beside lemon24/reader.")
    parser.add_argument("--feeds", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    arguments = parser.parse_args()
    # reader carries a feedparser of its own that needs sgmllib3k, which today's feedparser no longer brings.
    for module, package in (("reader", "reader"), ("sgmllib", "sgmllib3k")):
        if find_spec(module) is None:
            sys.exit(f"{package} is not installed: run `make bench`, or `pip install {package}` first")
    try:
        timings, where = _measure_all(arguments.feeds, arguments.rounds)
    except Wrong as wrong:
        sys.exit(f"Not measured, for it went wrong. {wrong}")
    judged = verdicts(timings)
    claims = list(measure_claims())
    print(report(where, timings, judged, claims))
    if arguments.json is not None:
        figures = {
            **where,
            "timings": [asdict(timing) for timing in timings],
            "verdicts": [{**asdict(verdict), "met": verdict.is_met} for verdict in judged],
            "claims": [{**asdict(claim), "met": claim.is_met} for claim in claims],
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")


def _measure_all(feeds: int, rounds: int) -> tuple[list[Timing], dict[str, object]]:
    timings = []
    # Homes are removed at the end: for each new file, ext4 looks through all inodes freed in the last minute.
    with (
        tempfile.TemporaryDirectory(prefix="rss-bench-") as folder,
        serving(partial(made_up_feeds, feeds)) as server,
    ):
        where = conditions(feeds, statistics.mean(feed.bytes for feed in server.feeds))
        for number in range(rounds):
            home = Path(folder, str(number))
            home.mkdir()
            for timing in Round(server, home, number).measured():
                print(
                    f"round {number + 1}: {timing.what}, {timing.who}: {timing.seconds:.2f} s,"
                    f" {timing.peak_rss / _MB:.0f} MB",
                    file=sys.stderr,
                    flush=True,
                )
                timings.append(timing)
    return timings, where


if __name__ == "__main__":
    main()
