"""The `rss-pipeline` command: the group of all commands, its settings, and errors as sentences.

The commands are in the modules beside this one, one for each family; what they print is formed in output/.
Dagster is imported only where a command needs it: its import takes seconds.
"""

import logging
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from rss_pipeline.cli.output import terminal
from rss_pipeline.environment import load_env_file
from rss_pipeline.features import FEATURES
from rss_pipeline.features.feature import Part
from rss_pipeline.settings import Settings, unknown_settings

_COMMANDS = {
    "up": "up.up",
    "poll": "poll.poll",
    "images": "images.images",
    "reader": "reader.reader",
    "status": "status.status",
    "items": "status.items",
    "item": "status.item",
    "export": "export.export",
    "add": "add.add",
    "purge": "upkeep.purge",
    "forget": "upkeep.forget",
    "migrate": "upkeep.migrate",
    "schema": "upkeep.schema",
    "move-images": "upkeep.move_images",
    "user": "user.user",
}
"""Command to its module in this package, and its name there; those of features are in their lists."""


def _of_features() -> dict[str, Part[click.Command]]:
    return {name: part for feature in FEATURES for name, part in feature.commands.items()}


class _Command(click.Group):
    """A group that imports a command when it is used, and prints errors of this project as sentences,
    without a traceback. The modules of all commands take a tenth of a second to import."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click passes it)
        return sorted([*_COMMANDS, *_of_features()])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in (of_features := _of_features()):
            return of_features[cmd_name].load()
        if cmd_name not in _COMMANDS:
            if ctx.resilient_parsing:
                return None
            raise click.NoSuchCommand(cmd_name, possibilities=self.list_commands(ctx), ctx=ctx)
        module, _, name = _COMMANDS[cmd_name].partition(".")
        command: click.Command = getattr(import_module(f"rss_pipeline.cli.{module}"), name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            settings = ctx.obj
            places = (
                [settings.home, settings.dagster_home] if isinstance(settings, Settings) else [Path.cwd()]
            )
            if not terminal.explained(error, *places):
                raise
            ctx.exit(1)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rss_pipeline")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Collect RSS and Atom feeds, and lose none of what was collected."""
    # The home has what people read, backups of feeds with a password, and keys: it is this user's alone.
    before = os.umask(0o077)
    ctx.call_on_close(lambda: os.umask(before))
    load_env_file(Path.cwd())
    # The requests that D1 refused are for the log of a run: at a terminal the sentence comes first.
    logging.getLogger("rss_pipeline.storage.backends").addHandler(logging.NullHandler())
    if ctx.invoked_subcommand == "doctor":
        return  # It reads the settings itself, because their mistakes are findings beside others.
    if ctx.invoked_subcommand != "copy":  # It has two of them, one for each side.
        ctx.obj = Settings.from_environ(os.environ, cwd=Path.cwd())
    for sentence in unknown_settings(os.environ):
        terminal.complain(sentence)
