"""The commands that keep the stores in order: `clean`, `purge`, `forget`, `migrate`, `schema`,
`copy`, `move-images`.

The daemon does the clean and the purge by itself each day.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.home_lock import HomeLock
from rss_pipeline.cli.output import upkeep as output
from rss_pipeline.cli.output.terminal import Bars, complain, say, say_content, say_json
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import DatabaseFull, ForgetRefused, HomeNotLockable, InfrastructureError
from rss_pipeline.features.copy.sides import SIDES, open_side
from rss_pipeline.features.copy.stores import copy as copy_stores
from rss_pipeline.reserve import reserve_released
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_database, open_objects
from rss_pipeline.storage.database import Database, InFile
from rss_pipeline.storage.schema import migrate as apply_migrations
from rss_pipeline.storage.schema import schema_text

if TYPE_CHECKING:
    from rss_pipeline.pipeline.registry.sync import RegistrySync


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option(
    "--yes",
    is_flag=True,
    help="Remove it although it is a large part of all items, or no feed was visited for days.",
)
@as_json
@click.pass_obj
def clean(settings: Settings, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove old items with their images, and old backups. The daemon does so each day.

    RSS_KEEP_DAYS, `keep` in feeds.yaml and RSS_BACKUP_DAYS set how long items and backups are kept. It works
    in a database that is full, and on a full disk, too. What a wrong clock would remove is refused without
    --yes; `restore --retired` brings items back. Exit code 1 if it refused, or something could not be
    removed.
    """
    from rss_pipeline.features.retention.clean import clean as clean_stores

    with (
        reserve_released(settings.home),
        open_database(settings, alone_where_full=True) as database,
        Bars() as progress,
    ):
        cleaned = clean_stores(
            database,
            open_objects(settings),
            settings,
            now=utc_now(),
            dry_run=dry_run,
            confirmed=yes,
            progress=progress,
        )
    if as_json:
        say_json(output.cleaned_as_json(cleaned))
    else:
        output.show_cleaned(cleaned)
    if cleaned.refused or cleaned.refusal is not None:
        sys.exit(1)


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
        say(output.purged_as_text(figures))


def _purge_in_process(
    settings: Settings, database: Database, *, days: float | None, dry_run: bool
) -> dict[str, int | bool]:
    import dagster as dg

    from rss_pipeline.orchestration.build import build_definitions
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.orchestration.upkeep.purge_in_process import purge_in_process

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
    """Delete FEED's rows and partition key. Its backups and images stay in the object store.

    FEED must have left feeds.yaml, and no user may subscribe to it. It works in a database that is
    full, and on a full disk, too. Exit code 1 if a feed could not be forgotten.
    """
    if (feed is None) != unlisted:
        raise click.UsageError("name a FEED, or use --unlisted for all that are no longer in feeds.yaml")
    from rss_pipeline.pipeline.registry.forget import check_forgettable

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
        say(f"{found['id']}: {gone['items']} items and {gone['image_tasks']} image tasks deleted.")
        _shrink(database)


def _forget_unlisted(settings: Settings, database: Database, *, yes: bool) -> None:
    from rss_pipeline.storage.feeds.unlisted import unlisted

    # First, so that a feed that was taken out or added a moment ago counts as what it is now.
    synced = _synced(settings, database)
    rows = unlisted(database)
    if rows and not yes:
        output.show_unlisted(rows)
        click.confirm("Delete these feeds with their items?", abort=True)
    if not (rows or synced.forgotten):
        say("There is nothing to forget: every feed is in feeds.yaml.")
        return
    from rss_pipeline.orchestration.instance.forget_feed import forget_feed
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.orchestration.registry_partitions import register

    feeds = items = 0
    refused: dict[str, None] = {}
    with open_instance(settings) as instance:
        register(database, instance, synced)
        for row in rows:
            try:
                items += forget_feed(database, instance, row["id"])["items"]
                feeds += 1
            except ForgetRefused as error:
                refused[str(error)] = None
    say(f"{feeds} feeds and {items} items deleted.")
    _shrink(database)
    for sentence in refused:
        complain(sentence)
    if refused:
        sys.exit(1)


def _synced(settings: Settings, database: Database) -> "RegistrySync":
    from rss_pipeline.pipeline.registry.sync import sync_registry

    synced = sync_registry(database, settings, now=utc_now())
    say(f"{settings.feeds_file}: {synced}", err=True)
    return synced


def _shrink(database: Database) -> None:
    """Return the room of deleted rows to the disk, where the database is a file here that can."""
    if isinstance(database, InFile):
        database.shrink()
        output.show_room(database.room())


@click.command()
@click.option(
    "--compact",
    is_flag=True,
    help="Also write the file of an embedded database anew: it shrinks, now and with each clean. The command"
    " says first how much room that needs. Stop `rss-pipeline up` before.",
)
@click.option("--yes", is_flag=True, help="With --compact: skip the confirmation.")
@click.pass_obj
def migrate(settings: Settings, compact: bool, yes: bool) -> None:
    """Bring the database's schema up to date."""
    database = connect(settings)
    try:
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
    size, free, needed, there = map(output.megabytes, (room.bytes, room.free, room.needed, disk))
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
    say(f"It has {output.megabytes(database.room().bytes)} now, and shrinks with each clean.")


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
        say_json(output.copied_as_json(copied))
    else:
        output.show_copied(copied)


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
            f"{moved.public:,} images and documents of topics moved into the public bucket,"
            f" {moved.private:,} images of private feeds out of the public place."
        )
