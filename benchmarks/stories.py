"""How well stories are found in labelled news, by the product's own functions and thresholds.

    python -m benchmarks.stories FILE.jsonl [--json]
    python -m benchmarks.stories --decide FILE.jsonl
    python -m benchmarks.stories --folds 5 FILE.jsonl

A line is an object with id, story, title and text; time, feed, language, link where there are some. Else
each item is of a feed of its own, in the file's order. Judged are BCubed and pairs, over five orders: mean
and worst, with document frequencies that begin with the first item (cold) and that are known before (warm).
`--decide` prints the item's id and its story's for each line, in the file's order. `--folds N` judges each
Nth of the file's topics by itself.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rss_pipeline.features.stories.model import Entry
from rss_pipeline.features.stories.window import VERSION, Window
from rss_pipeline.features.stories.window_file import save

ORDERS = 5
Row = Mapping[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    parser.add_argument("--decide", action="store_true", help="print the stories themselves")
    parser.add_argument("--folds", type=int, default=0, help="judge so many groups of topics, each by itself")
    options = parser.parse_args()
    rows = read(options.file, needs_story=not options.decide)
    if options.decide:
        for row, story in zip(rows, decide(rows), strict=True):
            print(json.dumps({"id": row["id"], "story": story}, ensure_ascii=False))
        return
    figures = judged(rows)
    if options.folds:
        figures["folds"] = [judged(some) for some in folds(rows, options.folds)]
    print(json.dumps(figures, indent=2) if options.json else as_text(figures))


def read(path: Path, *, needs_story: bool) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            sys.exit(f"{path}, line {number}: not a JSON object: {error}")
        needed = ["id", "title", "text", *(["story"] if needs_story else [])]
        missing = [name for name in needed if not isinstance(row, dict) or name not in row]
        if missing:
            sys.exit(
                f"{path}, line {number}: {', '.join(missing)} is missing; each line needs {', '.join(needed)}"
            )
        rows.append(row)
    if not rows:
        sys.exit(f"{path} has no items")
    twice = [id for id, times in Counter(str(row["id"]) for row in rows).items() if times > 1]
    if twice:
        sys.exit(f"{path}: the id {twice[0]} is there twice")
    return rows


def entry(row: Row) -> Entry:
    at = _seconds(row.get("time"))
    return Entry(
        id=str(row["id"]),
        feed=str(row.get("feed") or f"feed of {row['id']}"),
        title=str(row["title"] or ""),
        text=str(row["text"] or ""),
        link=row.get("link"),
        time=at,
        published=at,
        language=row.get("language"),
    )


def _seconds(value: object) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, (int, float)):
        return float(value)
    at = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def decide(rows: Iterable[Row], window: Window | None = None) -> list[str]:
    window = window or Window()
    return [window.decide(entry(row)).story for row in rows]


def folds(rows: Sequence[Row], count: int) -> list[list[Row]]:
    """Groups of whole topics; of whole stories where the file has no topics."""
    names = sorted({str(row.get("topic", row["story"])) for row in rows}, key=lambda name: (len(name), name))
    of = {name: at % count for at, name in enumerate(names)}
    return [[row for row in rows if of[str(row.get("topic", row["story"]))] == fold] for fold in range(count)]


def judged(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures of five orders, cold and warm."""
    figures: dict[str, Any] = {
        "method": VERSION,
        "items": len(rows),
        "stories": len({row["story"] for row in rows}),
    }
    milliseconds = []
    for kind in ("cold", "warm"):
        orders = []
        for seed in range(1, ORDERS + 1):
            shuffled = list(rows)
            random.Random(seed).shuffle(shuffled)
            entries = [entry(row) for row in shuffled]
            window = Window()
            if kind == "warm":
                window.learn(entries)
            before = time.thread_time()
            got = [window.decide(each).story for each in entries]
            milliseconds.append(1_000 * (time.thread_time() - before) / len(rows))
            orders.append(scores(got, [str(row["story"]) for row in shuffled]))
        figures[kind] = {
            name: {
                "mean": statistics.mean(each[name] for each in orders),
                "worst": min(each[name] for each in orders),
            }
            for name in orders[0]
        }
    figures["ms_an_item"] = statistics.median(milliseconds)
    figures["bytes_an_item"] = bytes_an_item(rows)
    return figures


def scores(got: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """Precision, recall and F1, BCubed and by pairs."""
    both = Counter(zip(got, wanted, strict=True))
    mine, theirs = Counter(got), Counter(wanted)
    precision = sum(count * count / mine[story] for (story, _), count in both.items()) / len(got)
    recall = sum(count * count / theirs[story] for (_, story), count in both.items()) / len(got)
    common, found, there = (
        sum(count * (count - 1) // 2 for count in counts.values()) for counts in (both, mine, theirs)
    )
    return {
        "bcubed_precision": precision,
        "bcubed_recall": recall,
        "bcubed_f1": _f1(precision, recall),
        "pairs_precision": common / found if found else 1.0,
        "pairs_recall": common / there if there else 1.0,
        "pairs_f1": _f1(common / found if found else 1.0, common / there if there else 1.0),
    }


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def bytes_an_item(rows: Sequence[Row]) -> float:
    """Bytes of the file an item."""
    window = Window()
    for row in rows:
        window.decide(entry(row))
    with TemporaryDirectory() as folder:
        save(window, Path(folder) / "window", database="benchmark")
        return sum(each.stat().st_size for each in Path(folder).iterdir()) / len(rows)


def as_text(figures: Mapping[str, Any]) -> str:
    lines = [f"{figures['items']} items, {figures['stories']} stories, {ORDERS} orders"]
    for kind in ("cold", "warm"):
        parts = [
            f"{name.replace('_', ' ')} {value['mean']:.3f} (worst {value['worst']:.3f})"
            for name, value in figures[kind].items()
        ]
        lines.append(f"{kind}: {', '.join(parts)}")
    spent, size = figures["ms_an_item"], figures["bytes_an_item"]
    lines.append(f"{spent:.2f} ms of processor time and {size:.0f} bytes on disk an item")
    for number, fold in enumerate(figures.get("folds", ()), 1):
        lines.append(f"fold {number}: " + as_text(fold).replace("\n", "\n  "))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
