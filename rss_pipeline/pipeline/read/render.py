"""The HTML of stored items with their archived images in place, for the command line and downstream assets.

How HTML is rendered is collector.images.render's, the statement storage.images.tasks'. The result is still a
publisher's HTML, which page.py puts into a page for browsers. Nothing is written:
`content_html` stays as published.

An asset of your own; each partition is a page of one feed's items:

    @dg.asset(
        deps=["feed_items"],
        partitions_def=feeds_partitions,
        required_resource_keys={"database", "objects"},
    )
    def page(context: dg.AssetExecutionContext) -> None:
        database, objects = context.resources.database, context.resources.objects
        rows = database.query(
            "SELECT items.*, feeds.url AS feed_url, feeds.link AS feed_link"
            " FROM items JOIN feeds ON feeds.id = items.feed_id"
            " WHERE feed_id = ? ORDER BY pub_date DESC LIMIT 50",
            [context.partition_key],
        ).rows
        write_page(context.partition_key, items_html(database, objects, rows))
"""

from collections.abc import Mapping, Sequence

from rss_pipeline.collector.images.find import image_bases
from rss_pipeline.collector.images.former_urls import with_former_urls
from rss_pipeline.collector.images.render import render
from rss_pipeline.collector.sanitize.shown import lead_image, picture_above
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.images import tasks
from rss_pipeline.storage.items.items import image_source
from rss_pipeline.storage.objects import ObjectStore


def item_html(database: Database, objects: ObjectStore, item: Row) -> str | None:
    """One item's content with its archived images in place, below its picture if it shows none.

    None where it has neither.

    `item` is a row of `storage.items.item`: all columns of the item, and its feed's `feed_url`, `feed_link`.
    Images that are pending or failed, or that have no URL, keep the publisher's URL.
    """
    [html] = items_html(database, objects, [item])
    return html


def items_html(database: Database, objects: ObjectStore, items: Sequence[Row]) -> list[str | None]:
    """`item_html` of each, with one query for all of them."""
    archived = tasks.archived(database, [item["id"] for item in items])
    return [_html(objects, item, archived.get(item["id"], {})) for item in items]


def _html(objects: ObjectStore, item: Row, keys: Mapping[str, str]) -> str | None:
    html: str | None = item["content_html"]
    source = image_source(item)
    bases = image_bases(source, item["feed_link"], item["feed_url"])
    lead = lead_image(html, source.enclosures, bases=bases)
    if lead is None and not (html and keys):
        return html
    found = {original: url for original, key in keys.items() if (url := objects.url(key)) is not None}
    urls = with_former_urls(found, bases)
    above = "" if lead is None else picture_above(urls.get(lead, lead))
    return above + render(html or "", archived=urls, bases=bases)
