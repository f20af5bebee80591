"""The tasks of parser processes: read a document, search items for images.

The pool is parser_pool.py; documents are read by collector.parse. Dagster must not be imported here: each
worker imports this module. The parsers are imported in the functions: the run's own process names the tasks
and parses nothing.
"""

import itertools
import logging
import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from rss_pipeline.collector.http.redaction import Secrets, without_secrets
from rss_pipeline.collector.models.feed import USUAL_BYTES, Feed
from rss_pipeline.collector.models.item import Item, item_id
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.collector.models.warning import document_warnings
from rss_pipeline.errors import StorageRejected, spooling
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.storage.database import MAX_VALUE_BYTES, Row
from rss_pipeline.storage.images.image_tasks import ItemImages
from rss_pipeline.storage.items.items import (
    RowChunk,
    chunked_rows,
    named_rows,
    rows_of,
    stored_enclosures,
)

logger = logging.getLogger(__name__)

_ROWS_TIMES = 3
"""Limit of one document's rows, times the document's own: a base of 8,000 characters is in every link."""
_IMAGE_URL_BYTES = 10_000_000
"""Limit of the image URLs of one task, for the same reason; some 100,000 URLs."""
_HTML_BYTES = 4_000_000
"""Limit of the HTML that one task keeps, compressed."""
_ITEM_BYTES = 500
"""The bytes that an item takes besides."""
_BAD_DATES = 20
_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOfAll:
    """The search in all items of a document that is read: those of a feed's first one are all new."""

    most: int | None
    """Images of one item."""
    is_kept: bool
    """HTML of items is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseTask:
    feed: Feed
    document: Document
    now: datetime
    secrets: Secrets = field(default_factory=Secrets)
    """Removed from everything that is read of the document."""
    item_bytes: int = MAX_VALUE_BYTES
    """The size of the row of one item for which the database has room."""
    search: SearchOfAll | None = None
    """The search that follows in the same worker; its result is for `found_early`."""

    def size(self) -> int:
        """The bytes that the task reads, by which its limits are measured."""
        return self.document.body_bytes


def parse_document(task: ParseTask) -> Parsed:
    """Decode, repair and parse a spooled document; its rows go into a file beside it.

    Raises:
        NotAFeed: there is no feed in it.
        StorageRejected: its items could never be stored.
        OSError: a file of the spool cannot be read or written.
    """
    from rss_pipeline.collector.images.find import may_show_images
    from rss_pipeline.collector.parse.document import parse_feed

    document, feed = task.document, task.feed
    fetched_at = document.response.fetched_at
    body = document.path.read_bytes()
    formers = (feed.http.charset, document.feed_charset, feed.http.former_charset)
    keys = {name: FEED_KEYS[name] for name in feed.feature_keys}
    keep_tree = any(key.needs_tree.load()(feed) for key in keys.values() if key.needs_tree is not None)
    reads = next((key.reads for key in keys.values() if key.reads is not None), None)
    try:
        read = (
            parse_feed(
                body,
                content_type=document.response.content_type,
                url=document.response.url,
                hint=feed.http.charset,
                formers=formers,
                key=feed.key,
                now=fetched_at,
                keep_tree=keep_tree,
            )
            if reads is None
            else reads.load()(task, body, keep_tree=keep_tree)
        )
    except OSError as error:
        # It touches no file: some functions for dates raise this for a number out of their range.
        raise ValueError(f"{type(error).__name__}: {error}") from error
    parsed = without_secrets(replace(read, tree=None, part=None), task.secrets)
    parts = {
        name: key.parse.load()(task, read, parsed) for name, key in keys.items() if key.parse is not None
    }
    # A tree is large.
    del read
    path = _rows(document)
    most = _ROWS_TIMES * max(USUAL_BYTES, len(body))
    imageless = {item_id(feed.id, item.guid) for item in parsed.items if not may_show_images(item)}
    identities = {item_id(feed.id, item.guid): item.identities for item in parsed.items if item.identities}
    former = {item_id(feed.id, item.guid): item.former_guids for item in parsed.items if item.former_guids}
    rows: Iterable[Row] = named_rows(
        feed.id,
        oldest_first(parsed.items, fetched_at),
        fetched_at=fetched_at,
        item_bytes=task.item_bytes,
    )
    rows = rows if task.search is None else list(rows)
    ids: list[str] = []
    with path.open("wb") as file:
        for chunk in chunked_rows(list(row.values()) for row in rows):
            chunk = replace(
                chunk,
                imageless=tuple(id for id in chunk.ids if id in imageless),
                identities=tuple(identities[id] for id in chunk.ids if id in identities),
                former_guids=tuple(pair for id in chunk.ids for pair in former.get(id, ())),
            )
            pickle.dump(chunk, file)
            ids += chunk.ids
            if file.tell() > most:
                raise StorageRejected(f"its items fill more than {most:,} bytes; that is no feed's size")
    result = Parsed(
        document=document,
        path=path,
        header=replace(parsed.header, hints=replace(parsed.header.hints, max_age=document.response.max_age)),
        items_seen=len(parsed.items),
        duplicate_guids=len(parsed.duplicate_guids),
        shared_guids=parsed.shared_guids,
        without_guid=len(identities),
        has_former_guids=bool(former),
        moved=parsed.moved,
        dropped_items=parsed.dropped_items,
        cut_off=parsed.cut_off,
        warnings=(
            *document_warnings(parsed, feed=feed),
            *(warning for part in parts.values() for warning in part.warnings),
        ),
        bad_dates=tuple(_bad_dates(parsed.items)),
        parts=parts,
    )
    if task.search is not None:
        # The rows have all that is searched, and a text is large.
        del parsed
        _search_all(task, task.search, rows, ids=ids, imageless=imageless, feed_link=result.header.link)
    return result


def oldest_first(items: Sequence[Item], fetched_at: datetime) -> list[Item]:
    """The items in the order in which they arrive: who reads the newest arrivals first has the newest first.

    Most feeds begin with their newest item. An item without a date counts as published now.
    """
    # Those of one instant are turned round: the first in the document is taken for the newest.
    ordered = list(reversed(items))
    ordered.sort(key=lambda item: item.pub_date or fetched_at)
    return ordered


def _bad_dates(items: Iterable[Item]) -> list[tuple[str, str]]:
    bad = (
        (i.pub_date_raw[:_MOST_SHOWN], (i.title or i.guid)[:_MOST_SHOWN])
        for i in items
        if i.pub_date is None and i.pub_date_raw
    )
    return list(itertools.islice(bad, _BAD_DATES))


def read_chunks(path: Path) -> Iterator[RowChunk]:
    """The rows that `parse_document` wrote, a megabyte of them at a time."""
    with path.open("rb") as file:
        while file.peek(1):
            yield pickle.load(file)


def named_feeds(document: Document) -> list[str]:
    """The absolute URLs of the feeds that a spooled web page names."""
    from rss_pipeline.collector.parse import web_page
    from rss_pipeline.collector.parse.characters.decode import decode

    text = decode(document.path.read_bytes(), content_type=document.response.content_type).text
    return web_page.named_feeds(text, document.response.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSearch:
    """The items to search for images: `ids` among the rows of a spool file, or rows of stored items."""

    feed: Feed
    feed_link: str | None
    path: Path | None = None
    ids: frozenset[str] = frozenset()
    rows: tuple[Row, ...] = ()
    most: int | None = None
    """Images of one item; the others are counted and left out."""
    keep: Mapping[str, str | None] = field(default_factory=dict)
    """The items with HTML to be kept, also those that are not searched, each with the time of its last
    repair."""

    @property
    def wanted(self) -> tuple[object, ...]:
        """All by which two searches in the same file differ."""
        return self.feed.url, self.feed_link, self.ids, self.most, dict(self.keep)

    def found(self) -> Iterator[Row]:
        """The rows of the items."""
        if self.path is None:
            yield from self.rows
        else:
            wanted = self.ids | self.keep.keys()
            yield from (row for row in rows_of(read_chunks(self.path)) if row["id"] in wanted)

    def size(self) -> int:
        """The bytes that the task reads, by which its limits are measured."""
        return self.path.stat().st_size if self.path is not None else 0


def _search_all(
    task: ParseTask,
    search: SearchOfAll,
    rows: Iterable[Row],
    *,
    ids: Sequence[str],
    imageless: set[str],
    feed_link: str | None,
) -> None:
    found = ImageSearch(
        feed=task.feed,
        feed_link=feed_link,
        path=_rows(task.document),
        ids=frozenset(ids) - imageless if task.feed.images else frozenset(),
        most=search.most,
        keep=dict.fromkeys(ids) if search.is_kept else {},
    )
    if not found.ids and not found.keep:
        return
    try:
        search_early(found, rows)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - foreign parsers raise anything; it is searched again
        logger.debug("a search that was begun early failed: %s", error)


def was_read(task: ParseTask) -> bool:
    """True if a worker read the document and began the search that follows."""
    return task.search is not None and is_begun(_rows(task.document))


def is_begun(path: Path) -> bool:
    """True if the search in the rows of this file was begun early."""
    return _early(path).exists()


def search_early(task: ImageSearch, rows: Iterable[Row] | None = None) -> None:
    """Leave the result of `find_item_images` in a file of the spool, for `found_early`."""
    assert task.path is not None
    path = _early(task.path)
    with spooling(path):
        path.touch()
    found = find_item_images(task, rows)
    # Not "wb": ext4 writes a file that was truncated to the disk at once.
    with spooling(path), path.open("r+b") as file:
        pickle.dump((task.wanted, found), file)


def found_early(task: ImageSearch) -> list[ItemImages] | None:
    """The result of this task that `search_early` left; None where it left none.

    The file stays: where its result could not be written, it is read again.
    """
    path = None if task.path is None else _early(task.path)
    if path is None or not path.exists():
        return None
    try:
        with path.open("rb") as file:
            wanted, found = pickle.load(file)
    except (EOFError, pickle.UnpicklingError):
        # Its worker was killed while it wrote.
        return None
    return found if wanted == task.wanted else None


def _rows(document: Document) -> Path:
    return document.path.with_name(f"{document.path.name}.rows")


def _early(path: Path) -> Path:
    return path.with_name(f"{path.name}.images")


def find_item_images(task: ImageSearch, rows: Iterable[Row] | None = None) -> list[ItemImages]:
    """The images of each item of the task, items without any included, and their HTML. `rows` has the rows of
    all of them for who has them already.

    Beyond 10 MB of URLs the task's items have none: a base of 8,000 characters is in every URL. Beyond 4 MB
    of compressed HTML the rest is made when somebody reads it: the run has all of it in memory at once.
    """
    from rss_pipeline.collector.images.find import images_in_order
    from rss_pipeline.collector.images.written import written_references
    from rss_pipeline.pipeline.session import renew_html as kept_html

    found: list[ItemImages] = []
    left, html_left = _IMAGE_URL_BYTES, _HTML_BYTES
    for row in task.found() if rows is None else rows:
        id, html, urls, written = row["id"], None, list[str](), dict[str, str]()
        is_searched = task.path is None or id in task.ids
        if is_searched and left > 0:
            bases = [row["base_url"], row["link"], task.feed_link, task.feed.url]
            for url in images_in_order(row["content_html"], stored_enclosures(row), bases=bases):
                left -= len(url)
                if left < 0:
                    break
                urls.append(url)
            written = written_references(row["content_html"], urls[: task.most], bases=bases)
        if id in task.keep and html_left > 0:
            html = kept_html.made(
                row, feed_link=task.feed_link, feed_url=task.feed.url, repaired_at=task.keep[id]
            )
            html_left -= _ITEM_BYTES + (0 if html is None else len(html.html))
        if not is_searched and html is None:
            continue
        images = tuple(urls[: task.most])
        found.append(
            ItemImages(
                item_id=id,
                urls=images,
                written=written,
                left_out=len(urls) - len(images),
                html=html,
                is_searched=is_searched,
            )
        )
    return found
