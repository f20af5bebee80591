"""The `rss-pipeline` command: the group of all commands, its settings, and errors as sentences.

The commands are in the modules beside this one, one for each family; what they print is formed in output/.
Dagster is imported only where a command needs it, because its import takes seconds.
"""

import os
from pathlib import Path
from typing import Any

import click
from dotenv import load_dotenv

from rss_pipeline.cli.add import add
from rss_pipeline.cli.export import export
from rss_pipeline.cli.feed_list import export_opml, import_
from rss_pipeline.cli.metrics import metrics
from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.poll import poll, up
from rss_pipeline.cli.replay import replay, restore
from rss_pipeline.cli.status import item, items, status
from rss_pipeline.cli.streams import streams
from rss_pipeline.cli.topics import publish
from rss_pipeline.cli.upkeep import clean, copy, doctor, forget, migrate, purge
from rss_pipeline.errors import RssPipelineError, disk_full, disk_is_full
from rss_pipeline.settings import Settings


class _Command(click.Group):
    """A group that prints errors of this project as sentences, without a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RssPipelineError as error:
            terminal.complain(str(error))
            ctx.exit(1)
        except Exception as error:
            # From a library: Dagster's history, a file that was to be written.
            home = ctx.obj.home if isinstance(ctx.obj, Settings) else Path.cwd()
            if not disk_is_full(error, at=home):
                raise
            terminal.complain(f"{_where(error, home)}. It was noticed by {type(error).__name__}: {error}")
            ctx.exit(1)


def _where(error: Exception, home: Path) -> str:
    """The first words about a full disk: that of the file, or of the command's output, which has no name."""
    if isinstance(error, OSError):
        return "the disk is full" if error.filename is None else disk_full(Path(error.filename).parent)
    return disk_full(home)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rss_pipeline")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Collect RSS and Atom feeds, and lose none of what was collected."""
    load_dotenv(Path.cwd() / ".env")
    if ctx.invoked_subcommand == "doctor":
        return  # It reads the settings itself, because their mistakes are findings beside others.
    ctx.obj = Settings.from_environ(os.environ, cwd=Path.cwd())
    for sentence in ctx.obj.unknown:
        terminal.complain(sentence)


for command in (
    *(up, poll, status, items, item, streams, export, publish),
    *(add, import_, export_opml),
    *(replay, restore, clean, purge, forget, migrate, doctor, copy, metrics),
):
    main.add_command(command)
