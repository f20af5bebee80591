"""The commands `user add`, `subscribe`, `code`, `list`, `password`, `app` and `remove`: who may log in to the
reader.

A password is never an argument: other users of the machine see those in the list of processes.
"""

import sys
from typing import TYPE_CHECKING

import click

from rss_pipeline.cli.arguments import CLOSED, as_json, one_feed
from rss_pipeline.cli.output.terminal import say, say_json, show_table
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_database_to_read, open_objects

if TYPE_CHECKING:
    from rss_pipeline.storage.accounts.user_rows import Account
    from rss_pipeline.storage.database import Database

_MOST_BYTES = 10_000
"""Size of a password from a pipe; one that is longer than a password may be is refused as such."""

_from_stdin = click.option(
    "--password-stdin",
    "from_stdin",
    is_flag=True,
    help="Read the password from the first line of the input instead of the terminal, for programs.",
)


@click.group()
def user() -> None:
    """Add, list and remove users of the reader."""


@user.command()
@click.argument("name")
@_from_stdin
@click.option("--subscribe", is_flag=True, help="Subscribe the user to the feeds of feeds.yaml.")
@click.pass_obj
def add(settings: Settings, name: str, from_stdin: bool, subscribe: bool) -> None:
    """Add a user NAME, and prompt for a password."""
    from rss_pipeline.reader.accounts.users import add_user, check_new_name, find_user

    check_new_name(name)
    password = _password(from_stdin)
    with open_database(settings) as database:
        stored = add_user(database, name=name, password=password, clock=utc_now)
        if subscribe:
            _subscribe_all(settings, database, find_user(database, stored), stored)
    say(f"{stored} can log in now. `rss-pipeline user app {stored} phone` makes the password for an app.")


@user.command()
@click.argument("name")
@click.argument("feed", nargs=-1)
@click.option("--all", "all_feeds", is_flag=True, help="Subscribe to all feeds of feeds.yaml.")
@click.pass_obj
def subscribe(settings: Settings, name: str, feed: tuple[str, ...], all_feeds: bool) -> None:
    """Subscribe the user NAME to each FEED, an id or URL or a part of one, or to all feeds of feeds.yaml."""
    from rss_pipeline.reader.accounts.users import find_user
    from rss_pipeline.reader.subscribe import read_list, subscribe_named

    if all_feeds == bool(feed):
        raise click.UsageError("name feeds, or give --all")
    with open_database(settings) as database:
        user_id = find_user(database, name)
        if all_feeds:
            _subscribe_all(settings, database, user_id, name.lower())
            return
        read_list(database, settings, now=utc_now())
        ids = list(dict.fromkeys(one_feed(database, text)["id"] for text in feed))
        joinable, new = subscribe_named(database, user_id, ids, at=utc_now())
    say(
        f"{name.lower()} subscribes to {new} more feed{'' if new == 1 else 's'}"
        + (f", and had {joinable - new}." if joinable > new else ".")
    )
    if joinable < len(ids):
        raise click.ClickException(f"{len(ids) - joinable} of {len(ids)} feeds were left out: {CLOSED}")


@user.command()
@click.pass_obj
def code(settings: Settings) -> None:
    """Print the code that the reader's page asks for before it makes the first user."""
    from rss_pipeline.api.hosts import places
    from rss_pipeline.errors import UserRefused
    from rss_pipeline.reader.first_user import code_of_first_user

    with open_database(settings) as database:
        found = code_of_first_user(database)
    if found is None:
        raise UserRefused(
            "there is a user already, and the page makes no other; `rss-pipeline user add NAME` does"
        )
    say(f"{found} is the code for the first user. Type it at {' or '.join(places(settings))}")


@user.command("list")
@as_json
@click.pass_obj
def list_(settings: Settings, as_json: bool) -> None:
    """List all users, and when each one last used the reader."""
    from rss_pipeline.storage.accounts.user_rows import accounts

    with open_database_to_read(settings) as database:
        found = accounts(database, now=utc_now())
    if as_json:
        say_json([_as_json(account) for account in found])
    elif found:
        show_table(
            ("name", "added", "last used", "sessions", "app passwords"), [_row(each) for each in found]
        )
    else:
        say("There are no users: add one with `rss-pipeline user add NAME`.")


@user.command()
@click.argument("name")
@_from_stdin
@click.option("--revoke-apps", is_flag=True, help="Revoke the app passwords of this user, too.")
@click.pass_obj
def password(settings: Settings, name: str, from_stdin: bool, revoke_apps: bool) -> None:
    """Give NAME another password. It ends every session; apps log in again with their app passwords."""
    from rss_pipeline.reader.accounts.users import change_password, find_user

    with open_database(settings) as database:
        find_user(database, name)
        change_password(database, name=name, password=_password(from_stdin), revoke_apps=revoke_apps)
    say("The password is changed, and every session has ended.")


@user.command()
@click.argument("name")
@click.argument("app")
@click.pass_obj
def app(settings: Settings, name: str, app: str) -> None:
    """Make a password for one APP of NAME ("phone"), and show it once, with the address to type."""
    from rss_pipeline.api.hosts import places
    from rss_pipeline.reader.accounts.app_passwords import create_for
    from rss_pipeline.reader.accounts.users import find_user

    with open_database(settings) as database:
        new = create_for(database, find_user(database, name), app, now=utc_now())
    for place in places(settings):
        say(f"Server:   {place}/greader")
    if not settings.reader_hosts:
        say("          From elsewhere: `/greader` at the name of your proxy (setting RSS_READER_HOSTS)")
    say(f"User:     {name.lower()}")
    say(f"Password: {new.secret}")
    say("The password is shown this once; the reader keeps only a hash of it.")


@user.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
@click.pass_obj
def remove(settings: Settings, name: str, yes: bool) -> None:
    """Remove NAME with subscriptions, read states and stars. What was collected stays."""
    from rss_pipeline.reader.accounts.users import find_user, remove_user

    with open_database(settings) as database:
        find_user(database, name)
        if not yes:
            click.confirm(f"Remove {name} with all subscriptions, read states and stars?", abort=True)
        remove_user(database, open_objects(settings), name=name, clock=utc_now)
    say(f"{name} is removed.")


def _subscribe_all(settings: Settings, database: "Database", user_id: str, name: str) -> None:
    from rss_pipeline.reader.subscribe import left_out, read_list, subscribe_listed

    read_list(database, settings, now=utc_now())
    count = subscribe_listed(database, user_id, at=utc_now())
    say(f"{name} subscribes to {count} feeds of {settings.feeds_file}.")
    others = left_out(database)
    if others.too_many:
        say(f"Left out: {others.too_many} feeds; a user can subscribe to at most {others.most}.")
    if others.closed:
        say(f"Left out: {others.closed} with a password, headers or allow_private; {CLOSED}")


def _password(from_stdin: bool) -> str:
    from rss_pipeline.reader.accounts.passwords import check_new

    if from_stdin:
        given = sys.stdin.buffer.readline(_MOST_BYTES).decode(errors="surrogateescape").rstrip("\r\n")
    else:
        given = click.prompt("Password", hide_input=True, confirmation_prompt="The same again")
    check_new(given)
    return str(given)


def _row(account: "Account") -> tuple[str, str, str, str, str]:
    last = "never" if account.last_used_at is None else instant(account.last_used_at)
    return (
        account.name,
        instant(account.created_at),
        last,
        str(account.sessions),
        str(account.app_passwords),
    )


def _as_json(account: "Account") -> dict[str, str | int | None]:
    return {
        "id": account.id,
        "name": account.name,
        "created_at": instant(account.created_at),
        "last_used_at": None if account.last_used_at is None else instant(account.last_used_at),
        "sessions": account.sessions,
        "app_passwords": account.app_passwords,
    }
