"""The command `streams`: the streams of all feeds; of one, also what it can be split by, as YAML to paste."""

import os
from collections.abc import Mapping
from itertools import groupby

import click

from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.output.terminal import complain, say_json
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import RegistryError
from rss_pipeline.features.streams.model import StreamSpec, streams_of, streams_of_json
from rss_pipeline.features.streams.states import stream_states
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database_to_read


@click.command()
@click.argument("feed", required=False)
@as_json
@click.pass_obj
def streams(settings: Settings, feed: str | None, as_json: bool) -> None:
    """List the streams of all feeds. With FEED: its streams, authors and categories, and a block of YAML with
    more streams to paste.

    With FEED, streams by author, category, title or link are judged as feeds.yaml has them now, over all that
    is stored: edit the file, run this again, and see what they select. `newest` is the age of a stream's
    newest item, `last match` that of the last document with one of its items.
    """
    from rss_pipeline.features.streams import output
    from rss_pipeline.features.streams.survey import survey, without_items

    if feed is None:
        with open_database_to_read(settings) as database:
            states = stream_states(database)
        used = {id: tuple(each.spec for each in of) for id, of in groupby(states, lambda each: each.feed_id)}
        every = {id: without_items(id, specs, states) for id, specs in _in_file(settings, used).items()}
        if as_json:
            say_json(output.all_as_json(every))
        else:
            output.show_all(every, now=utc_now())
        return
    with open_database_to_read(settings) as database:
        found = one_feed(database, feed)
        specs = _in_file(settings, {found["id"]: streams_of_json(found["streams"])})[found["id"]]
        result = survey(database, found["id"], specs)
    if as_json:
        say_json(output.as_json(found, result))
    else:
        output.show_streams(found, result, now=utc_now())


def _in_file(
    settings: Settings, used: Mapping[str, tuple[StreamSpec, ...]]
) -> dict[str, tuple[StreamSpec, ...]]:
    """The streams of feeds.yaml by feed; those of the last poll, `used`, for feeds that are not in it, and
    for all where it has mistakes."""
    from rss_pipeline.collector.registry.load import load_registry

    try:
        registry = load_registry(settings.feeds_file, environ=os.environ)
    except RegistryError as error:
        complain(f"{error}\nThe streams below are those of the last poll.")
        return dict(used)
    return dict(sorted({**used, **{spec.id: streams_of(spec) for spec in registry.feeds}}.items()))
