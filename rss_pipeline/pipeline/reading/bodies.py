"""Bodies of items for readers: the sanitized HTML with its archived images, made once a version and kept.

HTML is sanitized as topics do it (collector.sanitize.html), with `rel` on its links; for the reader's pages,
page_html.py changes more in it. What a body is made of is read by storage.items.bodies. Who may read an item
is not decided here: a caller passes ids that its user may read.
"""

import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Literal
from urllib.parse import quote

from rss_pipeline.collector.images.former_urls import with_former_urls
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.sanitize.html import (
    MOST_HTML_CHARACTERS,
    text_of,
    with_images,
    with_link_rel,
)
from rss_pipeline.collector.sanitize.shown import files_beside, shown_html
from rss_pipeline.collector.sanitize.text import cut, legal, title_line
from rss_pipeline.pipeline.reading.page_html import PlacedImage, page_html
from rss_pipeline.storage.database import Database, Result, Row, Statement
from rss_pipeline.storage.items import bodies
from rss_pipeline.storage.items.bodies import ArchivedImage
from rss_pipeline.storage.items.items import stored_enclosures
from rss_pipeline.storage.objects import ObjectStore, public_url

MOST_CACHED_BYTES = 64 * 1024 * 1024
CACHED_SECONDS = 3600.0
IMAGES_PATH = "/api/images/"
"""The path of archived images that have no public URL."""
LINK_REL = "noopener noreferrer"
_MOST_TITLE_CHARACTERS = 500
_TITLE_OF_TEXT_CHARACTERS = 100
_MOST_PLAIN_CHARACTERS = 200_000
_MOST_VERSIONS = 10
_ENTRY_BYTES = 600
"""Size of an entry beside its texts: keys, the entry, its place in the cache."""
_FILE_BYTES = 200
"""Size of an enclosure beside its URL."""
_TAG = re.compile(r"<[^<>]*+>?")

BodyFor = Literal["reader", "public", "page", "page_with_publishers"]
"""The program that shows a body. For `reader`, an archived image without a public URL is at the reader's
own path, which needs a login; for `public`, programs that show HTML without one, at its publisher. For
a page of the reader the HTML is as page_html.py has it, with or without images that publishers send."""


@dataclass(frozen=True, slots=True)
class Body:
    """The parts of an item that are made for readers."""

    title: str
    """Plain text on one line; made from the content where the item has no title, so it may be empty only for
    an item without either."""
    html: str
    """Sanitized, below the item's picture where it shows none; empty if the item has neither."""
    files: tuple[Enclosure, ...] = ()
    """The enclosures that are listed beside it: those that it does not show."""


@dataclass(frozen=True, slots=True)
class EarlierVersion:
    """The texts of an item before it was repaired."""

    replaced_at: datetime
    body: Body


@dataclass(frozen=True, slots=True)
class _Entry:
    version: str
    body: Body
    expires: float
    size: int


def image_path(key: str) -> str:
    """The path under which the reader serves an archived image."""
    return IMAGES_PATH + quote(key, safe="/-_.~")


class Bodies:
    """Bodies by item and version, of limited size and age. Safe to call from several threads.

        found = bodies.known(versions)                     # item id to version, from the page's own query
        missing = [id for id in versions if id not in found]
        if missing:
            found |= bodies.made(database.batch(bodies.statements(missing)))

    `made` gives the first of them with texts within 4 MB together, and at least one: a page ends there,
    and a caller who needs them all goes on with those that are left (`all_of`).
    """

    def __init__(
        self,
        objects: ObjectStore,
        *,
        seconds: Callable[[], float],
        most_bytes: int = MOST_CACHED_BYTES,
        lasts: float = CACHED_SECONDS,
    ) -> None:
        """`seconds` is a clock that never goes back (time.monotonic)."""
        self._objects = objects
        self._seconds = seconds
        self._most = most_bytes
        self._lasts = lasts
        self._size = 0
        self._entries: OrderedDict[tuple[str, BodyFor], _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        """Held while one body is made: threads that miss the same page do not make each body twice."""

    def known(self, versions: Mapping[str, str], *, shown: BodyFor = "reader") -> dict[str, Body]:
        """By item id, the bodies that are cached in these versions."""
        kind, now = shown, self._seconds()
        found: dict[str, Body] = {}
        with self._lock:
            for id, version in versions.items():
                entry = self._entries.get((id, kind))
                if entry is not None and entry.version == version and entry.expires > now:
                    self._entries.move_to_end((id, kind))
                    found[id] = entry.body
        return found

    def statements(self, item_ids: Iterable[str]) -> list[Statement]:
        """The two queries for what `made` needs of at most 200 items."""
        return bodies.sources(item_ids, most_characters=MOST_HTML_CHARACTERS + 1)

    def made(self, results: Sequence[Result], *, shown: BodyFor = "reader") -> dict[str, Body]:
        """By item id, the bodies made of the results of `statements`, in the order of the request.

        Takes about 2 ms for an item of 5 KB, so it belongs into a thread.
        """
        sources, archived = results
        keys = bodies.images_by_item(archived.rows)
        return {row["id"]: self._made(row, keys.get(row["id"], {}), shown) for row in sources.rows}

    def all_of(
        self, database: Database, versions: Mapping[str, str], *, shown: BodyFor = "reader"
    ) -> dict[str, Body]:
        """By item id, all bodies in these versions; items that are gone are left out."""
        found = self.known(versions, shown=shown)
        missing = [id for id in versions if id not in found]
        while missing:
            page = missing[: bodies.MOST_ITEMS]
            made = self.made(database.batch(self.statements(page)), shown=shown)
            found |= made
            last = next(reversed(made), None)
            # Those before the last one that was read and not in the answer are gone.
            missing = missing[len(page) if last is None else page.index(last) + 1 :]
        return found

    def earlier(self, database: Database, item_id: str, *, shown: BodyFor = "reader") -> list[EarlierVersion]:
        """The versions that an item had before it was repaired, the latest first: ten at most. They are made
        anew at each call, and show archived images as the item does."""
        versions = bodies.kept_versions(
            item_id, most=_MOST_VERSIONS, most_characters=MOST_HTML_CHARACTERS + 1
        )
        kind = shown
        found, archived = database.batch([versions, self.statements([item_id])[1]])
        keys = bodies.images_by_item(archived.rows).get(item_id, {})
        return [
            EarlierVersion(
                datetime.fromisoformat(row["replaced_at"]),
                self._body(row, keys, kind),
            )
            for row in found.rows
        ]

    def _made(self, row: Row, keys: Mapping[str, ArchivedImage], shown: BodyFor) -> Body:
        version, kind = row["version"], shown
        with self._making:
            known = self.known({row["id"]: version}, shown=shown)
            if known:
                return known[row["id"]]
            body = self._body(row, keys, kind)
        with self._lock:
            self._keep((row["id"], kind), version, body)
        return body

    def _body(self, row: Row, archived: Mapping[str, ArchivedImage], kind: BodyFor) -> Body:
        text: str = row["html"] or ""
        bases = (row["base_url"], row["link"], row["feed_link"], row["feed_url"])
        archived = with_former_urls(archived, bases)

        def place(url: str) -> PlacedImage | None:
            found = archived.get(url.partition("#")[0])
            return None if found is None else PlacedImage(self._served(found.key), found.size)

        def image(url: str) -> str | None:
            found = archived.get(url)
            if found is None:
                return None
            return public_url(self._objects, found.key) if kind == "public" else self._served(found.key)

        enclosures = stored_enclosures(row)
        html = shown_html(text, enclosures, bases=bases)
        files = tuple(files_beside(html or "", enclosures))
        if html is None:
            html = _plain(text)
        elif kind in ("reader", "public"):
            html = with_link_rel(with_images(html, image), LINK_REL)
        else:
            html = page_html(
                with_link_rel(html, LINK_REL),
                placed=place,
                shows_publishers_images=kind == "page_with_publishers",
            )
        # An earlier version has none.
        if omitted := row.get("content_omitted"):
            html += f"<p>This item is too large to be stored whole: {escape(omitted, quote=False)}.</p>"
        title = title_line(row["title"], limit=_MOST_TITLE_CHARACTERS) or text_of(
            text, limit=_TITLE_OF_TEXT_CHARACTERS
        )
        return Body(title, html, files)

    def _served(self, key: str) -> str:
        return public_url(self._objects, key) or image_path(key)

    def _keep(self, key: tuple[str, BodyFor], version: str, body: Body) -> None:
        size = sum(map(sys.getsizeof, (body.html, body.title, version))) + _ENTRY_BYTES
        size += sum(_FILE_BYTES + len(each.url) for each in body.files)
        self._drop(key)
        if size > self._most:
            return
        self._entries[key] = _Entry(version, body, self._seconds() + self._lasts, size)
        self._size += size
        while self._size > self._most:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: tuple[str, BodyFor]) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._size -= entry.size


def _plain(html: str) -> str:
    """The text of HTML that cannot be read safely, in one paragraph; empty if there is none.

    Tags go by their brackets only, in linear time.
    """
    text = legal(_TAG.sub(" ", html).encode("utf-8", "ignore").decode())
    lines = (" ".join(line.split()) for line in text.splitlines())
    text = cut("\n".join(line for line in lines if line), limit=_MOST_PLAIN_CHARACTERS)
    return f"<p>{escape(text, quote=False)}</p>" if text else ""
