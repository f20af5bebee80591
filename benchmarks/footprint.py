"""What `rss-pipeline up` costs a small machine: memory, processor time, and the disk, at rest and at work.

    python -m benchmarks.footprint [--json] [--only PART ...] [--minutes 10] [--feeds 39] [--many 1000]

Each part starts an `up` of its own, in a new home, beside a server on loopback. Memory is PSS
(/proc/PID/smaps_rollup). Processor time and bytes are the kernel's sums of all processes of the session,
those that have ended and were waited for among them (/proc/PID/stat and io); a process that nobody waited for
is in none of them. Waits for the disk are calls of fsync and fdatasync that `strace` sees, for two minutes of
their own, because it slows what it watches; without strace there is no figure. Linux only.

`--freshrss FOLDER` measures a FreshRSS beside it (`php -S`), and lemon24/reader is measured if it is
installed (`make bench` does so).
"""

import argparse
import importlib.util
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

from benchmarks.documents import made_up_feeds
from benchmarks.feeds_file import feed_id, write_feeds_file
from benchmarks.server import Feed, serving
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline_tests.support.up import LAUNCH_RUN, Up, free_port, kill_session, location, members, started

_MB = 1_000_000
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_SETTLED_SECONDS = 90.0
"""After the first poll: what comes once after a start is over by then."""
_PATIENCE = 1200.0
_RUN_FEEDS = 10

Figures = dict[str, float | None]


class Usage:
    """The sums of a tree of processes so far: seconds of processor time, bytes written."""

    def __init__(self, processes: Sequence[psutil.Process]) -> None:
        self.processor = self.written = 0.0
        for process in processes:
            with suppress(OSError, IndexError):
                fields = Path(f"/proc/{process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
                # utime, stime, and those of the children that were waited for.
                self.processor += sum(map(int, fields[11:15])) * _TICK
                io = Path(f"/proc/{process.pid}/io").read_text("ascii")
                self.written += int(re.findall(r"^write_bytes: (\d+)", io, re.MULTILINE)[0])


def pss(processes: Sequence[psutil.Process]) -> float:
    """The bytes that these processes take, shared pages divided by their users."""
    total = 0.0
    for process in processes:
        with suppress(OSError):
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text("ascii")
            total += int(re.findall(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)[0]) * 1024
    return total


@contextmanager
def running(feeds: Sequence[Feed]) -> Iterator[Up]:
    """An `up` with these feeds."""
    with tempfile.TemporaryDirectory(prefix="rss-footprint-") as folder:
        file = Path(folder) / "feeds.yaml"
        write_feeds_file(file, feeds)
        # The hosts of their images do not exist: to look for them each five minutes is no rest.
        file.write_text(
            file.read_text("utf-8").replace("allow_private: true", "allow_private: true, images: false")
        )
        with started(Path(folder), RSS_PARSE_WORKERS="", RSS_HOST_DELAY_SECONDS="") as up:
            yield up


def until(what: str, is_so: Callable[[], bool], *, every: float = 0.5, patience: float = _PATIENCE) -> None:
    """Wait for a state."""
    give_up = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > give_up:
            raise SystemExit(f"footprint: {what} did not come within {patience:.0f} s")
        time.sleep(every)


def is_polled(up: Up, feeds: int) -> bool:
    """True when all feeds were visited and no run is in progress."""
    with suppress(Exception):
        [(visited,)] = up.rows("SELECT count(*) FROM feeds WHERE last_fetched_at IS NOT NULL")
        now = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
        [(leases,)] = up.rows(f"SELECT count(*) FROM leases WHERE expires_at > {now}")
        return visited == feeds and leases == 0
    return False


def page(port: int) -> bool:
    """True if the first page at this port is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def waits(processes: Sequence[psutil.Process], seconds: float) -> float | None:
    """The calls of fsync and fdatasync within so many seconds; None where strace is not, or may not look."""
    if shutil.which("strace") is None:
        return None
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as summary:
        pids = [f"--attach={process.pid}" for process in processes]
        command = ["strace", "-f", "-c", "-e", "trace=fsync,fdatasync", "-o", summary.name, *pids]
        strace = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            strace.wait(timeout=seconds)
            return None
        except subprocess.TimeoutExpired:
            strace.send_signal(signal.SIGINT)
            strace.wait()
        rows = re.findall(
            r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*(?:fsync|fdatasync)$", summary.read(), re.MULTILINE
        )
        return float(sum(map(int, rows)))


def idle(feeds: Sequence[Feed], minutes: float) -> Figures:
    """Nothing is due: memory without a visitor and with both, processor time, bytes, waits."""
    with running(feeds) as up:
        until("the first poll", lambda: is_polled(up, len(feeds)))
        time.sleep(_SETTLED_SECONDS)
        began, before = time.monotonic(), Usage(members(up.process.pid))
        time.sleep(60 * minutes)
        processes = members(up.process.pid)
        after, seconds = Usage(processes), time.monotonic() - began
        figures: Figures = {
            "processes": float(len(processes)),
            "idle_pss_mb": pss(processes) / _MB,
            "idle_processor_percent": 100 * (after.processor - before.processor) / seconds,
            "idle_written_mb_in_5_min": (after.written - before.written) / _MB * 300 / seconds,
        }
        found = waits(processes, 120.0)
        figures["idle_waits_in_5_min"] = None if found is None else found * 2.5
        page(up.port)
        page(up.reader_port)
        up.answers()
        figures["visited_pss_mb"] = pss(members(up.process.pid)) / _MB
        return figures


def run(feeds: Sequence[Feed], _: float) -> Figures:
    """Runs of ten feeds that have not changed, asked for by hand, until they have ended."""
    took: list[Figures] = []
    with running(feeds) as up:
        until("the first poll", lambda: is_polled(up, len(feeds)))
        until("the UI", up.answers)
        time.sleep(30)
        ids = [feed_id(number, feed) for number, feed in enumerate(feeds[:_RUN_FEEDS])]
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": location(up),
            "pipelineName": "poll_feeds",
        }
        config = {
            "ops": {"claim": {"config": {"not_visited_since": "2100-01-01T00:00:00.000Z", "feeds": ids}}}
        }
        params = {"mode": "default", "runConfigData": config, "selector": selector}
        query = "query($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

        def has_ended(run_id: str) -> bool:
            return up.ask(query, id=run_id)["runOrError"]["status"] in ("SUCCESS", "FAILURE", "CANCELED")

        for _ in range(3):
            # A feed is not requested again within a minute after its last answer.
            time.sleep(65)
            claim = {"config": {"not_visited_since": instant(utc_now()), "feeds": ids}}
            params = {"mode": "default", "runConfigData": {"ops": {"claim": claim}}, "selector": selector}
            began, before = time.monotonic(), Usage(members(up.process.pid))
            launched = up.ask(LAUNCH_RUN, params=params)["launchPipelineExecution"]
            run_id = launched["run"]["runId"]
            until("the end of the run", partial(has_ended, run_id))
            seconds = time.monotonic() - began
            # Its process is being waited for.
            time.sleep(3)
            after = Usage(members(up.process.pid))
            took.append(
                {
                    "run_processor_s": after.processor - before.processor,
                    "run_written_mb": (after.written - before.written) / _MB,
                    "run_asked_to_ended_s": seconds,
                }
            )
    return {name: statistics.median(each[name] or 0.0 for each in took) for name in took[0]}


def start(feeds: Sequence[Feed], _: float) -> Figures:
    """From the command to the first page of the reader, and of the UI."""
    began = time.monotonic()
    with running(feeds) as up:
        until("the reader", lambda: page(up.reader_port), every=0.05)
        reader = time.monotonic() - began
        until("the UI", lambda: page(up.port), every=0.05)
        ui = time.monotonic() - began
        used = Usage(members(up.process.pid)).processor
    return {"reader_first_page_s": reader, "ui_first_page_s": ui, "start_processor_s": used}


def first_poll(feeds: Sequence[Feed], _: float) -> Figures:
    """The first poll of many feeds: the most memory at one moment, and processor time until its end."""
    peak = 0.0
    with running(feeds) as up:

        def is_over() -> bool:
            nonlocal peak
            peak = max(peak, pss(members(up.process.pid)))
            return is_polled(up, len(feeds))

        until("the first poll", is_over)
        used = Usage(members(up.process.pid)).processor
    return {"first_poll_peak_pss_mb": peak / _MB, "first_poll_processor_s": used}


PARTS: Mapping[str, Callable[[Sequence[Feed], float], Figures]] = {
    "start": start,
    "idle": idle,
    "run": run,
    "first-poll": first_poll,
}


def peers(freshrss: Path | None, minutes: float) -> tuple[dict[str, Figures], list[str]]:
    """The memory and processor time at rest of other readers, and the names of those that are missing."""
    found: dict[str, Figures] = {}
    missing = ["miniflux (it needs a Postgres; not started here)"]
    commands: dict[str, tuple[list[str], int]] = {}
    if freshrss is not None and shutil.which("php"):
        port = free_port()
        commands["FreshRSS"] = (["php", "-S", f"127.0.0.1:{port}", "-t", str(freshrss / "p")], port)
    else:
        missing.append("FreshRSS (--freshrss FOLDER, and php)")
    if importlib.util.find_spec("reader") is not None and importlib.util.find_spec("flask") is not None:
        port = free_port()
        commands["lemon24/reader"] = (
            [sys.executable, "-m", "reader", "--db", ":memory:", "serve", "--port", str(port)],
            port,
        )
    else:
        missing.append("lemon24/reader (pip install 'reader[app,cli]')")
    for name, (command, port) in commands.items():
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            until(name, lambda port=port: page(port), patience=60)
            before = Usage(members(process.pid)).processor
            time.sleep(60 * minutes)
            processes = members(process.pid)
            used = Usage(processes).processor - before
            found[name] = {
                "idle_pss_mb": pss(processes) / _MB,
                "idle_processor_percent": 100 * used / (60 * minutes),
            }
        finally:
            kill_session(process)
    return found, missing


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(description="Measure what `rss-pipeline up` costs a small machine.")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--only", action="append", choices=[*PARTS, "peers"], help="this part; repeatable")
    parser.add_argument("--minutes", type=float, default=10.0, help="of rest that are measured")
    parser.add_argument("--feeds", type=int, default=39, help="of the parts but first-poll")
    parser.add_argument("--many", type=int, default=1_000, help="feeds of first-poll")
    parser.add_argument("--freshrss", type=Path, metavar="FOLDER", help="a clone of FreshRSS")
    arguments = parser.parse_args()
    wanted = arguments.only or [*PARTS, "peers"]
    figures: Figures = {"load_before": os.getloadavg()[0]}
    for name, part in PARTS.items():
        if name in wanted:
            count = arguments.many if name == "first-poll" else arguments.feeds
            with serving(partial(made_up_feeds, count)) as server:
                figures |= part(server.feeds, arguments.minutes)
    beside, missing = peers(arguments.freshrss, arguments.minutes) if "peers" in wanted else ({}, [])
    if arguments.json:
        print(json.dumps({"rss_pipeline": figures, "peers": beside, "missing": missing}, indent=2))
        return
    for what, values in {"rss-pipeline up": figures, **beside}.items():
        print(what)
        for name, value in values.items():
            print(f"  {name:<28}{'not counted' if value is None else f'{value:,.2f}':>14}")
    for name in missing:
        print(f"missing: {name}")


if __name__ == "__main__":
    main()
