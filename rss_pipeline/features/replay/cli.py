"""The commands `replay` and `restore`: backups read again, in this process unless `--queue` is given.

The jobs `replay_backups` and `replay_all` do the same in Dagster.
"""

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from rss_pipeline.cli.arguments import Instant, as_json, one_feed
from rss_pipeline.cli.output.terminal import ROWS_SHOWN, Bars, complain, say, say_json, show_table
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feed_row import feed_ids

if TYPE_CHECKING:
    from datetime import datetime

    from rss_pipeline.features.replay.restore import Restored
    from rss_pipeline.features.replay.service import FeedReplay
    from rss_pipeline.pipeline.session.session import Session


@contextmanager
def _session(settings: Settings, database: Database) -> "Iterator[Session]":
    from rss_pipeline.pipeline.session.run_context import RunContext
    from rss_pipeline.pipeline.session.session import Session

    with (
        Bars() as progress,
        Session(
            RunContext(
                settings=settings,
                database=database,
                objects=open_objects(settings),
                run_id=uuid.uuid4().hex,
                clock=utc_now,
                progress=progress,
            )
        ) as session,
    ):
        yield session


@click.command()
@click.argument("feed", nargs=-1)
@click.option("--all", "all_feeds", is_flag=True, help="Replay every stored feed.")
@click.option(
    "--dry-run", is_flag=True, help="Write nothing; show which items would be new and which differ."
)
@click.option(
    "--repair",
    is_flag=True,
    help="Also rewrite items that the parser now reads differently; old versions are kept.",
)
@click.option(
    "--pages",
    is_flag=True,
    help="Read the pages of articles in place of the backups: old items get the texts that are read now.",
)
@click.option(
    "--queue",
    is_flag=True,
    help="With --all: leave it to many runs of `rss-pipeline up` and its workers, and return at once.",
)
@as_json
@click.pass_obj
def replay(
    settings: Settings,
    feed: tuple[str, ...],
    all_feeds: bool,
    dry_run: bool,
    repair: bool,
    pages: bool,
    queue: bool,
    as_json: bool,
) -> None:
    """Read the backups of FEED again, oldest first, and store the items that are missing.

    FEED is an id, a URL or a part of one. No request is made to a publisher; validators, counts and schedule
    stay as they are. Exit code 1 if a backup could not be read.
    """
    if pages and (queue or repair):
        raise click.UsageError("--pages reads pages alone, here: use it without --queue and --repair")
    if queue:
        if feed or not all_feeds:
            raise click.UsageError("--queue replays all feeds: use it with --all")
        _queue(settings, dry_run=dry_run, repair=repair, as_json=as_json)
        return
    from rss_pipeline.features.replay.service import replay_feeds, summed

    if bool(feed) == all_feeds:
        raise click.UsageError("name feeds, or use --all")
    with open_database(settings) as database:
        ids = list(feed_ids(database)) if all_feeds else [one_feed(database, text)["id"] for text in feed]
        with _session(settings, database) as session:
            unique = list(dict.fromkeys(ids))
            if pages:
                _pages(session, unique, dry_run=dry_run, as_json=as_json)
                return
            replays = list(
                replay_feeds(
                    unique,
                    run=session.run,
                    pool=session.parser_pool,
                    spool=session.spool,
                    dry_run=dry_run,
                    repair=repair,
                )
            )
    if as_json:
        result = {"dry_run": dry_run, **summed(replays), "feeds": [_as_json(each) for each in replays]}
        say_json(result)
    else:
        _show_replays(replays, dry_run=dry_run)
    if any(each.unread for each in replays):
        sys.exit(1)


def _pages(session: "Session", feed_ids: list[str], *, dry_run: bool, as_json: bool) -> None:
    from rss_pipeline.features.replay.service import read_again

    done = read_again(
        session.run, pool=session.parser_pool, spool=session.spool, feed_ids=feed_ids, dry_run=dry_run
    )
    if as_json:
        say_json({"dry_run": dry_run, **asdict(done)})
    else:
        words = "would have" if dry_run else "have"
        say(
            f"{done.read:,} pages read again: {done.changed:,} items {words} another text or reason,"
            f" {done.shown:,} of them an article."
        )
        _show_problems([(key, "page", reason) for key, reason in done.unread])
    if done.unread:
        sys.exit(1)


def _queue(settings: Settings, *, dry_run: bool, repair: bool, as_json: bool) -> None:
    from rss_pipeline.features.replay.dagster import start_replay_of_all
    from rss_pipeline.features.replay.service import parts
    from rss_pipeline.orchestration.instance.home import open_instance

    wanted = parts(settings.shards)
    with open_instance(settings) as instance:
        backfill = start_replay_of_all(instance, wanted, dry_run=dry_run, repair=repair)
    if as_json:
        say_json({"backfill": backfill, "runs": len(wanted)})
    else:
        say(
            f"{len(wanted)} runs of the job `replay_all` will replay all feeds: backfill {backfill}. The UI"
            " shows it under Runs, Backfills, where it can be cancelled, and what failed started again."
        )


def _as_json(replay: "FeedReplay") -> dict[str, Any]:
    return {
        "feed_id": replay.feed.id,
        **replay.counts,
        "findings": [asdict(finding) for finding in replay.findings],
        "problems": [asdict(problem) for problem in replay.problems],
    }


def _show_replays(replays: "list[FeedReplay]", *, dry_run: bool) -> None:
    from rss_pipeline.features.replay.service import summed

    counts = summed(replays)
    backups, unread = counts.get("backups", 0), counts.get("backups_unread", 0)
    new, differ = counts.get("items_new", 0), counts.get("items_differ", 0)
    words = "would be new" if dry_run else "new"
    say(
        f"{len(replays):,} feeds, {backups:,} backups read again, {unread:,} of them unreadable,"
        f" {counts.get('backups_without_feed', 0):,} without a feed in them."
    )
    say(
        f"{new:,} items {words}{_cut(counts.get('items_cut', 0))}, {differ:,} now read differently,"
        f" {counts.get('items_gone', 0):,} no longer found; {counts.get('items_repaired', 0):,} rewritten."
    )
    findings = [(each.feed.id, finding) for each in replays for finding in each.findings]
    if findings:
        rows = [
            (feed, item.item_id[:12], item.what, ", ".join(item.fields), (item.title or "")[:60])
            for feed, item in findings[:ROWS_SHOWN]
        ]
        show_table(("feed", "item", "what", "fields", "title"), rows)
        in_all = sum(each.findings_in_all for each in replays)
        if in_all > len(rows):
            say(f"... {in_all - len(rows):,} more; --json has the first 200 of each feed")
    problems = [problem for each in replays for problem in each.problems]
    _show_problems([(problem.backup_key, problem.kind, problem.message) for problem in problems])


def _cut(count: int) -> str:
    return f" ({count:,} of them cut, as they are larger than the database takes)" if count else ""


def _show_problems(rows: list[tuple[str, str, str]]) -> None:
    if rows:
        show_table(("backup", "kind", "what happened"), rows[:ROWS_SHOWN])
        if len(rows) > ROWS_SHOWN:
            say(f"... {len(rows) - ROWS_SHOWN:,} more; --json has them all")


@click.command()
@click.option(
    "--retired",
    type=Instant(),
    metavar="SINCE",
    help="Only bring back items that retention removed since this day or instant (UTC), from the backups.",
)
@as_json
@click.pass_obj
def restore(settings: Settings, retired: "datetime | None", as_json: bool) -> None:
    """Rebuild a lost database from feeds.yaml and the objects; or, with --retired, undo a clean.

    It restores feeds (those neither in feeds.yaml nor subscribed are not scheduled), items with their dates,
    image tasks with the images in the object store, the validators of each feed's newest document, and users
    of the reader, without passwords. Run it before `rss-pipeline up`: items of a poll before it count as
    first seen at that poll. It may be interrupted and run again. Exit code 1 if a backup, a feed or a user
    could not be restored.
    """
    if retired is not None:
        _revive(settings, retired, as_json=as_json)
        return
    from rss_pipeline.features.replay import restore as restoring
    from rss_pipeline.orchestration.instance.home import open_instance
    from rss_pipeline.orchestration.registry_partitions import register, register_keys

    with (
        open_database(settings, is_restored=True) as database,
        open_instance(settings) as instance,
        _session(settings, database) as session,
    ):
        restored = restoring.restore(
            session.run,
            pool=session.parser_pool,
            spool=session.spool,
            on_registry=partial(register, database, instance),
            on_feeds=partial(register_keys, database, instance),
        )
    if as_json:
        say_json(restored.as_json())
    else:
        _show_restored(restored)
    if not restored.is_whole:
        sys.exit(1)


def _revive(settings: Settings, since: "datetime", *, as_json: bool) -> None:
    from rss_pipeline.features.replay.service import revive

    with (
        open_database(settings, is_restored=True) as database,
        _session(settings, database) as session,
    ):
        revived = revive(session.run, pool=session.parser_pool, spool=session.spool, since=since)
    if as_json:
        say_json(revived.as_json())
    else:
        say(
            f"{revived.items_retired:,} items of {revived.feeds:,} feeds were removed since {instant(since)};"
            f" {revived.items_revived:,} are back. {revived.items_lost:,} are in no backup: of these, what a"
            " feed still lists comes back with its next document."
        )
        _show_problems([(each.backup_key, each.kind, each.message) for each in revived.problems])
    if revived.problems:
        sys.exit(1)


def _show_restored(restored: "Restored") -> None:
    if restored.registry_error is not None:
        complain(
            f"{restored.registry_error}\nAll feeds were restored from their backups alone and are not"
            " scheduled: correct feeds.yaml, then run `rss-pipeline poll`."
        )
    say(
        f"{restored.registered:,} feeds of feeds.yaml, {len(restored.unregistered):,} more from their"
        f" backups; {restored.with_state:,} have the validators of their newest document again."
    )
    say(
        f"{restored.items_new:,} items{_cut(restored.items_cut)} from {restored.backups_replayed:,} of"
        f" {restored.backups:,} backups; {restored.backups_without_feed:,} had no feed in them."
    )
    if restored.articles:
        say(f"{restored.articles:,} items have the article of their page again.")
    say(
        f"{restored.images_adopted:,} images adopted, {restored.images_known:,} were known,"
        f" {restored.images_orphaned:,} belong to no item and are kept."
    )
    users = restored.users
    if users.users or users.known:
        say(
            f"{users.users:,} users of the reader with {users.subscriptions:,} subscriptions and"
            f" {users.stars:,} stars; {users.stars_lost:,} stars were of items that are in no backup."
            f" {users.known:,} users were known."
        )
    if users.users:
        say("None of them can log in yet: set passwords with `rss-pipeline user password NAME`.")
    for sentence in restored.renamed:
        say(sentence)
    _show_problems([(each.backup_key, each.kind, each.message) for each in restored.problems])
    _show_problems([(key, "page", reason) for key, reason in restored.pages_unread])
    if restored.lost_feeds:
        show_table(("not restored", "why"), restored.lost_feeds)
    if users.problems:
        show_table(("not restored, or not whole", "why"), users.problems)
