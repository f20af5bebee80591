"""The terminal: consoles, tables, progress bars and the error stream, for all commands.

What a command prints is in the modules beside this one.
"""

import unicodedata
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from rss_pipeline.storage.database import Row

ROWS_SHOWN = 40
"""Rows of a table that could be long; --json has them all."""
_NUMBERS = frozenset({"items", "characters", "images", "backups"})


def new_console(*, stderr: bool = False) -> Console:
    """A console for text from publishers: `[/b]` in a title is no markup, `:x:` no emoji."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def plain(text: object) -> str:
    """The text without control characters, which would control the terminal (JSON feeds may hold any)."""
    return "".join(c if c in "\n\t" or unicodedata.category(c) != "Cc" else "\ufffd" for c in str(text))


def complain(sentence: str) -> None:
    """Print to the error stream, so that the output of `--json` stays JSON."""
    new_console(stderr=True).print(Text(plain(sentence), style="red"), soft_wrap=True)


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


def show_fields(row: Row) -> None:
    """Name and value of each column with a value; one line for each of several values."""
    console = new_console()
    fields = (
        (name, each)
        for name, value in row.items()
        for each in (value if isinstance(value, list) else [value])
    )
    for name, value in fields:
        if value is not None:
            shown = int(value) if isinstance(value, float) and value.is_integer() else value
            console.print(Text.assemble((f"{name:<22}", "bold"), plain(shown)), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table of text from publishers."""
    table = new_table(*columns)
    for row in rows:
        table.add_row(*map(plain, row))
    new_console().print(table)


def new_table(*columns: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in _NUMBERS else "left")
    return table
