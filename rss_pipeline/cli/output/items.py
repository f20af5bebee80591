"""The output of `item`, one item as text or in the browser, and of `items`, a table of a feed's items."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, plain, say
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.models.plain_text import plain_lines
from rss_pipeline.collector.parse.pictures import is_picture
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.errors import file_error
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.items.items import stored_authors

if TYPE_CHECKING:
    from rss_pipeline.pipeline.read.text import Block, ItemText


from rss_pipeline.cli.output.terminal import new_table

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
