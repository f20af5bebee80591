"""A year in an hour, drawn: what Dagster's home and its processes take while runs are purged.

The year is rss_pipeline_tests/soak/year.py; the figures go into a JSON file, the curves into an SVG.

    python -m benchmarks.year --minutes 60 --daemon-polls 300 --polls 5000 --purges 20 --to var/year
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.plot import svg
from rss_pipeline_tests.soak.year import TABLES, Look, live, verdict


def drawing(looks: Sequence[Look]) -> str:
    """The curves."""
    last = looks[-1]
    sensors = sorted({name for look in looks for name in look.tick_seconds})
    return svg(
        f"{last.daemon_polls} polls by the daemon, {last.polls:,} in process, {last.purges} purges",
        [look.minutes for look in looks],
        {
            "MB on disk": {
                "all": [sum(look.disk_mb.values()) for look in looks],
                **{name: [look.disk_mb[name] for look in looks] for name in looks[0].disk_mb},
            },
            "rows": {table: [float(look.rows[table]) for look in looks] for table in TABLES},
            "MB of memory": {name: [look.memory_mb[name] for look in looks] for name in looks[0].memory_mb},
            "seconds a tick": {
                name: [look.tick_seconds.get(name, 0.0) for look in looks] for name in sensors
            },
            "ms a poll in process": {"median": [look.poll_ms for look in looks]},
        },
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--feeds", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--daemon-polls", type=int, default=300)
    parser.add_argument("--polls", type=int, default=5_000)
    parser.add_argument("--purges", type=int, default=20)
    parser.add_argument("--retention-minutes", type=float, default=4.0)
    parser.add_argument("--to", type=Path, default=Path("var/year"))
    given = parser.parse_args(arguments)
    given.to.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="year-"))
    looks: list[Look] = []
    purged: list[dict[str, Any]] = []
    try:
        for each in live(
            folder,
            feeds=given.feeds,
            minutes=given.minutes,
            daemon_polls=given.daemon_polls,
            polls=given.polls,
            purges=given.purges,
            retention_minutes=given.retention_minutes,
        ):
            if isinstance(each, dict):
                purged = each["purged"]
                continue
            looks.append(each)
            print(json.dumps(asdict(each)), flush=True)
            found = {"looks": [asdict(look) for look in looks], "verdict": verdict(looks)}
            (given.to / "year.json").write_text(json.dumps(found, indent=1), "utf-8")
            (given.to / "year.svg").write_text(drawing(looks), "utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found = {"looks": [asdict(look) for look in looks], "verdict": verdict(looks), "purged": purged}
    (given.to / "year.json").write_text(json.dumps(found, indent=1), "utf-8")
    for name, values in verdict(looks).items():
        print(
            f"{name:<40}{values['second third']:>12,.2f}{values['last third']:>12,.2f}{values['ratio']:>8.2f}"
        )
    if any(look.green != given.feeds for look in looks):
        sys.exit("some feed was not green")


if __name__ == "__main__":
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    main()
