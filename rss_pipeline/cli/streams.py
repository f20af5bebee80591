"""The command `streams`: what a feed can be split by, its streams, and more of them as YAML to paste."""

import os

import click

from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.output.terminal import complain, say_json
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.stream import StreamSpec, streams_of_json
from rss_pipeline.errors import RegistryError
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database_to_read


@click.command()
@click.argument("feed")
@as_json
@click.pass_obj
def streams(settings: Settings, feed: str, as_json: bool) -> None:
    """Show the authors, categories and streams of FEED, and a block of YAML with more streams to paste.

    Streams by author, category, title or link are judged as feeds.yaml has them now, over all that is stored:
    edit the file, run this again, and see what they select. `newest` is the age of a stream's newest item,
    `last match` that of the last document with one of its items.
    """
    from rss_pipeline.cli.output import streams as output
    from rss_pipeline.pipeline.streams.survey import survey

    with open_database_to_read(settings) as database:
        found = one_feed(database, feed)
        specs = _in_file(settings, found["id"], streams_of_json(found["streams"]))
        result = survey(database, found["id"], specs)
    if as_json:
        say_json(output.as_json(found, result))
    else:
        output.show_streams(found, result, now=utc_now())


def _in_file(settings: Settings, feed_id: str, used: tuple[StreamSpec, ...]) -> tuple[StreamSpec, ...]:
    """The feed's streams of feeds.yaml; those of the last poll where it is not in it, or has mistakes."""
    from rss_pipeline.collector.registry.load import load_registry

    try:
        registry = load_registry(settings.feeds_file, environ=os.environ)
    except RegistryError as error:
        complain(f"{error}\nThe streams below are those of the last poll.")
        return used
    return next((spec.streams for spec in registry.feeds if spec.id == feed_id), used)
