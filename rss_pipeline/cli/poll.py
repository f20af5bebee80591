"""The command `poll`: collecting in this process. The rounds are in pipeline/visits/rounds.py."""

import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import as_json, one_feed, yes
from rss_pipeline.cli.output import terminal
from rss_pipeline.cli.output.polls import PollResult
from rss_pipeline.cli.start import imports_that_stay
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import RegistryError, ensure_room
from rss_pipeline.reserve import keep_reserve
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.due import due_now

if TYPE_CHECKING:
    from rss_pipeline.pipeline.registry.sync import RegistrySync


@click.command()
@click.argument("feed", nargs=-1)
@click.option(
    "--all",
    "all_feeds",
    is_flag=True,
    help="Visit every feed, due or not; requests stay conditional and paced.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0),
    help="Seconds to wait for FEED while another run visits it or its host, which makes way, or until a"
    " minute has passed since its last answer. By default until the claim of a killed run is over:"
    " RSS_PIPELINE_LEASE_SECONDS and a minute.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 also if any feed failed or was not visited.")
@yes
@as_json
@click.pass_obj
def poll(
    settings: Settings,
    feed: tuple[str, ...],
    all_feeds: bool,
    wait: float | None,
    strict: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Poll in this process until nothing is due. FEED is an id, a URL or a part of one.

    Named feeds, or all feeds with --all, are visited even if they are not due, but not while their host is on
    hold (Retry-After). Exit code 1 for what a person has to fix now: no feed could be reached, a store
    failed, feeds.yaml has mistakes; and if a FEED that was named failed or was not visited. Other feeds that
    fail are tried again by themselves; with --strict they count, too.
    """
    from rss_pipeline.pipeline.read.feed_notes import none_reached
    from rss_pipeline.pipeline.triggers.starts import has_pending_work, has_registry_news

    is_requested = bool(feed) or all_feeds
    patience = settings.lease_seconds + 60.0 if wait is None else wait
    ensure_room(settings.home, settings.dagster_home)
    keep_reserve(settings.home)
    with open_database(settings) as database:
        synced, refused = sync(settings, database, yes=yes)
        if synced is None or not has_registry_news(synced):
            # A name that no feed has is known here, seconds before Dagster is loaded.
            for text in feed:
                one_feed(database, text)
        if synced is None or is_requested or has_pending_work(database, synced, now=utc_now()):
            result = _poll_in_process(
                settings, database, synced, feed, all_feeds=all_feeds, patience=patience
            )
        else:
            result = replace(
                PollResult.of([]),
                claimed=due_now(database, utc_now()),
            )
        if not result.errors:
            result = replace(result, nothing_reached=none_reached(database))
    result = replace(result, registry_error=refused)
    if as_json:
        terminal.say_json(result.as_json())
    else:
        result.show()
    for sentence in result.not_visited():
        terminal.complain(sentence)
    if result.publication_error is not None:
        terminal.complain(f"Topics were not published; the next poll tries again. {result.publication_error}")
    if refused is not None:
        # The mistakes themselves were printed first, and may have left the screen.
        terminal.complain(
            f"{settings.feeds_file} has errors (see above); the previous list of feeds stays in use."
        )
    if result.needs_a_person or ((feed or strict) and (result.failures or result.left)):
        sys.exit(1)


def _poll_in_process(
    settings: Settings,
    database: Database,
    synced: "RegistrySync | None",
    feed: tuple[str, ...],
    *,
    all_feeds: bool,
    patience: float,
) -> PollResult:
    with imports_that_stay():
        from rss_pipeline.pipeline.session.parser_pool import begin_server

        if synced is not None and synced.changes.added:
            # Each has a document, and Dagster takes a second to load.
            begin_server()
        import dagster as dg

        from rss_pipeline.orchestration.build_polls import poll_definitions, refresh_definitions
        from rss_pipeline.orchestration.in_process import poll_in_process, refresh_in_process
        from rss_pipeline.orchestration.instance.home import open_instance_at_terminal
        from rss_pipeline.orchestration.registry_partitions import register
        from rss_pipeline.pipeline.triggers.starts import refresh_reason
        from rss_pipeline.pipeline.visits.rounds import not_begun, not_visited, on_hold, without_good
        from rss_pipeline.storage.refresh.open_requests import waiting

    started = utc_now()
    with open_instance_at_terminal(settings) as instance:
        if synced is not None:
            register(database, instance, synced)
        ids = [one_feed(database, text)["id"] for text in feed]
        # Where no `up` runs, nobody else makes the visits that users of the reader wait for.
        of_users = waiting(database, now=utc_now())
        failed = None
        if of_users.can_begin and not ids:
            definitions = refresh_definitions(settings, clock=utc_now)
            failed = refresh_in_process(definitions, instance, reason=refresh_reason(of_users))
        with terminal.Bars() as progress:
            # The runs use the open database and the registry already read: on D1 each is a request more.
            definitions = poll_definitions(
                settings,
                clock=utc_now,
                progress=progress,
                synced=synced,
                resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
            )
            polls = poll_in_process(
                definitions,
                instance,
                database,
                clock=utc_now,
                feeds=ids,
                all_feeds=all_feeds,
                patience=patience,
            )
            counts: Counter[str] = Counter()
            # Not a loop: its variable would keep a round's visits while the next round makes as many.
            rounds = list(map(partial(without_good, counts), polls))
        late = not_begun(rounds)
        left = [*on_hold(rounds), *late]
        if (ids or all_feeds) and synced is not None and all(round_.error is None for round_ in rounds):
            named = not_visited(database, ids, since=started, now=utc_now(), all_feeds=all_feeds)
            ids_late = {each.feed_id for each in late}
            left = [*(each for each in named if each.feed_id not in ids_late), *late]
    result = PollResult.of(rounds, left, counts=counts)
    errors = [*([] if failed is None else [failed]), *result.errors]
    return replace(result, errors=errors, requested=0 if ids else of_users.can_begin)


def sync(
    settings: Settings, database: Database, *, yes: bool
) -> "tuple[RegistrySync, None] | tuple[None, str]":
    """Sync the registry; or None and, printed as well, the mistakes of feeds.yaml."""
    from rss_pipeline.pipeline.registry.sync import sync_registry

    try:
        synced = sync_registry(database, settings, now=utc_now(), yes=yes)
    except RegistryError as error:
        terminal.complain(str(error))
        return None, str(error)
    terminal.say(f"{settings.feeds_file}: {synced}", err=True)
    return synced, None
