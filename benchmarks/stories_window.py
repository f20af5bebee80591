"""The cost of stories by the number of items in the window: decisions, the files, memory.

    python -m benchmarks.stories_window FOLDER [--items 1000 20000 100000] [--json]

The items are those of stories_among.py: titles and paragraphs of real feeds, recombined within a feed. All of
them are decided, in order. At each size, another process does what a poll does: it reads the window, decides
POLL items and writes the window, a few times. Processor time; medians.
"""

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.service import without_collector
from rss_pipeline.features.stories.window import Window
from rss_pipeline.features.stories.window_file import load, save

SIZES = (1_000, 20_000, 100_000)
POLL, POLLS = 20, 9
DATABASE = "benchmark"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, nargs="+", default=SIZES)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--poll", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.poll:
        print(json.dumps(polled(options.folder)))
        return
    for figures in grown(options.folder, sorted(options.items)):
        if options.json:
            print(json.dumps(figures), flush=True)
        else:
            print(", ".join(f"{name} {value:,.4g}" for name, value in figures.items()), flush=True)


def grown(folder: Path, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
    """The figures at each size."""
    # The other process needs no parser.
    from benchmarks.stories_among import NOW, real_items, unrelated

    entries = (
        replace(each, arrived=number + 1, seen=NOW + number)
        for number, each in enumerate(unrelated(real_items(folder), sizes[-1] + POLL * POLLS))
    )
    window = Window()
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "window"
        for size in sizes:
            for entry in islice(entries, size - len(window)):
                window.decide(entry)
            save(window, path, database=DATABASE)
            length = sum(each.stat().st_size for each in path.parent.iterdir())
            some = list(islice(entries, POLL * POLLS))
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.stories_window", scratch, "--poll"],
                input="\n".join(json.dumps(asdict(each)) for each in some),
                capture_output=True,
                text=True,
                check=True,
            )
            yield {"items": size, **json.loads(done.stdout), "bytes_an_item": length / size}
            # The poll deleted its files.
            window = load(path, database=DATABASE) or window


@without_collector()
def polled(scratch: Path) -> dict[str, Any]:
    """The figures of some polls, each with the next items, which the standard input has."""
    path, times = scratch / "window", defaultdict[str, list[float]](list)
    for _ in range(POLLS):
        entries = [Entry(**json.loads(line)) for line in islice(sys.stdin, POLL)]
        before = time.process_time()
        window = load(path, database=DATABASE)
        assert window is not None
        times["load_ms"].append(1_000 * (time.process_time() - before))
        before = time.process_time()
        for entry in entries:
            window.decide(entry)
        times["decide_ms_an_item"].append(1_000 * (time.process_time() - before) / POLL)
        before = time.process_time()
        save(window, path, database=DATABASE)
        times["save_ms"].append(1_000 * (time.process_time() - before))
    return {**{name: median(each) for name, each in times.items()}, "peak_mb": _peak()}


def _peak() -> float:
    """Megabytes. getrusage gives a child what its parent had."""
    status = Path("/proc/self/status").read_text("utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
