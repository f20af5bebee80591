"""The output of `items`: a feed and a table of its items. The rows come from storage/items/items.py."""

from collections.abc import Sequence

from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console, new_table, plain
from rss_pipeline.storage.database import Row


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
