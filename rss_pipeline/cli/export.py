"""The command `export`: collected items to a file, or to standard output.

The file formats are in pipeline/read/item_files.py.
"""

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from rss_pipeline.cli.arguments import as_json, one_member
from rss_pipeline.cli.output.terminal import Bars, say, say_json
from rss_pipeline.pipeline.read.item_files import FORMATS, Format
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database_to_read, open_objects
from rss_pipeline.storage.items.cursor import Position


class _Since(click.ParamType["str | datetime"]):
    name = "when"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | datetime:
        """A day or an instant (UTC if it has no time zone), or a cursor."""
        text = str(value)
        try:
            found = datetime.fromisoformat(text)
        except ValueError:
            try:
                return str(Position.of(text))
            except ValueError:
                self.fail(f"{text!r} is neither a day (2026-02-18) nor an instant nor a cursor", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command()
@click.argument("feed", nargs=-1)
@click.option(
    "--format", "format_", type=click.Choice(FORMATS), help="Default: by the ending of FILE, else jsonl."
)
@click.option(
    "--since", type=_Since(), help="Only items that came in from this day on (UTC), or after this cursor."
)
@click.option("--html", is_flag=True, help="Add a field `html`: the content with archived images in place.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to FILE; default, and with -: standard output.",
)
@as_json
@click.pass_obj
def export(
    settings: Settings,
    feed: tuple[str, ...],
    format_: Format | None,
    since: str | datetime | None,
    html: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the items of FEED (an id, a URL or a part of one; or FEED/STREAM), or all items, to a file.

    One JSON object per line, or Parquet if pyarrow is installed. At the end it prints a cursor: give it to
    --since the next time, to get only the items that came in after it.
    """
    from rss_pipeline.pipeline.read.feed_reader import FeedReader
    from rss_pipeline.pipeline.read.item_files import export as export_items

    to_stdout = output is None or str(output) == "-"
    format_ = format_ or ("parquet" if output is not None and output.suffix == ".parquet" else "jsonl")
    if to_stdout and (format_ == "parquet" or as_json):
        raise click.UsageError(f"{'--json' if as_json else 'parquet'} needs a file: -o FILE")
    with open_database_to_read(settings) as database, Bars() as progress:
        members = [str(one_member(database, text)) for text in feed] or None
        exported = export_items(
            FeedReader(database, open_objects(settings)),
            sys.stdout.buffer if output is None or to_stdout else output,
            format=format_,
            feeds=members,
            since=since,
            html=html,
            progress=progress,
        )
        sys.stdout.buffer.flush()
    if as_json:
        say_json({**asdict(exported), "file": str(output)})
    else:
        where = "" if to_stdout else f" in {output}"
        say(
            f"{exported.items:,} items of {exported.feeds:,} feeds{where};"
            f" for the next ones: --since {exported.cursor}",
            err=True,
        )
