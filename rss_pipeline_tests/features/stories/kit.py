"""Sets of two invented items in five languages: look-alikes of two events, and two texts of one event.

The sets from 21 on were written before the thresholds of method 3 were chosen.
"""

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from rss_pipeline.features.stories.model import Entry

ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (Path(__file__).parent / "kit.jsonl").read_text("utf-8").splitlines()
]


def entry(row: Mapping[str, Any]) -> Entry:
    time = datetime.fromisoformat(row["time"].replace("Z", "+00:00")).timestamp()
    return Entry(
        id=row["id"],
        feed=row["feed"],
        title=row["title"],
        text=row["text"],
        time=time,
        published=time,
        language=row["language"],
    )


def in_order() -> list[Entry]:
    return [entry(row) for row in sorted(ROWS, key=lambda row: (row["time"], row["id"]))]


def wrong(stories: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The look-alike sets that are merged, and the sets of one event that are apart."""
    sets = defaultdict(list)
    for row in ROWS:
        sets[row["verdict"], row["set"]].append(stories[row["id"]])
    merged = [name for (verdict, name), found in sets.items() if verdict == "apart" and len(set(found)) < 2]
    apart = [name for (verdict, name), found in sets.items() if verdict != "apart" and len(set(found)) > 1]
    return merged, apart
