"""The image_tasks table: items with images still to be extracted, and the tasks found in them.

Finding images in HTML is the collector's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.item import image_task_id
from rss_pipeline.storage.database import MAX_PARAMETER_BYTES, Database, Result, Row, Statement
from rss_pipeline.storage.images.image_closings import MAX_ATTEMPTS
from rss_pipeline.storage.kept_html import KeptHtml, keep_statements
from rss_pipeline.storage.sql import LIVE_TOKENS_NOW, chunked, compact

_PAGE = 200
_MAX_URL_BYTES = 64_000
_ORIGIN = re.compile("https?://[^/?#]*")


# A dataclass takes several times as long to send from process to process.
class ItemImages(NamedTuple):
    """The images found in one item: absolute URLs, distinct, in document order."""

    item_id: str
    urls: tuple[str, ...]
    written: Mapping[str, str] | None = None
    """By URL, the characters by which the item's HTML names the image."""
    left_out: int = 0
    """Images of the item beyond the most that are archived."""
    html: KeptHtml | None = None
    """The HTML of the item, to be kept."""
    is_searched: bool = True
    """False for an item that shows no image for certain, and was read for its HTML only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedImage:
    """An image of an item with a task of another URL: the same reference, resolved against another base."""

    item_id: str
    former: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownImages:
    """The URLs of an item's image tasks, each with the characters by which its HTML names it, if they are
    known; `is_pending`: its images are still to be looked for."""

    is_pending: bool
    urls: dict[str, str | None] = field(default_factory=dict)


def known_images(database: Database, item_ids: Sequence[str]) -> dict[str, KnownImages]:
    """The image tasks of items by their ids."""
    found: dict[str, KnownImages] = {}
    for chunk in chunked(compact(id) for id in item_ids):
        rows = database.query(
            """SELECT items.id, items.images_extracted_at, t.original_url, t.written FROM json_each(?) AS j
            CROSS JOIN items ON items.id = j.value
            LEFT JOIN image_tasks AS t ON t.item_id = items.id""",
            [chunk],
            name="read images of items",
        ).rows
        for row in rows:
            known = found.setdefault(row["id"], KnownImages(is_pending=row["images_extracted_at"] is None))
            if row["original_url"] is not None:
                known.urls[row["original_url"]] = row["written"]
    return found


def move(database: Database, moved: Iterable[MovedImage], *, now: datetime) -> None:
    """Give tasks the new URLs of their images. What is archived stays so; else the new URL is requested.

    A task that a running download holds stays as it is.
    """
    rows = (
        compact([image_task_id(m.item_id, m.former), image_task_id(m.item_id, m.url), m.url, _host(m.url)])
        for m in moved
        if _is_storable(m.url)
    )
    for chunk in chunked(rows):
        database.query(_MOVE, [instant(now), chunk], name="move image tasks")


def pending_items(database: Database, feed_id: str) -> Iterator[list[Row]]:
    """A feed's items without `images_extracted_at`, in pages of at most 200 items and about 1 MB."""
    after = ""
    while True:
        sizes = database.query(
            """SELECT id, length(CAST(coalesce(content_html, '') AS BLOB)) + length(enclosures)
              + length(CAST(coalesce(summary, '') AS BLOB)) AS size
            FROM items WHERE feed_id = ? AND images_extracted_at IS NULL AND id > ? ORDER BY id LIMIT ?""",
            [feed_id, after, _PAGE],
            name="measure pending items",
        ).rows
        if not sizes:
            return
        page: list[str] = []
        total = 0.0
        for row in sizes:
            if page and total + row["size"] > MAX_PARAMETER_BYTES:
                break
            page.append(row["id"])
            total += row["size"]
        after = page[-1]
        yield database.query(
            """SELECT id, title, link, base_url, enclosures, content_html, summary, content_omitted,
              (SELECT max(v.replaced_at) FROM item_versions AS v WHERE v.item_id = items.id) AS repaired_at
            FROM items WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id""",
            [compact(page)],
            name="read pending items",
        ).rows


def archived(database: Database, item_ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """By item id, the keys of its archived images by original URL; items without any are left out."""
    found: dict[str, dict[str, str]] = {}
    for chunk in chunked(compact(id) for id in item_ids):
        rows = database.query(
            """SELECT item_id, original_url, r2_key FROM image_tasks
            WHERE item_id IN (SELECT value FROM json_each(?))
            AND status = 'success' AND r2_key IS NOT NULL""",
            [chunk],
            name="read archived images",
        ).rows
        for row in rows:
            found.setdefault(row["item_id"], {})[row["original_url"]] = row["r2_key"]
    return found


def write_references(database: Database, written: Mapping[tuple[str, str], str]) -> None:
    """Note how the text of items names their images: by item id and URL, the characters."""
    rows = (
        compact([image_task_id(item_id, url), text])
        for (item_id, url), text in written.items()
        if _kept(text)
    )
    for chunk in chunked(rows):
        database.query(_WRITTEN_IN_TEXT, [chunk], name="note how images are named")


def record_statements(
    found: Sequence[ItemImages],
    *,
    feeds: Sequence[tuple[str, str | None]],
    rules: str,
    now: datetime,
    again: bool = False,
) -> list[list[Statement]]:
    """Write the tasks of these items and their HTML, made by this version of the sanitizer's rules, and mark
    the items as looked at: batches of at most 1 MB of each.

    `again`: the items may have tasks already, found in another text.

    The last batch says of the feeds that nothing of theirs is pending any more. Each comes with the hash
    of the document its items are of: where another run stored a newer one since, that run's items are.
    """
    tasks = (
        compact(
            [
                image_task_id(images.item_id, url),
                images.item_id,
                url,
                _host(url),
                position,
                _kept((images.written or {}).get(url)),
            ]
        )
        for images in found
        for position, url in enumerate(images.urls)
        if _is_storable(url)
    )
    batches = [
        [
            Statement(_INSERT, [chunk, instant(now), instant(now)], name="insert image tasks"),
            *([Statement(_WRITTEN_AGAIN, [chunk], name="note how images are named")] if again else []),
        ]
        for chunk in chunked(tasks)
    ]
    marks = [
        Statement(_MARK, [instant(now), chunk], name="mark images extracted")
        for chunk in chunked(compact(images.item_id) for images in found if images.is_searched)
    ]
    htmls = (images.html for images in found if images.html)
    for place, keep in enumerate(keep_statements(htmls, rules=rules)):
        if place < len(batches):
            batches[place].append(keep)
        else:
            batches.append([keep])
    closing = (
        [*marks, Statement(_DONE, [compact(list(feeds))], name="mark feeds without pending images")]
        if feeds
        else marks
    )
    if batches:
        batches[-1] += closing
        return batches
    return [closing] if closing else []


# A position is given once: images that an item gained later come after those it has, whatever their place in
# its HTML. Those of a fresh item keep their place, also where a batch ends between two of them.
_INSERT = """WITH found AS (
    SELECT json_extract(value, '$[0]') AS id, json_extract(value, '$[1]') AS item_id,
      json_extract(value, '$[2]') AS url, json_extract(value, '$[3]') AS host,
      CAST(json_extract(value, '$[4]') AS INTEGER) AS position, json_extract(value, '$[5]') AS written
    FROM json_each(?)),
  fresh AS (
    SELECT *, row_number() OVER (PARTITION BY item_id ORDER BY position) - 1 AS rank FROM found
    WHERE EXISTS (SELECT 1 FROM items WHERE items.id = found.item_id)
      AND NOT EXISTS (SELECT 1 FROM image_tasks WHERE image_tasks.id = found.id))
  INSERT INTO image_tasks
    (id, item_id, original_url, host, position, written, status, attempts, created_at, updated_at)
  SELECT id, item_id, url, host,
    max(position, rank + coalesce(
      (SELECT max(t.position) + 1 FROM image_tasks AS t WHERE t.item_id = fresh.item_id), 0)),
    written, 'pending', 0, ?, ?
  FROM fresh WHERE true
  ON CONFLICT (id) DO NOTHING"""
_WRITTEN = """UPDATE image_tasks SET written = json_extract(v.value, '$[1]') FROM json_each(?) AS v
  WHERE image_tasks.id = json_extract(v.value, '$[0]')
    AND image_tasks.written IS NOT json_extract(v.value, '$[1]')"""
_WRITTEN_AGAIN = _WRITTEN.replace("$[1]", "$[5]")
# A backup may have another text than the item, which is the first one.
_WRITTEN_IN_TEXT = f"""{_WRITTEN} AND EXISTS (SELECT 1 FROM items
    WHERE items.id = image_tasks.item_id AND instr(items.content_html, json_extract(v.value, '$[1]')) > 0)"""
# The id is made of the URL. The position stays, of which the key of the archived image is made.
_MOVE = f"""UPDATE image_tasks SET id = json_extract(v.value, '$[1]'),
  original_url = json_extract(v.value, '$[2]'), host = json_extract(v.value, '$[3]'),
  attempts = CASE WHEN status = 'success' THEN attempts ELSE 0 END,
  next_attempt_at = NULL, last_error = NULL, last_error_kind = NULL,
  status = CASE WHEN status = 'success' THEN status ELSE 'pending' END, updated_at = ?
  FROM json_each(?) AS v WHERE image_tasks.id = json_extract(v.value, '$[0]')
    AND (lease_token IS NULL OR lease_token NOT IN ({LIVE_TOKENS_NOW}))
    AND NOT EXISTS (SELECT 1 FROM image_tasks AS t WHERE t.id = json_extract(v.value, '$[1]'))"""
_MARK = "UPDATE items SET images_extracted_at = ? WHERE id IN (SELECT value FROM json_each(?))"
_DONE = """UPDATE feeds SET images_pending = 0 FROM json_each(?) AS j
  WHERE feeds.id = json_extract(j.value, '$[0]') AND feeds.content_hash IS json_extract(j.value, '$[1]')"""


def _is_storable(url: str) -> bool:
    """One item's URL that no store takes would stop the images of every feed in its batch."""
    try:
        size = len(url.encode())
    except UnicodeEncodeError:
        # Half of a surrogate pair.
        return False
    return "\0" not in url and size <= _MAX_URL_BYTES


def _kept(text: str | None) -> str | None:
    return text if text is not None and _is_storable(text) else None


def _host(url: str) -> str:
    # Most images of a feed have their host in common, and to read a URL into parts takes ten times as long.
    origin = _ORIGIN.match(url)
    return _host_of(origin[0] if origin else url)


@lru_cache(maxsize=1_000)
def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


# The images of an item that are not archived yet, and a user's request to load them now.
#
# A request makes tasks due, and nothing more: hosts on hold, the pace of a host, the most bytes of a feed's
# day and the claim (image_claims.py) stay above it. It starts a download at once
# (pipeline/triggers/starts.py).

BETWEEN_ATTEMPTS = timedelta(hours=1)
"""Between two attempts at one image, whoever requests them: as after the first that fails."""
REQUESTED = "requested"
"""The `last_error_kind` of a task that a user waits for."""

_OF_USER = """t.item_id = ? AND t.status <> 'success' AND EXISTS (SELECT 1 FROM items AS i
  JOIN feeds AS f ON f.id = i.feed_id
  JOIN subscriptions AS s ON s.user_id = ? AND s.feed_id = i.feed_id
  WHERE i.id = t.item_id AND f.images = 1)"""
_CAN_BE_REQUESTED = """t.lease_token IS NULL AND coalesce(t.last_error_kind, 'host_on_hold') = 'host_on_hold'
  AND ((t.attempts = 0 AND t.last_error_kind IS NULL) OR t.updated_at <= ?)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingImages:
    """The images of an item that are not archived, by what can be done."""

    requestable: int
    """They would be loaded now."""
    coming: int
    """Requested, or being loaded."""
    waiting: int
    """They failed, or were put off by their host, less than an hour ago, or wait for the end of an outage of
    ours, or of their feed's day."""

    @property
    def number(self) -> int:
        return self.requestable + self.coming + self.waiting


def missing_images(user_id: str, item_id: str, *, now: datetime) -> Statement:
    """A query for the images of an item of this user that are not archived, for `missing_of`."""
    return Statement(
        f"""SELECT count(*) AS n, count(*) FILTER (WHERE {_CAN_BE_REQUESTED}) AS requestable,
          count(*) FILTER (WHERE t.lease_token IS NOT NULL OR t.last_error_kind = '{REQUESTED}') AS coming
        FROM image_tasks AS t WHERE {_OF_USER}""",
        [instant(now - BETWEEN_ATTEMPTS), item_id, user_id],
        name="count missing images",
    )


def missing_of(result: Result) -> MissingImages:
    """The result of `missing_images`."""
    [row] = result.rows
    requestable, coming = int(row["requestable"]), int(row["coming"])
    return MissingImages(requestable=requestable, coming=coming, waiting=int(row["n"]) - requestable - coming)


def request_images(user_id: str, item_id: str, *, now: datetime) -> Statement:
    """Make the images of an item of this user due that are not archived; those with three failed attempts get
    one more. Done twice, it changes nothing."""
    return Statement(
        f"""UPDATE image_tasks AS t SET status = 'pending', attempts = min(attempts, {MAX_ATTEMPTS - 1}),
          next_attempt_at = NULL, last_error_kind = '{REQUESTED}'
        WHERE {_OF_USER} AND {_CAN_BE_REQUESTED}""",
        [item_id, user_id, instant(now - BETWEEN_ATTEMPTS)],
        name="request images of an item",
    )
