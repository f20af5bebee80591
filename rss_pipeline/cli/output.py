"""What the command prints: the progress bar of a poll, its summary, tables of feeds and items.

Nothing is read from the stores here, but for the size of files.
"""

import os
import time
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rss_pipeline.storage.copy.stores import Copied
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.reports.overview import Overview

if TYPE_CHECKING:
    from rss_pipeline.pipeline.health.findings import Check
    from rss_pipeline.pipeline.retention.result import CleanResult
    from rss_pipeline.pipeline.visits.rounds import NotVisited, Round

FEEDS_LISTED = 50
"""Of `status`, unless it is told otherwise."""

_DISK_SECONDS = 0.3
_FAILURES_SHOWN = 40
_FEEDS_SHOWN = 20
_NUMBERS = frozenset({"items", "characters", "images", "backups"})


def _console(*, stderr: bool = False) -> Console:
    """Titles and messages are strangers' text: `[/b]` in one is no markup, `:x:` no emoji."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def _plain(text: object) -> str:
    """Without control characters, which would command the terminal (JSON feeds may hold any)."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\ufffd" for c in str(text))


def complain(sentence: str) -> None:
    """To the error stream, so that `--json` stays JSON."""
    _console(stderr=True).print(Text(_plain(sentence), style="red"), soft_wrap=True)


class Bars:
    """A bar for each step on a terminal, nothing elsewhere: a `rss_pipeline.progress.Progress`."""

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description:<15}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def begin(self, step: str, total: int) -> None:
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step.replace("_", " "), total=0)
        task = self._bars.tasks[self._bars.task_ids.index(self._tasks[step])]
        self._bars.update(self._tasks[step], total=(task.total or 0) + total)

    def advance(self, step: str, by: int = 1) -> None:
        self._bars.advance(self._tasks[step], by)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollResult:
    """What a poll's rounds came to."""

    counts: Mapping[str, int]
    failures: Sequence[tuple[str, str, str]]
    """Feed id, kind and sentence."""
    errors: Sequence[str]
    runs: Sequence[str]
    left: "Sequence[NotVisited]" = ()

    @classmethod
    def of(cls, rounds: "Sequence[Round]", left: "Sequence[NotVisited]" = ()) -> Self:
        from rss_pipeline.orchestration.reporting.feeds import failures, summary

        visits = [visit for round_ in rounds for visit in round_.visits]
        return cls(
            counts=summary(visits),
            failures=[(each.feed_id, each.kind, each.message) for each in failures(visits)],
            errors=[round_.error for round_ in rounds if round_.error is not None],
            runs=[round_.run_id for round_ in rounds],
            left=left,
        )

    @property
    def is_fine(self) -> bool:
        return not (self.failures or self.errors)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.counts,
            "failures": [dict(zip(("feed", "kind", "message"), row, strict=True)) for row in self.failures],
            "not_visited": [asdict(each) for each in self.left],
            "errors": list(self.errors),
            "runs": list(self.runs),
        }

    def left_out(self) -> list[str]:
        """A sentence for each feed that was not visited, and why; of many the first."""
        sentences = [f"{each.feed} was not visited: {each.message}" for each in self.left[:_FAILURES_SHOWN]]
        if len(self.left) > _FAILURES_SHOWN:
            sentences.append(f"... and {len(self.left) - _FAILURES_SHOWN} more; --json has them all")
        return sentences

    def as_text(self) -> str:
        """The summary, then a table of the failures, then what failed a run."""
        console = _console()
        with console.capture() as captured:
            visited = sum(self.counts[name] for name in ("stored", "unchanged", "failed"))
            if visited == 0 and not self.errors:
                console.print("Nothing was visited." if self.left else "Nothing was due.")
            else:
                console.print(
                    f"{visited} feeds visited: {self.counts['stored']} with a new document,"
                    f" {self.counts['unchanged']} unchanged, {self.counts['failed']} failed;"
                    f" {self.counts['items_new']} new items."
                )
                if gaps := self.counts["gaps"]:
                    console.print(
                        f"{gaps} feeds had no item in common with the document before, so items were probably"
                        " missed; `rss-pipeline status` names them."
                    )
            if self.failures:
                table = _table("feed", "kind", "what happened")
                for feed, kind, message in self.failures[:_FAILURES_SHOWN]:
                    table.add_row(feed, kind, _plain(message))
                console.print(table)
                if len(self.failures) > _FAILURES_SHOWN:
                    console.print(f"... and {len(self.failures) - _FAILURES_SHOWN} more; --json has them all")
            for error in self.errors:
                console.print(Text(f"The run failed: {_plain(error)}", style="red"), soft_wrap=True)
        return captured.get().rstrip()


def disk_use(paths: Mapping[str, Path]) -> dict[str, dict[str, int | bool]]:
    """Bytes below each path; `complete` is false where counting was stopped after a third of a second."""
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
    """The counts, a line a feed, and how many more there are."""
    console = _console()
    console.print(
        f"{whole.registered} feeds scheduled, {whole.due} due, {whole.failing} failing"
        f" ({whole.failing_long} ten times or more), {whole.gone} gone, {whole.moved} moved,"
        f" {whole.disabled} disabled,"
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
    table = _table("feed", "items", "state", "next visit", "why then")
    for row in rows:
        table.add_row(
            _plain(row["title"] or row["id"]),
            f"{int(row['items']):,}",
            _state(row),
            *_next_visit(row),
        )
    console.print(table)
    more = whole.registered + whole.disabled + whole.unregistered - len(rows)
    if more > 0:
        console.print(f"... and {more:,} more: --limit 0 shows all")


def _next_visit(row: Row) -> tuple[str, str]:
    """When and why; a feed may be due while its host is left alone."""
    due, why = str(row["next_fetch_at"]), str(row["schedule_reason"] or "new")
    if not (row["registered"] and row["enabled"]):
        return "-", why
    held = row["held_until"]
    return (due, why) if held is None or held <= due else (held, "its host asked for a pause")


def _state(row: Row) -> Text:
    if not row["registered"]:
        return Text("not in feeds.yaml", style="dim")
    if not row["enabled"]:
        return Text("disabled", style="dim")
    if row["consecutive_failures"]:
        sentence = (
            f"failed {int(row['consecutive_failures'])}x, {row['last_error_kind']}: {row['last_error']}"
        )
        return Text(_plain(sentence), style="red")
    if row["warning"]:
        return Text(_plain(row["warning"]), style="yellow")
    if row["last_fetched_at"] is None:
        return Text("never visited", style="green")
    return Text.assemble(("ok", "green"), *((f"; {_plain(note)}", "yellow") for note in row.get("notes", ())))


def show_items(feed: Row, rows: Sequence[Row]) -> None:
    """A line an item."""
    console = _console()
    console.print(Text(_plain(f"{feed['title'] or feed['id']}  {feed['url']}")))
    if not rows:
        console.print("Nothing was collected yet.")
        return
    table = _table("id", "published", "title", "characters")
    for row in rows:
        published = row["pub_date"] + ("" if row["pub_date_source"] == "feed" else " (fetched)")
        table.add_row(
            row["id"][:12], published, _plain(row["title"] or row["link"] or row["guid"]),
            f"{int(row['content_characters'] or 0):,}",
        )  # fmt: skip
    console.print(table)


def show_fields(row: Row) -> None:
    """Name and value of each column that has one; of several values, each."""
    console = _console()
    fields = (
        (name, each)
        for name, value in row.items()
        for each in (value if isinstance(value, list) else [value])
    )
    for name, value in fields:
        if value is not None:
            shown = int(value) if isinstance(value, float) and value.is_integer() else value
            console.print(Text.assemble((f"{name:<22}", "bold"), _plain(shown)), soft_wrap=True)


_STATE_STYLES: Mapping[str, str] = {"ok": "green", "warning": "yellow", "failure": "bold red"}


def show_checks(checks: "Sequence[Check]") -> None:
    """A line a check, its mending below it, and how many of each there are."""
    console = _console()
    for check in checks:
        style = _STATE_STYLES[check.state]
        text = Text.assemble((f"{check.state:<8}", style), (f"{check.name:<16}", "bold"), _plain(check.found))
        console.print(text, soft_wrap=True)
        for line in check.mend.splitlines():
            console.print(Text(f"{'':<24}{_plain(line)}", style=style), soft_wrap=True)
    counts = Counter(check.state for check in checks)
    console.print(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failure']} failures")


def copied_as_json(copied: Copied) -> dict[str, Any]:
    """What a copy came to, for programs."""
    made = {**copied.tables, "objects": copied.objects}
    return {
        **{name: {"count": each.count, "sha256": each.sha256} for name, each in made.items()},
        "object_bytes": copied.object_bytes,
        "rows_written": copied.rows_written,
        "objects_written": copied.objects_written,
    }


def show_copied(copied: Copied) -> None:
    """What lies on both sides now, with its hashes."""
    console = _console()
    table = _table("what", "items", "SHA-256")
    for name, each in {**copied.tables, "objects": copied.objects}.items():
        table.add_row(name, f"{each.count:,}", each.sha256[:32])
    console.print(table)
    console.print(
        f"Both sides hold the same; written now: {copied.rows_written:,} rows and"
        f" {copied.objects_written:,} of {copied.objects.count:,} objects"
        f" ({copied.object_bytes / 1e6:,.1f} MB in all).",
        soft_wrap=True,
    )


def cleaned_as_json(cleaned: "CleanResult") -> dict[str, Any]:
    """What a clean came to, for programs."""
    by_feed = {id: asdict(removed) for id, removed in sorted(cleaned.by_feed.items())}
    return {**cleaned.figures(), "by_feed": by_feed, "refusals": cleaned.refusals}


def show_cleaned(cleaned: "CleanResult") -> None:
    """What went, and what did not and why."""
    console = _console()
    total = cleaned.total
    would = "would be " if cleaned.dry_run else ""
    parts = [
        (total.items, f"{total.items:,} items {would}removed"),
        (total.images, f"{total.images:,} images ({total.image_bytes / 1e6:,.1f} MB) {would}removed"),
        (total.backups, f"{total.backups:,} backups ({total.backup_bytes / 1e6:,.1f} MB) {would}removed"),
        (cleaned.backups_renewed, f"{cleaned.backups_renewed:,} backups {would}put again, to last"),
        (cleaned.leftovers, f"{cleaned.leftovers:,} files of killed processes {would}removed"),
    ]
    said = ", ".join(text for number, text in parts if number)
    console.print(f"{said or 'Nothing is past its time'}.", soft_wrap=True)
    table = _table("feed", "items", "images", "backups")
    first = sorted(cleaned.by_feed.items(), key=lambda each: (-each[1].items, -each[1].backups, each[0]))
    for id, removed in first[:_FEEDS_SHOWN]:
        table.add_row(id, f"{removed.items:,}", f"{removed.images:,}", f"{removed.backups:,}")
    if first:
        console.print(table)
    if len(first) > _FEEDS_SHOWN:
        console.print(f"... and {len(first) - _FEEDS_SHOWN} more feeds; --json has them all")
    if cleaned.items_waiting:
        console.print(f"{cleaned.items_waiting:,} items wait: a run is downloading their images.")
    if cleaned.refused:
        complain(f"{cleaned.refused:,} objects could not be removed; their items stay for the next time:")
    for key, reason in islice(cleaned.refusals.items(), _FAILURES_SHOWN):
        complain(f"  {key}: {reason}")


def purged_as_text(figures: Mapping[str, int | bool]) -> str:
    """What a purge of run history came to."""
    would = "would be " if figures["dry_run"] else ""
    room = f"{figures['runs_removed']:,} runs {would}removed ({figures['bytes_removed'] / 1e6:,.1f} MB)"
    parts = [
        (figures["backfills_removed"], f"{figures['backfills_removed']:,} backfills"),
        (figures["ticks_removed"], f"{figures['ticks_removed']:,} ticks"),
        (figures["orphans_removed"], f"files of {figures['orphans_removed']:,} runs that were gone"),
        (figures["heartbeats"], f"{figures['heartbeats']:,} feeds told of again, so that they stay green"),
        (figures["runs_kept"], f"{figures['runs_kept']:,} runs kept, the last to tell of something"),
        (figures["runs_left"], f"{figures['runs_left']:,} runs left for the next time"),
    ]
    return ", ".join([room, *(text for number, text in parts if number)]) + "."


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table of strangers' text."""
    table = _table(*columns)
    for row in rows:
        table.add_row(*map(_plain, row))
    _console().print(table)


def _table(*columns: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in _NUMBERS else "left")
    return table
