"""The terminal: the only place that prints. Consoles, tables, progress bars, JSON, the error stream.

What a command prints is in the modules beside this one. Whatever they pass to this one, no character of a
publisher's text controls the terminal or forges a line; ruff refuses `click.echo` and `print` elsewhere
(TID251, T20 in pyproject.toml).
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from rss_pipeline.collector.models.plain_text import json_text, one_line, plain_lines
from rss_pipeline.errors import sentence_for
from rss_pipeline.storage.database import Row

ROWS_SHOWN = 40
"""Rows of a table that could be long; --json has them all."""
_NUMBERS = frozenset({"items", "characters", "images", "backups"})


class _Console(Console):
    """Renders publishers' text: `[/b]` in a title is no markup, `:x:` no emoji, ESC no command."""

    def __init__(self, *, stderr: bool) -> None:
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(one_line(each) if isinstance(each, str) else each for each in objects), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain_lines(segment.text))


class _Table(Table):
    """A table without line breaks in its cells: they would look like rows."""

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        super().add_row(*map(_cell, cells), **options)


def _cell(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, Text) and "\n" in cell.plain:
        return Text(one_line(cell.plain), style=cell.style)
    return one_line(cell) if isinstance(cell, str) else cell


def new_console(*, stderr: bool = False) -> Console:
    """A console for text from publishers; a string is printed as one line."""
    return _Console(stderr=stderr)


def plain(text: object) -> str:
    """The text as one line without control characters."""
    return one_line(str(text))


def say(sentence: str, *, err: bool = False) -> None:
    """Print one line."""
    click.echo(one_line(sentence), err=err)


def say_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    click.echo(json_text(value))


def say_content(html: str) -> None:
    """Print a document: as it is into a file or pipe, without control characters on a terminal."""
    if sys.stdout.isatty():
        click.echo(plain_lines(html))
    else:
        # Bytes, and no newline of ours: text would lose its escape sequences on the way into a pipe.
        click.echo(html.encode(), nl=False)


def complain(sentence: str) -> None:
    """Print to the error stream, so that the output of `--json` stays JSON. Its line breaks are ours."""
    new_console(stderr=True).print(Text(plain_lines(sentence), style="red"), soft_wrap=True)


def explained(error: Exception, *places: Path) -> bool:
    """True where the error has a sentence, which is printed instead of a traceback: see `sentence_for`."""
    if (sentence := sentence_for(error, *places)) is None:
        return False
    complain(sentence)
    return True


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
            if isinstance(value, bool):
                shown = "yes" if value else "no"
            # Lines of a value are indented: none of them looks like the name of another one.
            lines = f"\n{'':<22}".join(plain(line) for line in str(shown).splitlines() or [""])
            console.print(Text.assemble((f"{name:<22}", "bold"), lines), soft_wrap=True)


def show_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table of text from publishers."""
    table = new_table(*columns)
    for row in rows:
        table.add_row(*map(plain, row))
    new_console().print(table)


def new_table(*columns: str) -> Table:
    table = _Table(show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in _NUMBERS else "left")
    return table
