"""The commands that keep the stores in order, and what they print: `purge`, `forget`, `migrate`, `schema`,
`move-images`.

The daemon does the purge by itself each day.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from itertools import product
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.home_lock import HomeLock
from rss_pipeline.cli.output.terminal import Bars, complain, say, say_content, say_json
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import (
    DatabaseFull,
    ForgetRefused,
    HomeNotLockable,
    InfrastructureError,
    ObjectStoreUnavailable,
)
from rss_pipeline.features import FEATURES
from rss_pipeline.reserve import reserve_released
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import check_not_lost, connect, open_database, open_objects
from rss_pipeline.storage.database import Database, InFile
from rss_pipeline.storage.schema import migrate as apply_migrations
from rss_pipeline.storage.schema import schema_text

if TYPE_CHECKING:
    from rss_pipeline.pipeline.registry.sync import RegistrySync
from collections.abc import Mapping, Sequence

from rss_pipeline.cli.output.terminal import (
    show_table,
)
from rss_pipeline.storage.database import Room, Row


@click.command()
@click.option(
    "--days",
    type=click.FloatRange(0, min_open=True),
    help="Remove runs older than this; default RSS_HISTORY_DAYS.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@as_json
@click.pass_obj
def purge(settings: Settings, days: float | None, dry_run: bool, as_json: bool) -> None:
    """Remove Dagster's history of old runs. The daemon does so each day. Collected items stay."""
    from rss_pipeline.orchestration.instance.nothing_to_purge import nothing_to_purge
    from rss_pipeline.orchestration.instance.purged import Purged

    before = utc_now() - timedelta(days=settings.history_days if days is None else days)
    with reserve_released(settings.home), open_database(settings, alone_where_full=True) as database:
        if dry_run and nothing_to_purge(settings.dagster_home, database, before=before):
            figures = Purged(dry_run=True).figures()
        else:
            figures = _purge_in_process(settings, database, days=days, dry_run=dry_run)
    if as_json:
        say_json(figures)
    else:
        say(purged_as_text(figures))


def _purge_in_process(
    settings: Settings, database: Database, *, days: float | None, dry_run: bool
) -> dict[str, int | bool]:
    import dagster as dg

    from rss_pipeline.orchestration.build import build_definitions
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.orchestration.upkeep.purge_job import purge_in_process

    with open_instance(settings) as instance:
        definitions = build_definitions(
            settings,
            resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
        )
        return purge_in_process(definitions, instance, days=days, dry_run=dry_run)


@click.command()
@click.argument("feed", required=False)
@click.option(
    "--unlisted", is_flag=True, help="Forget every feed that is neither in feeds.yaml nor subscribed to."
)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.pass_obj
def forget(settings: Settings, feed: str | None, unlisted: bool, yes: bool) -> None:
    """Delete FEED's rows, partition key and articles' pages. Its backups and images stay in the object store.

    FEED must have left feeds.yaml, and no user may subscribe to it. It works in a database that is
    full, and on a full disk, too. Exit code 1 if a feed could not be forgotten.
    """
    if (feed is None) != unlisted:
        raise click.UsageError("name a FEED, or use --unlisted for all that are no longer in feeds.yaml")
    from rss_pipeline.pipeline.registry.sync import check_forgettable

    with reserve_released(settings.home), open_database(settings, alone_where_full=True) as database:
        if feed is None:
            _forget_unlisted(settings, database, yes=yes)
            return
        found = one_feed(database, feed)
        # It may have been taken out a moment ago, and no poll sees that on a full disk.
        synced = _synced(settings, database) if found["listed"] else None
        is_gone = synced is not None and found["id"] in synced.forgotten
        if not is_gone:
            check_forgettable(database, found["id"], now=utc_now())
            if not yes:
                click.confirm(f"Delete {found['id']} ({found['url']}) with its items?", abort=True)

        from rss_pipeline.orchestration.instance.forget_feed import forget_feed
        from rss_pipeline.orchestration.instance.home import open_instance
        from rss_pipeline.orchestration.registry_partitions import register

        gone = {"items": 0, "image_tasks": 0}
        with open_instance(settings) as instance:
            if synced is not None:
                register(database, instance, synced)
            if not is_gone:
                gone = forget_feed(database, instance, found["id"])
        _forget_objects(settings, [found["id"]])
        say(f"{found['id']}: {gone['items']} items and {gone['image_tasks']} image tasks deleted.")
        _shrink(database)


def _forget_unlisted(settings: Settings, database: Database, *, yes: bool) -> None:
    from rss_pipeline.storage.feeds.forget import unlisted

    # First, so that a feed that was taken out or added a moment ago counts as what it is now.
    synced = _synced(settings, database)
    rows = unlisted(database)
    if rows and not yes:
        show_unlisted(rows)
        click.confirm("Delete these feeds with their items?", abort=True)
    if not (rows or synced.forgotten):
        say("There is nothing to forget: every feed is in feeds.yaml.")
        return
    from rss_pipeline.orchestration.instance.forget_feed import forget_feed
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.orchestration.registry_partitions import register

    feeds = items = 0
    gone = list(synced.forgotten)
    refused: dict[str, None] = {}
    with open_instance(settings) as instance:
        register(database, instance, synced)
        for row in rows:
            try:
                items += forget_feed(database, instance, row["id"])["items"]
                feeds += 1
                gone.append(row["id"])
            except ForgetRefused as error:
                refused[str(error)] = None
    _forget_objects(settings, gone)
    say(f"{feeds} feeds and {items} items deleted.")
    _shrink(database)
    for sentence in refused:
        complain(sentence)
    if refused:
        sys.exit(1)


def _forget_objects(settings: Settings, feed_ids: Sequence[str]) -> None:
    """Remove what features keep of these feeds in the object store."""
    objects = open_objects(settings)
    forgets = [feature.forget.load() for feature in FEATURES if feature.forget is not None]
    for forget_of, id in product(forgets, feed_ids):
        refused: Mapping[str, str]
        try:
            refused = forget_of(objects, id)
        except ObjectStoreUnavailable as error:
            refused = {id: str(error)}
        for key, reason in refused.items():
            complain(f"{key} could not be removed, which the next clean tries again: {reason}")


def _synced(settings: Settings, database: Database) -> "RegistrySync":
    from rss_pipeline.pipeline.registry.sync import sync_registry

    synced = sync_registry(database, settings, now=utc_now())
    say(f"{settings.feeds_file}: {synced}", err=True)
    return synced


def _shrink(database: Database) -> None:
    """Return the room of deleted rows to the disk, where the database is a file here that can."""
    if isinstance(database, InFile):
        database.shrink()
        show_room(database.room())


@click.command()
@click.option(
    "--compact",
    is_flag=True,
    help="Also write the file of an embedded database anew: it shrinks, now and with each clean. The command"
    " says first how much room that needs. Stop `rss-pipeline up` before.",
)
@click.option("--yes", is_flag=True, help="With --compact: skip the confirmation.")
@click.option(
    "--empty",
    is_flag=True,
    help="Make an empty embedded database also where the object store has backups: the one that wrote them is"
    " given up.",
)
@click.pass_obj
def migrate(settings: Settings, compact: bool, yes: bool, empty: bool) -> None:
    """Bring the database's schema up to date."""
    database = connect(settings)
    try:
        if not empty:
            check_not_lost(database, settings.database, settings.objects)
        applied = apply_migrations(database)
        say(f"{settings.database.place}: {', '.join(applied) or 'already up to date'}")
        if compact and isinstance(database, InFile):
            _compact(settings, database, yes=yes)
        elif compact:
            say("It is no file of this machine: its server uses the room of deleted rows by itself.")
    finally:
        database.close()


@click.command()
@click.argument("table", required=False)
def schema(table: str | None) -> None:
    """Print the tables of the database, as SQL with a comment for each column; or one of them."""
    text = schema_text()
    if table is None:
        say_content(text)
        return
    # A blank line ends a part only behind a statement.
    parts = re.split(r"(?<=;)\n\n", text)
    found = [part for part in parts if f"CREATE TABLE {table} (" in part]
    if not found:
        names = sorted(re.findall(r"^CREATE TABLE (\w+)", text, re.MULTILINE))
        raise click.BadParameter(f"there is no table {table!r}; there are {', '.join(names)}")
    # Headings stand before it, and a blank line.
    start = found[0].rfind("\n\n", 0, found[0].index("CREATE TABLE"))
    say_content(found[0][start + 1 :].strip() + "\n")


def _compact(settings: Settings, database: InFile, *, yes: bool) -> None:
    room, disk = database.room(), shutil.disk_usage(settings.home).free
    size, free, needed, there = map(megabytes, (room.bytes, room.free, room.needed, disk))
    say(
        f"{settings.database_path} has {size}, of which {free} are free. To write it anew takes {needed}"
        f" below {settings.home} for that time; {there} are free there."
    )
    too_little = (
        f"there is too little room below {settings.home}: make {needed} free there. Until then new rows take"
        " the room that is free in the file"
    )
    if disk < room.needed:
        raise InfrastructureError(too_little)
    if not yes:
        click.confirm("Write it anew? Nothing can be stored meanwhile.", abort=True)
    with _without_up(settings):
        try:
            database.compact()
        except DatabaseFull as error:
            # Others have taken it meanwhile.
            raise InfrastructureError(too_little) from error
    say(f"It has {megabytes(database.room().bytes)} now, and shrinks with each clean.")


@contextmanager
def _without_up(settings: Settings) -> Iterator[None]:
    """Within, no `up` works in this home, where its file system has locks."""
    try:
        lock = HomeLock(settings.home, address="")
    except HomeNotLockable:
        yield
        return
    try:
        yield
    finally:
        lock.release()


@click.command()
@as_json
@click.pass_obj
def move_images(settings: Settings, as_json: bool) -> None:
    """Move images and topics to the places where everybody, or nobody, may read them.

    Images of public feeds and topics go into R2_PUBLIC_BUCKET (or S3_PUBLIC_BUCKET), under the same keys, and
    images of private feeds out of the place that everybody may read. New ones are put there anyway. After an
    interruption, run it again: it continues.
    """
    from rss_pipeline.storage.images.places import move

    with open_database(settings) as database, Bars() as progress:
        progress.begin("objects", 0)
        moved = move(
            database, open_objects(settings), on_moved=lambda number: progress.advance("objects", number)
        )
    if as_json:
        say_json(asdict(moved))
    else:
        say(
            f"{moved.public:,} images and documents of topics moved to where everybody may read them,"
            f" {moved.private:,} images of private feeds to where nobody else may."
        )


# What the commands print, and that of `clean` about the room in the file.

_FEEDS_SHOWN = 20


def show_unlisted(rows: Sequence[Row]) -> None:
    """The feeds that `forget --unlisted` would delete, with their items."""
    shown = rows[:_FEEDS_SHOWN]
    show_table(
        ("feed", "items", "address"), [(row["id"], f"{int(row['items']):,}", row["url"]) for row in shown]
    )
    more = f" ({len(rows) - len(shown):,} more are not shown)" if len(rows) > len(shown) else ""
    items = sum(int(row["items"]) for row in rows)
    say(f"{len(rows):,} feeds are no longer in feeds.yaml{more}; they have {items:,} items.")


def show_room(room: Room) -> None:
    """Say that what was deleted leaves room in the file, where it does not shrink."""
    if room.free and not room.shrinks:
        say(
            f"{megabytes(room.free)} of the database's {megabytes(room.bytes)} are free for new rows; its"
            " file does not shrink yet. `rss-pipeline migrate --compact` changes that, and says first how"
            " much room it needs."
        )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def purged_as_text(figures: Mapping[str, int | bool]) -> str:
    """The result of a purge of run history."""
    would = "would be " if figures["dry_run"] else ""
    room = f"{figures['runs_removed']:,} runs {would}removed ({figures['bytes_removed'] / 1e6:,.1f} MB)"
    parts = [
        (figures["backfills_removed"], f"{figures['backfills_removed']:,} backfills"),
        (figures["ticks_removed"], f"{figures['ticks_removed']:,} ticks"),
        (
            figures["orphans_removed"],
            f"files of {figures['orphans_removed']:,} runs that were deleted before",
        ),
        (figures["heartbeats"], f"{figures['heartbeats']:,} feeds reported again, so that they stay green"),
        (
            figures["runs_kept"],
            f"{figures['runs_kept']:,} runs kept, because each holds the last materialization of something",
        ),
        (figures["runs_left"], f"{figures['runs_left']:,} runs left for the next purge"),
    ]
    return ", ".join([room, *(text for number, text in parts if number)]) + "."
