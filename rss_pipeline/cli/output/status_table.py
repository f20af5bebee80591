"""The output of `status`: counts, a line for each feed, the errors that feeds share, disk use.

The rows come from storage/reports/overview.py. No line is wider than the terminal; in a pipe that is 80
columns, or as many as COLUMNS says.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from rich.cells import cell_len
from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, plain
from rss_pipeline.collector.models.clock import from_instant, instant, rough
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.feeds.due import DueSummary
from rss_pipeline.storage.feeds.forget import UNUSED_AFTER
from rss_pipeline.storage.feeds.predicates import UNREAD_HEALTH
from rss_pipeline.storage.feeds.stored_holds import ON_HOLD
from rss_pipeline.storage.reports.overview import Overview, Problem

FEEDS_LISTED = 50
"""Feeds that `status` lists without --limit."""
PROBLEMS_LISTED = 12
FEEDS_OF_A_PROBLEM = 6
_NOTES_LISTED = 8
_SHARDS_LISTED = 8
_DISK_SECONDS = 0.3
_STYLES = {
    "ok": "green",
    "new": "green",
    "failing": "red",
    "gone": "red",
    "warning": "yellow",
    "moved": "yellow",
}
_GAP = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLook:
    """The question that `status` answers, and the place where a feature reads its section."""

    database: Database
    settings: Settings
    now: datetime
    feed_id: str | None
    """None for all feeds."""
    as_json: bool
    lists_all: bool
    """True after `--limit 0`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSection:
    """The part of `status` that is a feature's."""

    as_json: Mapping[str, object]
    """Keys of `--json`."""
    fields: Mapping[str, object] = field(default_factory=dict)
    """Fields of `status FEED`."""
    show: Callable[[], None] = lambda: None
    """Prints it, in the list of all feeds."""
    is_above: bool = False
    """True if it is printed above the feeds."""


def disk_use(paths: Mapping[str, Path]) -> dict[str, dict[str, int | bool]]:
    """Bytes below each path; `complete` is false if the count stopped after a third of a second."""
    return dict(zip(paths, map(_size, paths.values()), strict=True))


def _size(path: Path) -> dict[str, int | bool]:
    until = time.monotonic() + _DISK_SECONDS
    if path.is_file():
        beside = [path, path.with_name(path.name + "-wal")]
        return {"bytes": sum(p.stat().st_size for p in beside if p.exists()), "complete": True}
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue
        if time.monotonic() > until:
            return {"bytes": total, "complete": False}
    return {"bytes": total, "complete": True}


def show_overview(whole: Overview, *, disk: Mapping[str, Mapping[str, int | bool]], now: datetime) -> None:
    """The counts of feeds, visits, items and images, and the bytes on disk."""
    console = new_console()
    if whole.registered + whole.disabled + whole.unwatched + whole.unregistered == 0:
        console.print("No feed was visited yet: list feeds in feeds.yaml and run `rss-pipeline poll`.")
        return
    long = f"{whole.failing:,} failing"
    if whole.failing_long:
        long += f" ({whole.failing_long:,} of them ten times or more)"
    _print_counts(
        (
            (1, f"{whole.registered:,} feeds scheduled"),
            (whole.subscribed, f"{whole.subscribed:,} of them for subscribers only"),
            (whole.failing, long),
            (whole.gone, f"{whole.gone:,} gone"),
            (whole.moved, f"{whole.moved:,} moved"),
            (whole.redirecting, f"{whole.redirecting:,} redirecting"),
            (whole.disabled, f"{whole.disabled:,} disabled"),
            (whole.unwatched, f"{whole.unwatched:,} not watched"),
            (whole.sharing, f"{whole.sharing:,} with items that share a guid or link"),
        ),
    )
    next_at = from_instant(whole.next_fetch_at)
    if whole.due:
        console.print(f"{whole.due:,} due now")
    elif next_at is not None:
        console.print(f"nothing due now, the next visit is in {_from_now(next_at, now)}")
    if whole.unused:
        print_wrapped(
            Text(
                f"{whole.unused:,} without subscribers any more: removed with their items"
                f" {UNUSED_AFTER.days} days after the last one left"
            )
        )
    if taken_out := whole.unregistered - whole.unused:
        print_wrapped(
            Text(
                f"{taken_out:,} no longer in feeds.yaml: what was collected stays until it expires,"
                " or until `rss-pipeline forget --unlisted`"
            )
        )
    tasks = whole.image_tasks
    _print_counts(
        (
            (1, f"{whole.items:,} items"),
            (1, f"{tasks.get('success', 0):,} images"),
            (tasks.get("pending", 0), f"{tasks.get('pending', 0):,} images to download"),
            (tasks.get("failed", 0), f"{tasks.get('failed', 0):,} images failed"),
            *((1, f"{name} {_megabytes(size)}") for name, size in disk.items()),
        ),
    )


def show_shards(shards: Mapping[Shard, DueSummary], *, due: int, now: datetime) -> None:
    """The shards with feeds that are due, the one that is furthest behind first."""
    behind = sorted(
        (oldest, shard, counts.due)
        for shard, counts in shards.items()
        if (oldest := from_instant(counts.oldest_due_at)) is not None
    )
    if not shards:
        return
    named = [f"{shard} ({count:,} due for {rough(now - oldest)})" for oldest, shard, count in behind]
    more = f" and {len(named) - _SHARDS_LISTED} more" if len(named) > _SHARDS_LISTED else ""
    waiting = ", ".join(named[:_SHARDS_LISTED]) + more
    if not named:
        # `due` also counts what a run has claimed; a shard counts what the next one can claim.
        waiting = "runs have claimed what is due, or its hosts" if due else "nothing is due"
    print_wrapped(Text(f"{len(shards)} shards: {waiting}"))


def shards_as_json(shards: Mapping[Shard, DueSummary]) -> list[dict[str, object]]:
    """Each shard's feeds that are due, and the oldest of those."""
    return [
        {"shard": str(shard), "due": counts.due, "oldest_due_at": counts.oldest_due_at}
        for shard, counts in shards.items()
    ]


def _print_counts(counts: Sequence[tuple[int, str]]) -> None:
    print_wrapped(Text(", ".join(text for count, text in counts if count)))


def print_wrapped(text: Text, *, indent: int = 0) -> None:
    """Print it in lines of the console's width, without blanks at their ends: a pipe would keep them."""
    console = new_console()
    for line in text.wrap(console, max(console.width - indent, 20)):
        line.rstrip()
        console.print(Text.assemble(" " * indent, line), soft_wrap=True)


def _megabytes(size: Mapping[str, int | bool]) -> str:
    return f"{'' if size['complete'] else 'at least '}{int(size['bytes']) / 1e6:,.1f} MB"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the list of feeds."""

    title: str
    value: Callable[[Row, datetime], str]
    """The cell of a feed, at this time."""
    align: Literal["left", "right"] = "left"
    style: Callable[[Row], str] = lambda _: ""
    shrinks: bool = False
    """True if it is cut where the terminal is narrow; the others are as wide as their widest cell."""


def _age(row: Row, now: datetime) -> str:
    newest = from_instant(row["newest_item_at"])
    return "-" if newest is None else rough(now - newest)


def _until_next(row: Row, now: datetime) -> str:
    at, _ = _next_visit(row)
    return "-" if at is None else _from_now(at, now)


COLUMNS = (
    Column("feed", lambda row, _: row["id"], shrinks=True),
    Column("health", lambda row, _: row["health"], style=lambda row: _STYLES.get(row["health"], "dim")),
    Column("items", lambda row, _: f"{int(row['items']):,}", align="right"),
    Column("last new", _age, align="right"),
    Column("next", _until_next, align="right"),
    Column("title", lambda row, _: plain(row["title"] or ""), shrinks=True),
)
"""The columns in their order. The title is the last one: a terminal may give some scripts and emoji another
width than we do, and turns a text from right to left together with the numbers beside it. Behind it there is
nothing to move."""


def show_feeds(rows: Sequence[Row], *, more: int, now: datetime, verbose: bool) -> None:
    """A line for each feed; with `verbose`, the next visit, its reason and the notes below it."""
    console = new_console()
    titles = [column.title for column in COLUMNS]
    lines = [[column.value(row, now) for column in COLUMNS] for row in rows]
    widths = _widths([titles, *lines], console.width)
    console.print()
    console.print(_line(titles, widths, [""] * len(COLUMNS), style="bold"))
    for row, line in zip(rows, lines, strict=True):
        console.print(_line(line, widths, [column.style(row) for column in COLUMNS]))
        for sentence in _details(row) if verbose else ():
            print_wrapped(Text(sentence), indent=4)
    if more > 0:
        console.print(f"... and {more:,} more: --limit 0 shows all")


def _widths(lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns' widths. Of the two that shrink, the id, which a person types, gets three fifths of what
    the others leave."""
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    id, title = (n for n, column in enumerate(COLUMNS) if column.shrinks)
    room = max(width - sum(widths) + widths[id] + widths[title] - _GAP * (len(COLUMNS) - 1), 10)
    widths[id] = min(widths[id], room - min(widths[title], room * 2 // 5))
    widths[title] = min(widths[title], room - widths[id])
    return widths


def _line(cells: Sequence[str], widths: Sequence[int], styles: Sequence[str], *, style: str = "") -> Text:
    line = Text(style=style, no_wrap=True, overflow="crop", end="")
    for column, cell, width, cell_style in zip(COLUMNS, cells, widths, styles, strict=True):
        text = Text(cell, style=cell_style)
        text.truncate(width, overflow="ellipsis")
        blank = " " * (width - text.cell_len)
        line.append_text(Text.assemble(*((blank, text) if column.align == "right" else (text, blank))))
        line.append(" " * _GAP)
    line.rstrip()
    line.end = "\n"
    return line


def _next_visit(row: Row) -> tuple[datetime | None, str]:
    """The time and its reason; a feed may be due while it or its host is on hold."""
    if row["health"] == "unwatched":
        return None, "`watch: false` in feeds.yaml"
    if not row["enabled"]:
        return None, "`enabled: false` in feeds.yaml"
    if row["held_until"] is not None:
        return from_instant(row["held_until"]), str(row["hold_reason"] or ON_HOLD)
    return from_instant(row["next_fetch_at"]), str(row["schedule_reason"] or "it was not visited yet")


def _from_now(at: datetime, now: datetime) -> str:
    """`now`, or the time until then in whole minutes, none of which is cut: `1 min` is not over."""
    return "now" if at <= now else rough(at - now + timedelta(seconds=59))


def _details(row: Row) -> list[str]:
    at, why = _next_visit(row)
    sentences = [f"no next visit: {why}" if at is None else f"next visit at {instant(at)}: {plain(why)}"]
    if row["health"] in UNREAD_HEALTH:
        sentences.append(plain(f"{_times(int(row['consecutive_failures']))}: {row['last_error']}"))
    if row["warning"]:
        sentences.append(f"warning: {plain(row['warning'])}")
    return sentences + [plain(note) for note in row["notes"]]


def _times(failures: int) -> str:
    return {1: "failed once", 2: "failed twice"}.get(failures, f"failed {failures} times")


def show_problems(found: Sequence[Problem], *, more: int) -> None:
    """Each error or warning once, with the feeds that it holds for below it."""
    console = new_console()
    if found:
        console.print()
    for problem in found:
        style = "yellow" if problem.kind == "warning" else "red"
        print_wrapped(Text.assemble((f"{problem.kind}: ", style), plain(problem.sentence)))
        names = [
            f"{feed_name(id, title)}{f' ({_times(failures)})' if failures else ''}"
            for id, title, failures in problem.feeds
        ]
        if problem.count > len(names):
            names.append(f"... and {problem.count - len(names):,} more feeds")
        print_wrapped(Text(", ".join(names)), indent=4)
    if more > 0:
        console.print(
            f"... and {more:,} more errors and warnings: `rss-pipeline status FEED` shows one feed's"
        )


def show_notes(rows: Sequence[Row]) -> None:
    """The notes on the listed feeds."""
    console = new_console()
    notes = [(feed_name(row["id"], row["title"]), note) for row in rows for note in row["notes"]]
    if notes:
        console.print()
    for name, note in notes[:_NOTES_LISTED]:
        print_wrapped(Text.assemble((f"{name}: ", "yellow"), plain(note)))
    if len(notes) > _NOTES_LISTED:
        console.print(f"... and {len(notes) - _NOTES_LISTED:,} more notes: -v shows all")
