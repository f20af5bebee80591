"""What the commands share: options, and the feed that a person means.

The commands themselves are in cli.py and replay_commands.py.
"""

import click

from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.reports import overview

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def one_feed(database: Database, text: str) -> Row:
    """The feed that an id, a URL or a part of one names.

    Raises:
        click.ClickException: it names none, or several, which the text lists.
    """
    found = overview.find_feeds(database, text)
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(f"no feed matches {text!r}; `rss-pipeline status` lists them")
    names = "\n".join(f"  {row['id']}  {row['url']}" for row in found)
    raise click.ClickException(f"{text!r} matches several feeds; name one:\n{names}")
