"""The HTML of items to be kept: made of rows of items, and renewed where it was made by other rules.

The table is storage.kept_html's. Parser processes make it when an item is stored.
"""

from collections.abc import Callable

from rss_pipeline.collector.sanitize.html import MOST_HTML_CHARACTERS
from rss_pipeline.collector.sanitize.item_body import BodySource, safe_body
from rss_pipeline.fast_zlib import compress
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline.storage.items.items import enclosures_json, stored_enclosures
from rss_pipeline.storage.kept_html import (
    MOST_BYTES,
    KeptHtml,
    feed_bases,
    is_kept,
    keep_statements,
    missing,
)

RENEWED = 20_000
"""Items that are renewed at most at a time; some 10 s of one processor."""
LOOKED_AT = 50_000
"""Items among which they are: the newest, which are read."""
_LEVEL = 1
"""The level of zlib. 2 and 3 take up to twice the time for a fiftieth less."""
_SHORT_BYTES, _LEVEL_OF_SHORT = 4_000, 0
"""HTML below this size, for which level 1 takes three times the time for a quarter less."""


def made(row: Row, *, feed_link: str | None, feed_url: str, repaired_at: str | None) -> KeptHtml | None:
    """The HTML of an item of which `row` has the columns; None for one that does not fit into a row."""
    text = row["content_html"]
    if not (text or "").strip(" \t\n\r"):
        text = row["summary"]
    return _made(
        row["id"],
        BodySource(
            text=(text or "")[: MOST_HTML_CHARACTERS + 1],
            enclosures=stored_enclosures(row),
            title=row["title"],
            base_url=row["base_url"],
            link=row["link"],
            feed_link=feed_link,
            feed_url=feed_url,
            omitted=row["content_omitted"],
        ),
        repaired_at,
    )


def body_source(row: Row) -> BodySource:
    """The source of a body from a row of `bodies.sources` or `bodies.kept_versions`."""
    return BodySource(
        text=row["html"] or "",
        enclosures=stored_enclosures(row),
        title=row["title"],
        base_url=row["base_url"],
        link=row["link"],
        feed_link=row["feed_link"],
        feed_url=row["feed_url"],
        # An earlier version has none.
        omitted=row.get("content_omitted"),
    )


def renew(database: Database, *, is_over: Callable[[], bool], most: int = RENEWED) -> int:
    """Make the HTML of the newest items that have none by the rules of this code, and return their number.

    After an update of the rules, or a copy, it is made when an item is read until then. What is not among the
    newest 50,000 stays so. Where the database has no HTML of items, nothing is done.
    """
    # Parser processes need no version, nor what reads those of libraries.
    from rss_pipeline.collector.sanitize.rules_version import rules_version

    if not is_kept(database):
        return 0
    renewed, below, rules = 0, 2**53, rules_version()
    for _ in range(LOOKED_AT // bodies.MOST_ITEMS):
        ids, lowest = missing(database, rules=rules, below=below, limit=bodies.MOST_ITEMS)
        if lowest is None:
            break
        below = lowest
        while ids and not is_over():
            rows = database.batch([bodies.sources(ids, most_characters=MOST_HTML_CHARACTERS + 1)])[0].rows
            kept = [_made(row["id"], body_source(row), bodies.repaired_at(row["version"])) for row in rows]
            for statement in keep_statements((each for each in kept if each is not None), rules=rules):
                database.batch([statement])
            renewed += len(rows)
            # Those before the last one that was read and not in the answer are gone.
            ids = ids[ids.index(rows[-1]["id"]) + 1 :] if rows else []
        if is_over() or renewed >= most:
            break
    return renewed


def _made(item_id: str, source: BodySource, repaired_at: str | None) -> KeptHtml | None:
    body = safe_body(source)
    html = compress(body.marked, _LEVEL if len(body.marked) >= _SHORT_BYTES else _LEVEL_OF_SHORT)
    if len(html) > MOST_BYTES:
        return None
    return KeptHtml(
        item_id=item_id,
        feed_bases=feed_bases(source.feed_link, source.feed_url) if body.of_feed else None,
        title=body.title_of_text,
        files=None if body.files == source.enclosures else enclosures_json(body.files),
        size=len(body.marked),
        html=html,
        repaired_at=repaired_at,
    )
