"""The `rss-pipeline` command: what a person does from a terminal.

`replay` and `restore` stand in replay_commands.py, `export` in export_command.py. What is printed is formed
in console.py; Dagster is imported only where a command needs it, for that alone takes seconds.
"""

import json
import os
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from dotenv import load_dotenv

from rss_pipeline.cli import output
from rss_pipeline.cli.arguments import as_json, one_feed
from rss_pipeline.cli.export import export
from rss_pipeline.cli.replay import replay, restore
from rss_pipeline.cli.supervisor import keep_up
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.errors import RegistryError, RssPipelineError
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_database, open_objects
from rss_pipeline.storage.copy.stores import SIDES, SideName, copy, open_side
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import items
from rss_pipeline.storage.reports import overview
from rss_pipeline.storage.schema import migrate as apply_migrations

if TYPE_CHECKING:
    from rss_pipeline.pipeline.registry.sync import RegistrySync


class _Command(click.Group):
    """Errors of this project are sentences, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except RssPipelineError as error:
            output.complain(str(error))
            ctx.exit(1)


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rss_pipeline")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Collect RSS and Atom feeds, and lose none of what was collected."""
    load_dotenv(Path.cwd() / ".env")
    if ctx.invoked_subcommand == "doctor":
        return  # It reads the settings itself, for their mistakes are findings beside others.
    ctx.obj = Settings.from_environ(os.environ, cwd=Path.cwd())
    for sentence in ctx.obj.unknown:
        output.complain(sentence)


yes = click.option("--yes", is_flag=True, help="Also where more than half of the feeds would go.")


@main.command()
@yes
@click.pass_obj
def up(settings: Settings, yes: bool) -> None:
    """Start the UI and the daemon: migrate, sync the registry, poll from then on.

    A process of Dagster's that ends by itself is started again, with a growing pause; SIGINT and SIGTERM end
    all of them.
    """
    from rss_pipeline.orchestration.instance.home import changed_by_hand, open_instance

    _check_port(settings.port)
    with open_database(settings) as database, open_instance(settings) as instance:
        if (sentence := changed_by_hand(settings)) is not None:
            output.complain(sentence)
        _sync(settings, database, instance, yes=yes)
    workspace = Path.cwd() / "workspace.yaml"
    where = ["-w", str(workspace)] if workspace.exists() else ["-m", "rss_pipeline.definitions"]
    # It saves typing -m at Dagster's other commands; `dagster dev` refuses it beside -w.
    os.environ.pop("DAGSTER_MODULE_NAME", None)
    click.echo(f"Dagster's UI will be at http://127.0.0.1:{settings.port} in some seconds; Ctrl-C ends it.")
    sys.stdout.flush()
    command = [sys.executable, "-W", "ignore", "-m", "dagster", "dev", "-h", "127.0.0.1"]
    sys.exit(keep_up([*command, "-p", str(settings.port), *where], say=output.complain))


def _check_port(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise click.ClickException(
                f"port {port} is taken ({error.strerror}): end what uses it, or set RSS_PORT to another"
            ) from error


def _sync(settings: Settings, database: Database, instance: Any, *, yes: bool) -> "RegistrySync | None":
    """Sync the registry; None, and said so, where the file is refused."""
    from rss_pipeline.orchestration.registry_partitions import register
    from rss_pipeline.pipeline.registry.sync import sync_registry

    try:
        synced = sync_registry(database, settings, now=utc_now(), yes=yes)
        register(database, instance, synced)
    except RegistryError as error:
        output.complain(str(error))
        return None
    click.echo(f"{settings.feeds_file}: {synced}", err=True)
    return synced


@main.command()
@click.argument("feed", nargs=-1)
@click.option("--all", "all_feeds", is_flag=True, help="Every feed, due or not; still conditional and paced.")
@click.option(
    "--wait",
    default=60.0,
    show_default=True,
    help="Seconds to wait, for FEED, where another run is at it or at its host; that run makes way.",
)
@yes
@as_json
@click.pass_obj
def poll(
    settings: Settings, feed: tuple[str, ...], all_feeds: bool, wait: float, yes: bool, as_json: bool
) -> None:
    """Poll in this process until nothing is due; FEED is an id, a URL or a part of one.

    What is named, or all with --all, is visited due or not, but never before the end of a pause that its host
    asked for. Exit code 1 where a feed failed or, asked for, was not visited, a store failed, or feeds.yaml
    has mistakes.
    """
    import dagster as dg

    from rss_pipeline.orchestration.build import build_definitions
    from rss_pipeline.orchestration.in_process import poll_in_process
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.pipeline.visits.rounds import not_visited, on_hold

    started = utc_now()
    with open_database(settings) as database, open_instance(settings) as instance:
        synced = _sync(settings, database, instance, yes=yes)
        ids = [one_feed(database, text)["id"] for text in feed]
        with output.Bars() as progress:
            # The runs use what is open and read already: on D1 each would cost them a request more.
            definitions = build_definitions(
                settings,
                progress=progress,
                synced=synced,
                resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
            )
            rounds = list(
                poll_in_process(
                    definitions,
                    instance,
                    database,
                    clock=utc_now,
                    feeds=ids,
                    all_feeds=all_feeds,
                    patience=wait,
                )
            )
        asked_for = bool(ids) or all_feeds
        left = on_hold(rounds)
        if asked_for and synced is not None and all(round_.error is None for round_ in rounds):
            left = not_visited(database, ids, since=started, now=utc_now(), all_feeds=all_feeds)
        result = output.PollResult.of(rounds, left)
    click.echo(json.dumps(result.as_json(), ensure_ascii=False) if as_json else result.as_text())
    for sentence in result.left_out():
        output.complain(sentence)
    if (asked_for and left) or synced is None or not result.is_fine:
        sys.exit(1)


@main.command()
@click.argument("feed", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0),
    show_default=f"{output.FEEDS_LISTED}, all with --json",
    help="Feeds to list at most; 0 for all.",
)
@as_json
@click.pass_obj
def status(settings: Settings, feed: str | None, limit: int | None, as_json: bool) -> None:
    """How the feeds do: health, next visit and why, what is stored and how much room it takes.

    Exit code 1 where a feed has failed ten times in a row.
    """
    from rss_pipeline.pipeline.health.feed_notes import feed_notes

    if limit is None and not as_json:
        limit = output.FEEDS_LISTED
    with open_database(settings) as database:
        whole = overview.overview(database, now=utc_now())
        rows = overview.feed_health(database, limit=limit or None)
        if feed is not None:
            wanted = one_feed(database, feed)["id"]
            rows = [row for row in overview.feed_health(database) if row["id"] == wanted]
    rows = [{**row, "notes": feed_notes(row, now=utc_now())} for row in rows]
    disk = output.disk_use({"database": settings.database_path, "objects": settings.objects_path})
    if as_json:
        click.echo(json.dumps({**asdict(whole), "disk": disk, "feeds": rows}, ensure_ascii=False))
    elif feed is not None:
        output.show_fields(rows[0])
    else:
        output.show_status(whole, rows, disk)
    if whole.failing_long:
        sys.exit(1)


@main.command(name="items")
@click.argument("feed")
@click.option("--limit", default=20, show_default=True, help="Items to list at most.")
@as_json
@click.pass_obj
def items_(settings: Settings, feed: str, limit: int, as_json: bool) -> None:
    """List what was collected of FEED, newest first."""
    with open_database(settings) as database:
        found = one_feed(database, feed)
        rows = items.newest(database, found["id"], limit=limit)
    if as_json:
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        output.show_items(found, rows)


@main.command()
@click.argument("id")
@click.option("--html", is_flag=True, help="Print its content alone, as HTML, with archived images in place.")
@click.option("--original", is_flag=True, help="With --html: as it was published.")
@as_json
@click.pass_obj
def item(settings: Settings, id: str, html: bool, original: bool, as_json: bool) -> None:
    """Show one item; ID may be the start of its id."""
    if original and not html:
        raise click.UsageError("--original says how --html prints; give both")
    with open_database(settings) as database:
        found = items.item(database, id)
        content = found and found["content_html"]
        if found is not None and html and not original:
            from rss_pipeline.pipeline.read.render import item_html

            content = item_html(database, open_objects(settings), found)
    if found is None:
        raise click.ClickException(
            f"no item, or more than one, has an id that begins with {id};"
            " `rss-pipeline items FEED` lists them"
        )
    if html:
        # Bytes, and no newline of ours: text would lose its escape sequences on the way into a pipe.
        click.echo((content or "").encode(), nl=sys.stdout.isatty())
    elif as_json:
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        output.show_fields(found)


@main.command()
@click.argument("feed")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def forget(settings: Settings, feed: str, yes: bool) -> None:
    """Delete FEED's rows and partition key. Its backups and images stay in the object store."""
    from rss_pipeline.orchestration.instance.forget_feed import forget_feed
    from rss_pipeline.orchestration.instance.home import open_instance

    with open_database(settings) as database, open_instance(settings) as instance:
        found = one_feed(database, feed)
        if not yes:
            click.confirm(f"Delete {found['id']} ({found['url']}) with its items?", abort=True)
        gone = forget_feed(database, instance, found["id"])
    click.echo(f"{found['id']}: {gone['items']} items and {gone['image_tasks']} image tasks deleted.")


@main.command()
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@as_json
@click.pass_obj
def clean(settings: Settings, dry_run: bool, as_json: bool) -> None:
    """Remove items past their time with their images, and old backups; the daemon does so daily.

    RSS_KEEP_DAYS, `keep` in feeds.yaml and RSS_BACKUP_DAYS say when that is. Exit code 1 where something
    could not be removed.
    """
    from rss_pipeline.pipeline.retention.clean import clean as clean_stores

    with open_database(settings) as database, output.Bars() as progress:
        cleaned = clean_stores(
            database,
            open_objects(settings),
            settings,
            now=utc_now(),
            dry_run=dry_run,
            progress=progress,
        )
    if as_json:
        click.echo(json.dumps(output.cleaned_as_json(cleaned), ensure_ascii=False))
    else:
        output.show_cleaned(cleaned)
    if cleaned.refused:
        sys.exit(1)


@main.command()
@click.option("--days", type=click.FloatRange(0, min_open=True), help="Age of runs; else RSS_HISTORY_DAYS.")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@as_json
@click.pass_obj
def purge(settings: Settings, days: float | None, dry_run: bool, as_json: bool) -> None:
    """Remove Dagster's history of old runs; the daemon does so daily. What was collected stays."""
    import dagster as dg

    from rss_pipeline.orchestration.build import build_definitions
    from rss_pipeline.orchestration.in_process import purge_in_process
    from rss_pipeline.orchestration.instance.home import open_instance

    with open_database(settings) as database, open_instance(settings) as instance:
        definitions = build_definitions(
            settings,
            resource_overrides={"database": dg.ResourceDefinition.hardcoded_resource(database)},
        )
        figures = purge_in_process(definitions, instance, days=days, dry_run=dry_run)
    click.echo(json.dumps(figures) if as_json else output.purged_as_text(figures))


@main.command()
@click.pass_obj
def migrate(settings: Settings) -> None:
    """Bring the database's schema up to date."""
    database = connect(settings)
    try:
        applied = apply_migrations(database)
    finally:
        database.close()
    where = settings.database_path if settings.d1 is None else settings.d1.url
    click.echo(f"{where}: {', '.join(applied) or 'already up to date'}")


@main.command()
@click.option("--alert", is_flag=True, help="Send a test alert to RSS_ALERT_WEBHOOK as well.")
@as_json
def doctor(alert: bool, as_json: bool) -> None:
    """Check everything this deployment needs, and say how to mend what is wrong.

    Reads only, but for a small object it writes and deletes. Exit code 1 where a check fails.
    """
    from rss_pipeline.pipeline.health.doctor import examine, try_alert

    checks = examine(os.environ, cwd=Path.cwd(), clock=utc_now)
    if alert:
        checks.append(try_alert(os.environ, cwd=Path.cwd()))
    if as_json:
        click.echo(json.dumps([asdict(check) for check in checks], ensure_ascii=False))
    else:
        output.show_checks(checks)
    if any(check.state == "failure" for check in checks):
        sys.exit(1)


@main.command(name="copy")
@click.option("--from", "source", type=click.Choice(SIDES), required=True, help="Where everything is.")
@click.option("--to", "target", type=click.Choice(SIDES), required=True, help="Where it is to go.")
@as_json
@click.pass_obj
def copy_(settings: Settings, source: SideName, target: SideName, as_json: bool) -> None:
    """Move house: copy all rows and objects, and check them by counts and hashes.

    `embedded` is RSS_PIPELINE_HOME, `cloudflare` what the six D1_ and R2_ variables name. The target is
    empty, or an earlier copy of the same source that nobody has used; nothing is deleted on either side.
    Ended half-way, the same command goes on.
    """
    if source == target:
        raise click.ClickException(f"from {source} to {target} there is nothing to copy; name two sides")
    with (
        open_side(settings, source, as_source=True) as ours,
        open_side(settings, target) as theirs,
        output.Bars() as progress,
    ):
        copied = copy(ours, theirs, progress=progress)
    if as_json:
        click.echo(json.dumps(output.copied_as_json(copied)))
    else:
        output.show_copied(copied)


main.add_command(export)
main.add_command(replay)
main.add_command(restore)
