"""The output of `status` and `items`: counts, tables of feeds and items, disk use.

The rows come from storage/reports/overview.py and storage/items/items.py.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, new_table, plain
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.overview import Overview

FEEDS_LISTED = 50
"""Feeds that `status` lists without --limit."""
_DISK_SECONDS = 0.3


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


def show_status(whole: Overview, rows: Sequence[Row], disk: Mapping[str, Mapping[str, int | bool]]) -> None:
    """The counts, one line for each feed, and the number of feeds that are not listed."""
    console = new_console()
    console.print(
        f"{whole.registered} feeds scheduled, {whole.due} due, {whole.failing} failing"
        f" ({whole.failing_long} ten times or more), {whole.gone} gone, {whole.moved} moved,"
        f" {whole.redirecting} redirecting, {whole.disabled} disabled,"
        f" {whole.unregistered} no longer in feeds.yaml"
    )
    tasks = ", ".join(f"{count:,} {name}" for name, count in sorted(whole.image_tasks.items())) or "none"
    room = ", ".join(
        f"{name} {'' if size['complete'] else 'at least '}{int(size['bytes']) / 1e6:,.1f} MB"
        for name, size in disk.items()
    )
    console.print(f"{whole.items:,} items; images: {tasks}; {room}")
    if whole.next_fetch_at:
        console.print(f"next visit at {whole.next_fetch_at}")
    if not rows:
        console.print("No feeds yet: list some in feeds.yaml and run `rss-pipeline poll`.")
        return
    table = new_table("feed", "items", "state", "next visit", "reason")
    for row in rows:
        table.add_row(
            plain(row["title"] or row["id"]),
            f"{int(row['items']):,}",
            _state(row),
            *_next_visit(row),
        )
    console.print(table)
    more = whole.registered + whole.disabled + whole.unregistered - len(rows)
    if more > 0:
        console.print(f"... and {more:,} more: --limit 0 shows all")


def _next_visit(row: Row) -> tuple[str, str]:
    """The time and its reason; a feed may be due while its host is on hold."""
    due, why = str(row["next_fetch_at"]), str(row["schedule_reason"] or "new")
    if not (row["registered"] and row["enabled"]):
        return "-", why
    held = row["held_until"]
    return (due, why) if held is None or held <= due else (held, "its host is on hold")


def _state(row: Row) -> Text:
    if not row["registered"]:
        return Text("not in feeds.yaml", style="dim")
    if not row["enabled"]:
        return Text("disabled", style="dim")
    if row["consecutive_failures"]:
        sentence = (
            f"failed {int(row['consecutive_failures'])}x, {row['last_error_kind']}: {row['last_error']}"
        )
        return Text(plain(sentence), style="red")
    if row["warning"]:
        return Text(plain(row["warning"]), style="yellow")
    if row["last_fetched_at"] is None:
        return Text("never visited", style="green")
    return Text.assemble(("ok", "green"), *((f"; {plain(note)}", "yellow") for note in row.get("notes", ())))


def show_items(feed: Row, rows: Sequence[Row]) -> None:
    """One line for each item; where the last visit failed, or no item is there, the reason."""
    console = new_console()
    console.print(Text(plain(f"{feed['title'] or feed['id']}  {feed['url']}")))
    if feed["failed"]:
        console.print(Text(plain(f"{feed['last_error_kind']}: {feed['last_error']}"), style="red"))
        count = int(feed["consecutive_failures"])
        console.print(f"That was failure {count} in a row; the next visit is at {feed['next_fetch_at']}.")
    if not rows:
        console.print(Text(_why_empty(feed)))
        return
    table = new_table("id", "published", "title", "characters")
    for row in rows:
        published = row["pub_date"] + ("" if row["pub_date_source"] == "feed" else " (fetched)")
        table.add_row(
            row["id"][:12], published, plain(row["title"] or row["link"] or row["guid"]),
            f"{int(row['content_characters'] or 0):,}",
        )  # fmt: skip
    console.print(table)


def _why_empty(feed: Row) -> str:
    if not feed["registered"]:
        return "No items: the feed is not in feeds.yaml, so it is not visited."
    if not feed["enabled"]:
        return "No items: `enabled: false` in feeds.yaml, so it is not visited."
    if feed["failed"]:
        return "No items so far."
    if feed["last_visited_at"] is None:
        return f"No items: it was not visited yet. `rss-pipeline poll {feed['id']}` visits it now."
    return "No items: it was read, but its document had none, or they are all past their age."
