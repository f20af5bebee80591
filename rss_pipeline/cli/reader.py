"""The command `reader`: the reader's APIs in this process, without Dagster."""

import os
import sys

import click

from rss_pipeline.cli.beside import beside
from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.settings import Settings

_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""For the process that builds the index: FTS5 looks up each word in a table of 32 MB, and with pages of 4 KB
nearly each look is for one that the processor does not know."""


@click.command()
@click.pass_obj
def reader(settings: Settings) -> None:
    """Serve the reader alone: its JSON API and the Google Reader API, with a login.

    `up` starts it as well (RSS_READER=off: it does not). This command is for a machine of its own, beside one
    that collects into the same stores. SIGINT (Ctrl-C) and SIGTERM end it. `rss-pipeline user add` adds who
    may log in.
    """
    from rss_pipeline.api.server import serve
    from rss_pipeline.pipeline.health.watch import watching

    arguments = ["search-index", "--follow", "--parent", str(os.getpid())]
    # Before the server has threads.
    with (
        beside("The search index", arguments, {**_HUGE_PAGES, **os.environ}),
        watching(settings, clock=utc_now),
    ):
        serve(settings, say=_say)


def _say(line: str) -> None:
    terminal.say(line)
    sys.stdout.flush()
