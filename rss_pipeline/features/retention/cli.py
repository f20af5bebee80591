"""The command `clean`, and its result as text and as JSON."""

import sys
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output.terminal import ROWS_SHOWN, Bars, complain, new_console, new_table, say_json
from rss_pipeline.cli.upkeep import show_room
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reserve import reserve_released
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects

if TYPE_CHECKING:
    from rss_pipeline.features.retention.model import CleanResult

_FEEDS_SHOWN = 20


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
    from rss_pipeline.features.retention.service import clean as clean_stores

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
        say_json(_as_json(cleaned))
    else:
        _show(cleaned)
    if cleaned.refused or cleaned.refusal is not None:
        sys.exit(1)


def _as_json(cleaned: "CleanResult") -> dict[str, Any]:
    """The result of a clean, for programs."""
    by_feed = {id: asdict(removed) for id, removed in sorted(cleaned.by_feed.items())}
    return {**cleaned.figures(), "by_feed": by_feed, "refusals": cleaned.refusals, "refusal": cleaned.refusal}


def _show(cleaned: "CleanResult") -> None:
    """Print what a clean removed, and what it could not remove and why."""
    console = new_console()
    total = cleaned.total
    would = "would be " if cleaned.dry_run else ""
    parts = [
        (total.items, f"{total.items:,} items {would}removed"),
        (total.images, f"{total.images:,} images ({total.image_bytes / 1e6:,.1f} MB) {would}removed"),
        (total.backups, f"{total.backups:,} backups ({total.backup_bytes / 1e6:,.1f} MB) {would}removed"),
        (
            cleaned.backups_renewed,
            f"{cleaned.backups_renewed:,} backups {would}written again, so that they do not expire",
        ),
        (cleaned.users_backed_up, f"{cleaned.users_backed_up:,} users backed up"),
        (cleaned.leftovers, f"{cleaned.leftovers:,} files of killed processes {would}removed"),
    ]
    summary = ", ".join(text for number, text in parts if number)
    console.print(f"{summary or 'Nothing is old enough to be removed'}.", soft_wrap=True)
    table = new_table("feed", "items", "images", "backups")
    first = sorted(cleaned.by_feed.items(), key=lambda each: (-each[1].items, -each[1].backups, each[0]))
    for id, removed in first[:_FEEDS_SHOWN]:
        table.add_row(id, f"{removed.items:,}", f"{removed.images:,}", f"{removed.backups:,}")
    if first:
        console.print(table)
    if len(first) > _FEEDS_SHOWN:
        console.print(f"... and {len(first) - _FEEDS_SHOWN} more feeds; --json has them all")
    if cleaned.items_waiting:
        console.print(f"{cleaned.items_waiting:,} items are kept for now: a run is downloading their images.")
    if cleaned.backups_waiting:
        console.print(
            f"{cleaned.backups_waiting:,} old backups are kept for now: for a week or more no feed was"
            " visited, and the clock may have jumped. If it is right: rss-pipeline clean --yes",
            soft_wrap=True,
        )
    if cleaned.items_left and not cleaned.out_of_time:
        complain(
            f"{cleaned.items_left:,} items past their time are left: the database is full, and their feeds"
            " still list them. The next clean removes them, once there is room."
        )
    if cleaned.room is not None and total.items:
        show_room(cleaned.room)
    if cleaned.refusal is not None:
        complain(f"Without --dry-run: {cleaned.refusal}")
    if cleaned.refused:
        complain(
            f"{cleaned.refused:,} objects could not be removed; their items are kept until the next clean:"
        )
    for key, reason in islice(cleaned.refusals.items(), ROWS_SHOWN):
        complain(f"  {key}: {reason}")
