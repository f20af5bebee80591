"""The command `add`: feeds by the addresses of their sites.

The search and the visit are pipeline.adding's; lists of feeds are in features/opml.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from rss_pipeline.cli.arguments import as_json, subscribe_reader
from rss_pipeline.cli.output import terminal
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.registry.variables import shown
from rss_pipeline.settings import Settings

if TYPE_CHECKING:
    from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, NotAdded, Offered
    from rss_pipeline.pipeline.adding.offer import Offer


_CHOICE_SHOWN = 2


@click.command()
@click.argument("url", nargs=-1, required=True)
@click.option(
    "--allow-private",
    is_flag=True,
    help="The address may be on this machine or the local network: writes `allow_private: true`.",
)
@click.option(
    "--page", is_flag=True, help="Where an address has no feed, collect the entries that the page lists."
)
@click.option(
    "--choice",
    metavar="NAME",
    help="Collect another list of the page, or another link of its entries; implies --page. Their names are"
    " shown with the entries.",
)
@as_json
@click.pass_obj
def add(
    settings: Settings,
    url: tuple[str, ...],
    allow_private: bool,
    page: bool,
    choice: str | None,
    as_json: bool,
) -> None:
    """Add the feed of each URL to feeds.yaml, and collect it.

    URL is a feed or a web page: of a page, the feed that it names is added, else one in a usual place
    (/feed/, /rss.xml ...). Of a page without a feed the entries are shown, and collected if you confirm it.
    feeds.yaml keeps its comments and its layout. Exit code 1 if a URL could not be added; the others are.
    """
    from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, NotAdded, Offered, prepare
    from rss_pipeline.pipeline.adding.add_feed import add as add_one
    from rss_pipeline.pipeline.session.session import session_of_command

    failed = False
    results = []
    ids = []
    with session_of_command(settings, "add") as session:
        prepare(session, environ=os.environ)
        for text in url:
            result = add_one(
                session,
                text,
                environ=os.environ,
                allow_private=allow_private,
                takes=lambda offer: _taken(offer, choice, is_confirmed=page, asks=not as_json),
            )
            failed |= isinstance(result, NotAdded | Offered)
            if isinstance(result, Added | AlreadyListed):
                ids.append(result.id)
            results.append(_as_json(text, result))
            if not as_json:
                show(text, result)
        sentence = subscribe_reader(settings, session.run.database, ids) if ids else None
    if sentence is not None and not as_json:
        terminal.say(sentence)
    if as_json:
        terminal.say_json(results)
    if failed:
        sys.exit(1)


def _taken(offer: "Offer", choice: str | None, *, is_confirmed: bool, asks: bool) -> "Offer | None":
    """The offer, or its choice of this name, if it is wanted."""
    if choice is not None:
        return offer.choosing(choice)
    if is_confirmed:
        return offer
    return offer if asks and confirms(offer) else None


def confirms(offer: "Offer") -> bool:
    """Show what would be collected, and what else may be; True if the person at the terminal wants it."""
    terminal.say(f"{offer.url} has no feed. The page lists {offer.count} entries:")
    for entry in offer.entries:
        terminal.say(f"  {entry.date or 'no date   '}  {entry.title or entry.link}")
    sure = "This is certainly its list." if offer.is_sure else "This may be something else."
    terminal.say(" ".join([sure, *offer.evidence]))
    for each in offer.choices:
        what = "Another link of the entries" if each.is_link else "Another list"
        terminal.say(f"{what}, {each.count} (--choice {each.name}):")
        for entry in each.entries[:_CHOICE_SHOWN]:
            terminal.say(f"  {entry.date or 'no date   '}  {entry.title or entry.link}")
            terminal.say(f"              {entry.link}")
    return sys.stdin.isatty() and click.confirm("Collect these entries?")


def _as_json(text: str, result: "Added | AlreadyListed | Offered | NotAdded") -> dict[str, Any]:
    from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, Offered

    match result:
        case Added():
            return {
                "requested": text,
                "state": "added",
                "feed_id": result.id,
                "url": result.url,
                "title": result.title,
                "items": result.items,
                "next_fetch_at": None if result.next_at is None else instant(result.next_at),
                "schedule_reason": result.next_reason,
                "other_feeds": list(result.others),
            }
        case AlreadyListed():
            return {"requested": text, "state": "already_listed", "feed_id": result.id, "url": result.url}
        case Offered():
            return {"requested": text, "state": "offered", "page": result.offer.shown()}
        case _:
            return {"requested": text, "state": "failed", "kind": result.kind, "message": result.message}


def show(text: str, result: "Added | AlreadyListed | Offered | NotAdded") -> None:
    """Print what became of an address."""
    from rss_pipeline.pipeline.adding.add_feed import Added, AlreadyListed, Offered

    match result:
        case Added():
            at = "soon" if result.next_at is None else instant(result.next_at)
            terminal.say(f"{result.title or result.url}: added.")
            terminal.show_fields(
                {
                    "id": result.id,
                    "url": result.url,
                    "items": result.items,
                    "next visit": f"{at} ({result.next_reason})",
                    "other feeds": list(result.others),
                }
            )
        case AlreadyListed():
            terminal.say(f"{result.url} is in feeds.yaml already, as {result.id}.")
        case Offered():
            terminal.complain(f"{shown(text)}: not added. --page adds these entries.")
        case _:
            terminal.complain(f"{shown(text)}: not added ({result.kind}). {result.message}")
