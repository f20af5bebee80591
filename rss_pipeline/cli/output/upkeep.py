"""The output of `copy`, `clean` and `purge`, as text and as JSON.

The work itself is in storage/copy, pipeline/retention and orchestration/upkeep/purge_job.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Any

from rss_pipeline.cli.output.terminal import (
    ROWS_SHOWN,
    complain,
    new_console,
    new_table,
    say,
    show_table,
)
from rss_pipeline.features.copy.stores import Copied
from rss_pipeline.features.copy.tables import Fingerprint
from rss_pipeline.storage.database import Room, Row

if TYPE_CHECKING:
    from rss_pipeline.features.retention.result import CleanResult

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


def copied_as_json(copied: Copied) -> dict[str, Any]:
    """The result of a copy, for programs."""
    return {
        **{name: {"count": each.count, "sha256": each.sha256} for name, each in _made(copied).items()},
        "object_bytes": copied.object_bytes,
        "rows_written": copied.rows_written,
        "items_cut": copied.items_cut,
        "objects_written": copied.objects_written,
    }


def show_copied(copied: Copied) -> None:
    """Print the counts and hashes of both sides."""
    console = new_console()
    table = new_table("what", "items", "SHA-256")
    for name, each in _made(copied).items():
        table.add_row(name, f"{each.count:,}", each.sha256[:32])
    console.print(table)
    rows = f"{copied.rows_written:,} rows"
    if copied.objects is None:
        text = f"Both sides hold the same rows; written now: {rows}. The objects stay where they are."
    else:
        objects = (
            f"{copied.objects_written:,} of {copied.objects.count:,} objects"
            f" ({copied.object_bytes / 1e6:,.1f} MB in all)"
        )
        text = f"Both sides hold the same rows and objects; written now: {rows} and {objects}."
        if not copied.tables:
            text = f"Both sides hold the same objects; written now: {objects}. The rows stay where they are."
    console.print(text, soft_wrap=True)
    if copied.items_cut:
        cut = f"{copied.items_cut:,} items are cut there: they are larger than a row of D1."
        console.print(cut, soft_wrap=True)


def _made(copied: Copied) -> dict[str, Fingerprint]:
    return copied.tables | ({} if copied.objects is None else {"objects": copied.objects})


def cleaned_as_json(cleaned: "CleanResult") -> dict[str, Any]:
    """The result of a clean, for programs."""
    by_feed = {id: asdict(removed) for id, removed in sorted(cleaned.by_feed.items())}
    return {**cleaned.figures(), "by_feed": by_feed, "refusals": cleaned.refusals, "refusal": cleaned.refusal}


def show_cleaned(cleaned: "CleanResult") -> None:
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
