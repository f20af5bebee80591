"""The command `copy`, and its result as text and as JSON."""

import os
from pathlib import Path
from typing import Any

import click

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output.terminal import Bars, new_console, new_table, say_json
from rss_pipeline.features.copy.service import SIDES, Copied, open_side
from rss_pipeline.features.copy.service import copy as copy_stores
from rss_pipeline.features.copy.sql import Fingerprint


@click.command()
@click.option(
    "--from", "source", type=click.Choice(SIDES), metavar="SIDE", required=True, help="The side to copy from."
)
@click.option(
    "--to", "target", type=click.Choice(SIDES), metavar="SIDE", required=True, help="The side to copy to."
)
@as_json
def copy(source: str, target: str, as_json: bool) -> None:
    """Copy all rows and objects to another storage, and check them by counts and hashes.

    \b
    SIDE is one of
      embedded    the file and the folder in RSS_PIPELINE_HOME
      cloudflare  D1 and R2, which the six variables D1_... and R2_... name
      postgres    DATABASE_URL and the bucket of R2_... or S3_...; without a bucket,
                  the folder in RSS_PIPELINE_HOME
      X+Y         X is sqlite, d1 or postgres, and Y is folder, r2 or s3

    The variables of both sides may be set, for this command alone. The target must be empty, or an earlier
    copy of the same source that was not used since. A store that both sides have stays as it is. Nothing is
    deleted on either side. After an interruption, run the same command again: it continues.
    """
    with (
        open_side(os.environ, source, cwd=Path.cwd(), as_source=True) as ours,
        open_side(os.environ, target, cwd=Path.cwd()) as theirs,
        Bars() as progress,
    ):
        copied = copy_stores(ours, theirs, progress=progress)
    if as_json:
        say_json(_as_json(copied))
    else:
        _show(copied)


def _as_json(copied: Copied) -> dict[str, Any]:
    """The result of a copy, for programs."""
    return {
        **{name: {"count": each.count, "sha256": each.sha256} for name, each in _made(copied).items()},
        "object_bytes": copied.object_bytes,
        "rows_written": copied.rows_written,
        "items_cut": copied.items_cut,
        "objects_written": copied.objects_written,
    }


def _show(copied: Copied) -> None:
    """Print the counts and hashes of both sides."""
    console = new_console()
    table = new_table("what", "items", "SHA-256")
    for name, each in _made(copied).items():
        table.add_row(name, f"{each.count:,}", each.sha256[:32])
    console.print(table)
    rows = f"{copied.rows_written:,} rows"
    if copied.objects is None:
        text = f"Both sides hold the same rows; written now: {rows}. The objects stay where they are."
    else:
        objects = (
            f"{copied.objects_written:,} of {copied.objects.count:,} objects"
            f" ({copied.object_bytes / 1e6:,.1f} MB in all)"
        )
        text = f"Both sides hold the same rows and objects; written now: {rows} and {objects}."
        if not copied.tables:
            text = f"Both sides hold the same objects; written now: {objects}. The rows stay where they are."
    console.print(text, soft_wrap=True)
    if copied.items_cut:
        cut = f"{copied.items_cut:,} items are cut there: they are larger than a row of D1."
        console.print(cut, soft_wrap=True)


def _made(copied: Copied) -> dict[str, Fingerprint]:
    return copied.tables | ({} if copied.objects is None else {"objects": copied.objects})
