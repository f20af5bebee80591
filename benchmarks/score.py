"""What publishers of all kinds count of us in a fortnight: the table of benchmarks/politeness.md, made again.

The publishers, the scorer and the fortnight are the tests' own (rss_pipeline_tests/politeness), and there is
no network but loopback. `python -m benchmarks.score [--write] [--hours 4] [--patience 30]`, some minutes of
two cores; the exit code is 1 where there was a fault.
"""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import dagster as dg

from rss_pipeline_tests.politeness.fortnight import Fortnight
from rss_pipeline_tests.politeness.kinds import READERS, TABLES
from rss_pipeline_tests.politeness.scoring import Fault
from rss_pipeline_tests.politeness.stand import Row
from rss_pipeline_tests.support.server import FeedServer

PAGE = Path(__file__).resolve().parent / "politeness.md"
BEGIN, END = "<!-- made by python -m benchmarks.score --write -->\n", "<!-- end -->\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=int, default=4, help="interval of a feed, where its kind has none")
    parser.add_argument("--patience", type=int, default=30, help="minutes that a due feed waits for others")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    given = parser.parse_args()
    rows, faults = score(hours=given.hours, patience=timedelta(minutes=given.patience))
    table = markdown(rows)
    print(table)
    for fault in faults:
        print(f"{fault.feed} at {fault.at}: {fault.kind}: {fault.what}", file=sys.stderr)
    if given.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}{table}{END}{rest.partition(END)[2]}", "utf-8")
    return 1 if faults else 0


def score(*, hours: int, patience: timedelta) -> tuple[list[Row], Sequence[Fault]]:
    """The fortnight's rows and faults. A feed is asked every so many hours."""
    of_a_reader = partial(_fortnight, hours=hours, patience=patience)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(of_a_reader, range(len(READERS))))
    rows = [row for its_rows, _ in parts for row in its_rows]
    return rows, [fault for _, its_faults in parts for fault in its_faults]


def _fortnight(reader: int, *, hours: int, patience: timedelta) -> tuple[list[Row], Sequence[Fault]]:
    kinds = READERS[reader]
    with tempfile.TemporaryDirectory() as folder, FeedServer() as server:
        home = Path(folder) / "dagster"
        home.mkdir()
        (home / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
        with (
            dg.DagsterInstance.from_config(str(home)) as instance,
            Fortnight(Path(folder), instance, server, kinds, hours=hours, patience=patience) as fortnight,
        ):
            return fortnight.run(), fortnight.stand.scorer.faults


def markdown(rows: Sequence[Row]) -> str:
    """A table for each group of kinds, and the sum."""
    by_kind = {row.kind: row for row in rows}
    lines = []
    for title, kinds in TABLES.items():
        columns = ["requests", "conditional", "200", "304", "429", "faults"]
        if title == "images":
            columns.insert(4, "images")
        lines += [
            "",
            f"| {title} | {' | '.join(columns)} |",
            f"|---|{'--:|' * len(columns)}",
            *(_line(by_kind[kind.name], columns) for kind in kinds),
        ]
    faults, requests = sum(row.faults for row in rows), sum(row.requests for row in rows)
    apart = sum(row.apart for row in rows)
    lines += [
        "",
        f"{len(rows)} kinds, {requests:,} requests and {sum(row.images for row in rows):,} for images,"
        f" {faults} faults; {apart} requests without validators after a week or more of nothing but 304.",
        "",
    ]
    return "\n".join(lines)


def _line(row: Row, columns: Sequence[str]) -> str:
    figures = {
        "requests": row.requests,
        "conditional": row.conditional,
        "200": row.bodies,
        "304": row.not_modified,
        "images": row.images,
        "429": row.refused,
        "faults": row.faults,
    }
    return f"| {row.kind} | {' | '.join(str(figures[column]) for column in columns)} |"


if __name__ == "__main__":
    sys.exit(main())
