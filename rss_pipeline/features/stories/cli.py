"""The command `stories`: what several feeds write of one event; why items stand together; and no.

Polls decide; a person says otherwise on the reader's page, for themselves.
"""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import click

from rss_pipeline.cli.arguments import Instant, as_json
from rss_pipeline.cli.output.terminal import new_console, new_table, plain, say, say_json
from rss_pipeline.collector.models.clock import instant, rough, utc_now
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_database_to_read, open_objects
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items import items as stored
from rss_pipeline.storage.items.stories import (
    StoredMember,
    StoredStory,
    stored_stories,
    story_named,
    story_of,
)
from rss_pipeline.storage.objects import ObjectStore

_SHOWN = 40
_ID = 12
"""Characters of an id in a table, as `items` has them; commands take the start of one."""
_WORDS = {
    "first": "the first",
    "link": "a copy, by its link",
    "text": "a copy, by its text",
    "retitled": "a copy under another title",
    "reissue": "the same item again, changed",
    "event": "the same event",
    "operator": "by `stories join`",
}


@click.group(invoke_without_command=True)
@click.option("--since", type=Instant(), help="Stories with items from then on; without it, of the last day.")
@as_json
@click.pass_context
def stories(context: click.Context, since: datetime | None, as_json: bool) -> None:
    """List stories: what several feeds write of one event.

    Polls find them, without any model and without a request. `stories why ITEM` has the reasons.
    """
    if context.invoked_subcommand is not None:
        return
    now = utc_now()
    with open_database_to_read(context.obj) as database:
        found = list(stored_stories(database, since=since or now - timedelta(days=1)))
    if as_json:
        say_json([as_row(each) for each in found])
        return
    if not found:
        say(
            "There are no stories of that time. Two feeds that write of one event make one, at the next poll."
        )
        return
    table = new_table("story", "items", "newest", "title")
    for story in sorted(found, key=lambda each: each.updated_at, reverse=True)[:_SHOWN]:
        newest = f"{rough(now - story.updated_at)} ago"
        table.add_row(story.id[:_ID], str(len(story.members)), newest, plain(story.members[0].title or ""))
    new_console().print(table)
    if len(found) > _SHOWN:
        say(f"... and {len(found) - _SHOWN:,} more: --json has all.")


@stories.command()
@click.argument("item")
@as_json
@click.pass_obj
def why(settings: Settings, item: str, as_json: bool) -> None:
    """Show the story of ITEM (its id or the start of it; or that of the story), and why its items stand
    together."""
    with open_database_to_read(settings) as database:
        found = _story_of(database, item)
    if as_json:
        say_json(as_row(found))
        return
    say(f"{found.id}: {len(found.members)} items, the last of {instant(found.updated_at)}.")
    table = new_table("item", "feed", "why", "like", "names and numbers", "title")
    for column in (0, 3):
        table.columns[column].no_wrap = True
    for each in found.members:
        shared = ", ".join((*each.names, *each.numbers)) or "-"
        title = plain(each.title or "")
        like = (each.nearest or "-")[:_ID]
        table.add_row(each.item_id[:_ID], each.feed_id, _why(each), like, plain(shared), title)
    new_console().print(table)


@stories.command()
@click.argument("item")
@click.pass_obj
def split(settings: Settings, item: str) -> None:
    """Take ITEM out of its story, for all users and for good."""
    from rss_pipeline.features.stories import moves

    def change(database: Database, objects: ObjectStore, path: Path) -> bool:
        return moves.split(database, objects, path, _id(database, item))

    if not _change(settings, change):
        raise click.ClickException(f"{item} is in no story; {_LISTS}")
    say(f"{item} stands alone.")


@stories.command()
@click.argument("item")
@click.argument("other")
@click.pass_obj
def join(settings: Settings, item: str, other: str) -> None:
    """Put OTHER, with its story, into the story of ITEM, for all users."""
    from rss_pipeline.features.stories import moves

    def change(database: Database, objects: ObjectStore, path: Path) -> bool:
        return moves.join(database, objects, path, _id(database, item), _id(database, other))

    if not _change(settings, change):
        raise click.ClickException(
            f"{item} and {other} are in one story already, or one of them is not stored; {_LISTS}"
        )
    say(f"{item} and {other} are one story.")


@stories.command()
@click.pass_obj
def undo(settings: Settings) -> None:
    """Take back the last `split` or `join`; again, the one before it."""
    from rss_pipeline.features.stories import moves

    undone = _change(settings, moves.undo)
    if undone is None:
        raise click.ClickException("there is no `split` or `join` to take back")
    what = "split" if undone.is_apart else "join"
    say(f"The {what} of {', '.join(undone.moved)} is taken back.")


_LISTS = "`rss-pipeline stories` lists the stories"
_T = TypeVar("_T")


def _change(settings: Settings, change: Callable[[Database, ObjectStore, Path], _T]) -> _T:
    from rss_pipeline.features.stories.lease import StoriesBusy
    from rss_pipeline.features.stories.window_file import window_path

    with open_database(settings) as database:
        try:
            return change(database, open_objects(settings), window_path(settings))
        except StoriesBusy as error:
            raise click.ClickException(f"{error}; try again after the poll") from error


def _id(database: Database, start: str) -> str:
    """The id of the one item whose id begins so; what is none, as it is."""
    found = stored.item(database, start)
    return start if found is None else str(found["id"])


def _story_of(database: Database, item: str) -> StoredStory:
    found = story_of(database, _id(database, item)) or story_named(database, item)
    if found is None:
        raise click.ClickException(
            f"{item} is in no story, or is no item; `rss-pipeline items FEED` has the ids of items, and"
            " `rss-pipeline stories --since 2026-02-18` those of stories"
        )
    return found


def _why(member: StoredMember) -> str:
    words = _WORDS.get(member.kind, member.kind)
    return words if member.score is None or member.kind != "event" else f"{words} ({member.score:+.2f})"


def as_row(story: StoredStory) -> dict[str, Any]:
    """A story as programs get it."""
    members = [{**asdict(each), "arrived_at": instant(each.arrived_at)} for each in story.members]
    return {"id": story.id, "updated_at": instant(story.updated_at), "members": members}
