"""Options and arguments that several commands share: `--json`, FEED as a stored feed, and the user who reads
what a command adds.

The commands are in the modules beside this one.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.feed import Member
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.reports import overview

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
yes = click.option(
    "--yes", is_flag=True, help="Accept a feeds.yaml that removes more than half of the feeds."
)

CLOSED = (
    "users can subscribe to feeds with a password, headers or allow_private if the file says `shared: true`."
)


class Instant(click.ParamType[datetime]):
    """An option's value: a day or an instant, UTC if it has no time zone."""

    name = "when"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            found = datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{str(value)!r} is neither a day (2026-02-18) nor an instant", param, ctx)
        return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def one_feed(database: Database, text: str) -> Row:
    """The row of the feed with this id or URL, or with this text as a part of one.

    Raises:
        click.ClickException: no feed matches, or several do; the message lists them.
    """
    found = overview.find_feeds(database, text)
    if len(found) == 1:
        return found[0]
    if not found:
        raise click.ClickException(f"no feed matches {text!r}; `rss-pipeline status` lists them")
    names = "\n".join(f"  {row['id']}  {row['url']}" for row in found)
    raise click.ClickException(f"{text!r} matches several feeds; name one:\n{names}")


def one_member(database: Database, text: str) -> Member:
    """The feed that `one_feed` finds; or, where the text is none, the stream of FEED/STREAM.

    Raises:
        click.ClickException: no feed matches, or several do, or the feed has no such stream.
    """
    head, slash, name = text.rpartition("/")
    # A URL has slashes too.
    if not slash or not name or overview.find_feeds(database, text):
        return Member(one_feed(database, text)["id"])
    feed = one_feed(database, head)
    streams = [stream["name"] for stream in json.loads(feed["streams"] or "[]")]
    if name not in streams:
        known = f"it has {', '.join(streams)}" if streams else "it has none"
        raise click.ClickException(f"the feed {feed['id']} has no stream {name!r}; {known}")
    return Member(feed["id"], name)


def subscribe_reader(settings: Settings, database: Database, ids: Sequence[str]) -> str | None:
    """Subscribe the user of an installation that has just one to feeds that were added to feeds.yaml; return
    a sentence on who reads them, None where there is no user."""
    from rss_pipeline.reader.subscribe import only_user, read_list, subscribe_listed
    from rss_pipeline.storage.accounts import user_rows as users

    now = utc_now()
    if (reader := only_user(database, at=now)) is None:
        one = ids[0] if len(ids) == 1 else "--all"
        hint = f"To read {'it' if len(ids) == 1 else 'them'}: `rss-pipeline user subscribe NAME {one}`."
        return hint if users.accounts(database, now=now) else None
    id, name = reader
    read_list(database, settings, now=now)
    count = subscribe_listed(database, id, at=now, only=frozenset(ids))
    if count == len(ids):
        return f"{name} is subscribed to {'it' if count == 1 else 'them'}."
    return f"{name} is subscribed to {count} of {len(ids)}; {CLOSED}"
