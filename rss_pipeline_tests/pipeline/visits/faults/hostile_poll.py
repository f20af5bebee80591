"""A poll in a process of its own that reports what it took: `python -m ... HOME DEADLINE PARSE_SECONDS`.

The feed `warm` is polled first, so that all is imported and opened; what the next poll takes more is
measured. Prints JSON. Started by test_hostile.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.pipeline.visits.visit import Stored, Visit
from rss_pipeline_tests.support.pipeline import Pipeline


def _memory(name: str) -> int:
    """Bytes, by /proc/self/status: VmRSS is now, VmHWM the most since it was reset."""
    for line in Path("/proc/self/status").read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def _told(visit: Visit) -> dict[str, Any]:
    match visit.outcome:
        case Failure() as failure:
            return {"end": failure.kind, "fetch_ms": failure.fetch_ms, "message": failure.message}
        case Stored() | NotModified():
            return {"end": "stored", "fetch_ms": 0, "message": ""}
        case other:
            return {"end": type(other).__name__, "fetch_ms": 0, "message": ""}


def main() -> None:
    home, deadline, parse_seconds = sys.argv[1:]
    pipeline = Pipeline(
        Path(home), fetch_concurrency=15, parse_workers=2, parse_timeout_seconds=float(parse_seconds)
    )
    pipeline.poll("warm", deadline=float(deadline))
    Path("/proc/self/clear_refs").write_text("5", "ascii")
    idle = _memory("VmRSS")
    rounds = pipeline.poll(deadline=float(deadline))
    taken = _memory("VmHWM") - idle
    ends = {visit.feed.id: _told(visit) for round_ in rounds for visit in round_.visits}
    sys.stdout.write(json.dumps({"idle": idle, "taken": taken, "ends": ends}))


if __name__ == "__main__":
    main()
