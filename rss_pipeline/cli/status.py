"""The commands `status`, `items` and `item`: what the database holds, for a person or as JSON.

`export`, which writes all items to a file, is in export.py.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from rss_pipeline.cli.arguments import as_json, one_feed, one_member
from rss_pipeline.cli.output import status_table as output
from rss_pipeline.cli.output.terminal import (
    complain,
    new_console,
    plain,
    say,
    say_content,
    say_json,
    show_fields,
)
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.models.plain_text import plain_lines
from rss_pipeline.collector.parse.pictures import is_picture
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.errors import file_error
from rss_pipeline.features import FEATURES
from rss_pipeline.features.packages import missing_packages
from rss_pipeline.pipeline.read.feed_notes import feed_notes, none_reached
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database_to_read, open_objects
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds import due
from rss_pipeline.storage.items import items as stored
from rss_pipeline.storage.items.items import stored_authors
from rss_pipeline.storage.reports import overview

if TYPE_CHECKING:
    from rss_pipeline.pipeline.read.terminal_text import Block, ItemText


from rss_pipeline.cli.output.terminal import new_table


@click.command()
@click.argument("feed", required=False)
@click.option(
    "--limit",
    type=click.IntRange(0),
    show_default=f"{output.FEEDS_LISTED}, all with --json",
    help="List at most this many feeds; 0 for all.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also show the reason for each visit, and all notes.")
@as_json
@click.pass_obj
def status(settings: Settings, feed: str | None, limit: int | None, verbose: bool, as_json: bool) -> None:
    """Show the feeds, one line each: failing ones first, then by the next visit. Errors, streams that match
    nothing and topics are listed below.

    `last new` is the age of the feed's newest item, `next` the time until the next visit. With FEED (an id, a
    URL or a part of one): all that is known of this feed.

    Exit code 1 if a feed has failed ten times in a row, or no feed could ever be reached.
    """
    now = utc_now()
    if limit is None and not as_json:
        limit = output.FEEDS_LISTED
    with open_database_to_read(settings) as database:
        whole = overview.overview(database, now=now)
        wanted = None if feed is None else one_feed(database, feed)["id"]
        rows = overview.feed_health(database, feed_id=wanted, limit=limit or None)
        offline = none_reached(database)
        problems, kinds = overview.problems(
            database, limit=output.PROBLEMS_LISTED, feeds=output.FEEDS_OF_A_PROBLEM
        )
        has_shards = settings.shards > 1 and wanted is None
        shards = due.backlog_by_shard(database, now, count=settings.shards) if has_shards else {}
        look = output.StatusLook(
            database=database,
            settings=settings,
            now=now,
            feed_id=wanted,
            as_json=as_json,
            lists_all=limit == 0,
        )
        missing = missing_packages(database, settings)
        read = [part.load()(look) for feature in FEATURES for part in feature.status]
    sections = [section for section in read if section is not None]
    rows = [{**row, "notes": feed_notes(row, now=now)} for row in rows]
    stores = {"database": settings.database.file, "objects": settings.objects.folder}
    here = {name: path for name, path in stores.items() if path is not None}
    disk = output.disk_use(here)
    if offline is not None:
        complain(offline)
    for extra, problem in missing:
        complain(f"{problem}. {extra.fix}")
    if as_json:
        say_json(
            {
                **asdict(whole),
                "nothing_reached": offline,
                "missing_packages": [f"{problem}. {extra.fix}" for extra, problem in missing],
                "disk": disk,
                "feeds": rows,
                **({"shards": output.shards_as_json(shards)} if shards else {}),
                **{key: value for section in sections for key, value in section.as_json.items()},
            }
        )
    elif feed is not None:
        show_fields(rows[0] | {name: value for each in sections for name, value in each.fields.items()})
    else:
        output.show_overview(whole, disk=disk, now=now)
        output.show_shards(shards, due=whole.due, now=now)
        for section in sections:
            if section.is_above:
                section.show()
        # The others are one line of the overview; they come last, so that a limit cuts them off first.
        rows = [row for row in rows if row["registered"]]
        if rows:
            more = whole.registered + whole.disabled + whole.unwatched - len(rows)
            output.show_feeds(rows, more=more, now=now, verbose=verbose)
        if not verbose:
            output.show_problems(problems, more=kinds - len(problems))
            output.show_notes(rows)
        for section in sections:
            if not section.is_above:
                section.show()
    if whole.failing_long or offline is not None:
        sys.exit(1)


@click.command()
@click.argument("feed")
@click.option("--limit", default=20, show_default=True, help="List at most this many items.")
@as_json
@click.pass_obj
def items(settings: Settings, feed: str, limit: int, as_json: bool) -> None:
    """List the collected items of FEED, or of a stream of it (FEED/STREAM), newest first."""
    with open_database_to_read(settings) as database:
        member = one_member(database, feed)
        found = one_feed(database, member.feed_id)
        rows = stored.newest(database, member.feed_id, limit=limit, stream=member.stream)
    if as_json:
        from rss_pipeline.pipeline.read.frames import item_as_json

        say_json([item_as_json(row) for row in rows])
    else:
        show_items(found, rows, stream=member.stream)


@click.command()
@click.argument("id")
@click.option("--html", is_flag=True, help="Print it as a web page, with archived images in place.")
@click.option("--open", "open_", is_flag=True, help="Show this web page in the browser.")
@click.option("--original", is_flag=True, help="With --html or --open: the content as published.")
@as_json
@click.pass_obj
def item(settings: Settings, id: str, html: bool, open_: bool, original: bool, as_json: bool) -> None:
    """Show one item as text. ID is its id or the start of it.

    Its links are numbered, and listed at the end. --json has everything that is stored of it.
    """
    is_page = html or open_
    if original and not is_page:
        raise click.UsageError("--original changes what --html and --open show: use one of them, too")
    if is_page and as_json:
        raise click.UsageError("--json prints an object, --html and --open show a page: use one of them")
    with open_database_to_read(settings) as database:
        found = stored.item(database, id)
        content = found and found["content_html"]
        if found is not None and is_page and not original:
            from rss_pipeline.pipeline.read.terminal_text import item_html

            content = item_html(database, open_objects(settings), found)
    if found is None:
        raise click.ClickException(
            f"no item, or more than one, has an id that begins with {id};"
            " `rss-pipeline items FEED` lists them"
        )
    if is_page:
        from rss_pipeline.pipeline.read.frames import image_sources, item_page

        page = item_page(found, content or "", sources=image_sources(open_objects(settings)))
        if html:
            say_content(page)
        if open_:
            open_page(page, folder=settings.spool_path)
    elif as_json:
        from rss_pipeline.pipeline.read.frames import item_as_json

        say_json(item_as_json(found))
    else:
        from rss_pipeline.pipeline.read.terminal_text import item_text

        bases = (found["base_url"], found["link"], found["feed_link"], found["feed_url"])
        text = item_text(content or found["summary"] or "", bases=bases)
        show_item(found, text, enclosures=json.loads(found["enclosures"]))


# The output of `item`, one item as text or in the browser, and of `items`, a table of a feed's items.

_MARGIN = "  "
_WIDEST = 100
"""Characters of a line; longer ones are hard to read."""


def show_item(item: Row, text: "ItemText", *, enclosures: Sequence[Row]) -> None:
    """Print the title, source, authors, date and link of an item, then its text and the links of that.

    The text is indented, so that no line of a publisher's looks like one of ours.
    """
    console = new_console()
    width = min(console.width, _WIDEST)
    date = item["pub_date"] + ("" if item["pub_date_source"] == "feed" else " (fetched)")
    authors = ", ".join(stored_authors(item))
    said = [each for each in (item["feed_title"] or item["feed_id"], authors, date) if each]
    console.print(
        Text(plain(without_markup(item["title"] or "") or "(no title)"), style="bold"), soft_wrap=True
    )
    console.print(Text(plain(" · ".join(said)), style="dim"), soft_wrap=True)
    if item["link"]:
        say(plain(item["link"]))
    if item["comments_url"]:
        say(f"comments: {plain(item['comments_url'])}")
    for block in text.blocks:
        if not block.is_tight:
            say("")
        _print_block(block, width)
    if not text.blocks:
        say("")
        say("The item has no content." if not item["content_omitted"] else plain(item["content_omitted"]))
    if text.links or enclosures:
        say("")
    for number, url in enumerate(text.links, 1):
        # A URL is never broken: it is there to be opened or copied.
        say(f"[{number}] {plain(url)}")
    for each in enclosures:
        size = f", {each['length'] / 1e6:,.1f} MB" if each["length"] else ""
        kind = "image" if is_picture(Enclosure(**each)) else "enclosure"
        say(f"{kind}: {plain(each['url'])} ({plain(each['type'] or 'unknown type')}{size})")


def _print_block(block: "Block", width: int) -> None:
    console = new_console()
    style = "bold" if block.is_heading else ""
    before = _MARGIN + block.first
    for line in plain_lines(block.text).split("\n"):
        wrapped = Text(line.expandtabs(4)).wrap(console, max(width - len(before), 20)) or [Text("")]
        for part in wrapped:
            shown = Text.assemble(before, (part.plain, style))
            shown.rstrip()
            console.print(shown, soft_wrap=True)
            before = _MARGIN + block.rest


def open_page(page: str, *, folder: Path) -> None:
    """Show a page in the browser (the one of BROWSER, if that is set).

    It is a file of this user only, in a folder of its own below `folder`, for everybody reads /tmp. It is not
    removed at once, because the browser reads it later; a run or the daily clean removes it after a day.
    """
    import webbrowser

    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = Path(tempfile.mkdtemp(prefix="page-", dir=folder)) / "item.html"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(page.encode())
    except OSError as error:
        what = file_error(f"the page cannot be written below {folder}", error, folder)
        raise click.ClickException(f"{what}; `item ID --html > FILE` writes it elsewhere") from None
    say(f"The page is {path.absolute()}; it is removed after a day.", err=True)
    if not webbrowser.open(path.absolute().as_uri()):
        raise click.ClickException("no browser was found: open that file yourself, or name one in BROWSER")


def show_items(feed: Row, rows: Sequence[Row], *, stream: str | None = None) -> None:
    """One line for each item; where the last visit failed, or no item is there, the reason."""
    console = new_console()
    of_stream = "" if stream is None else f", stream {stream}"
    console.print(Text(plain(f"{feed['title'] or feed['id']}{of_stream}  {feed['url']}")))
    if feed["failed"]:
        console.print(Text(plain(f"{feed['last_error_kind']}: {feed['last_error']}"), style="red"))
        count = int(feed["consecutive_failures"])
        console.print(f"That was failure {count} in a row; the next visit is at {feed['next_fetch_at']}.")
    if not rows:
        console.print(Text(_why_empty(feed) if stream is None else _why_empty_stream(feed)))
        return
    table = new_table("id", "published", "title", "characters")
    for row in rows:
        published = row["pub_date"] + ("" if row["pub_date_source"] == "feed" else " (fetched)")
        table.add_row(
            row["id"][:12], published, plain(row["title"] or row["link"] or row["guid"]),
            f"{int(row['content_characters'] or 0):,}",
        )  # fmt: skip
    console.print(table)


def _why_empty(feed: Row) -> str:
    if feed["unused_since"] is not None:
        return "No items: no user subscribes to the feed any more, so it is not visited."
    if not feed["registered"]:
        return "No items: the feed is not in feeds.yaml, so it is not visited."
    if not feed["watched"]:
        return "No items: `watch: false` in feeds.yaml, so it is a name and a page alone."
    if not feed["enabled"]:
        return "No items: `enabled: false` in feeds.yaml, so it is not visited."
    if feed["failed"]:
        return "No items so far."
    if feed["last_visited_at"] is None:
        return f"No items: it was not visited yet. `rss-pipeline poll {feed['id']}` visits it now."
    return "No items: it was read, but its document had none, or they are all past their age."


def _why_empty_stream(feed: Row) -> str:
    return (
        "No items: no item that was collected belongs to this stream."
        f" `rss-pipeline streams {feed['id']}` shows what the feed has."
    )
