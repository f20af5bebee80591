"""Bodies of items for readers: the sanitized HTML with its archived images, cached in a version.

HTML that was kept when the item was stored (kept_html.py) is served from there; other HTML is sanitized here.
For the reader's pages, page_html.py changes more in it. What a body is made of is read by storage.items.
Who may read an item is not decided here: a caller passes items that its user may read.
"""

import json
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self
from urllib.parse import quote

from rss_pipeline.collector.images.urls import with_former_urls
from rss_pipeline.collector.models.item import Enclosure
from rss_pipeline.collector.sanitize.html import MOST_HTML_CHARACTERS
from rss_pipeline.collector.sanitize.item_body import (
    Pieces,
    has_images,
    plain_title,
    safe_body,
    usual_places,
    with_places,
    without_marks,
)
from rss_pipeline.collector.sanitize.rules_version import rules_version
from rss_pipeline.pipeline.session.renew_html import body_source
from rss_pipeline.reader.page_html import PlacedImage, page_html
from rss_pipeline.storage import kept_html
from rss_pipeline.storage.database import Database, Row
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline.storage.items.body_parts import ArchivedImage, BodyKey
from rss_pipeline.storage.items.items import read_enclosures
from rss_pipeline.storage.kept_html import FoundHtml
from rss_pipeline.storage.objects import ObjectStore, public_url

MOST_CACHED_BYTES = 64 * 1024 * 1024
CACHED_SECONDS = 3600.0
IMAGES_PATH = "/api/images/"
"""The path of archived images that have no public URL."""
_MOST_VERSIONS = 10
_ENTRY_BYTES = 600
"""Size of an entry beside its texts: keys, the entry, its place in the cache."""
_PIECE_BYTES = 150
"""Size of a piece of its HTML beside its bytes."""
_FILE_BYTES = 200
"""Size of an enclosure beside its URL."""

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
    html_json: Pieces
    """The HTML as a string of JSON: most answers are of that, and it is long."""
    files: tuple[Enclosure, ...] = ()
    """The enclosures that are listed beside it: those that it does not show."""

    @property
    def html(self) -> str:
        """Sanitized, below the item's picture where it shows none; empty if the item has neither."""
        html: str = json.loads(b"".join(self.html_json))
        return html

    @classmethod
    def of(cls, title: str, html: str, files: tuple[Enclosure, ...] = ()) -> Self:
        """A body with this HTML."""
        return cls(title, (json.dumps(html, ensure_ascii=False).encode(),), files)


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


def _is_users(key: BodyKey) -> bool:
    return bodies.has_users_text(key.version)


def image_path(key: str) -> str:
    """The path under which the reader serves an archived image."""
    return IMAGES_PATH + quote(key, safe="/-_.~")


class Bodies:
    """Bodies by item and version, of limited size and age. Safe to call from several threads."""

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
        # Takes some 10 ms, and no request waits for it.
        self._rules = rules_version()
        self._seconds = seconds
        self._most = most_bytes
        self._lasts = lasts
        self._size = 0
        self._entries: OrderedDict[tuple[str, BodyFor], _Entry] = OrderedDict()
        self._lock = threading.Lock()
        self._making = threading.Lock()
        """Held while one body is sanitized: of threads that miss the same page, one does it."""

    def known(self, versions: Mapping[str, str], *, shown: BodyFor = "reader") -> dict[str, Body]:
        """By item id, the bodies that are cached in these versions."""
        now = self._seconds()
        found: dict[str, Body] = {}
        with self._lock:
            for id, version in versions.items():
                entry = self._entries.get((id, shown))
                if entry is not None and entry.version == version and entry.expires > now:
                    self._entries.move_to_end((id, shown))
                    found[id] = entry.body
        return found

    def page(
        self,
        database: Database,
        keys: Sequence[BodyKey],
        *,
        shown: BodyFor = "reader",
        sanitizes: bool = True,
        most_bytes: int = bodies.MOST_BYTES,
    ) -> tuple[dict[str, Body], Sequence[BodyKey]]:
        """By item id, the bodies of the first of these items, in their order, and the items that are left:
        those beyond 200, and beyond so many bytes of kept HTML, or 4 MB of other, together. Items that are
        gone have no body.

        At least one item is done, unless it would have to be sanitized and `sanitizes` is false: that takes
        2 ms for a body of 5 KB, and some 0.1 ms of kept HTML. It belongs into a thread.
        """
        some = keys[: bodies.MOST_ITEMS]
        found = self.known({key.id: key.version for key in some}, shown=shown)
        missing = [key for key in some if key.id not in found]
        without_room: set[str] = set()
        if missing and kept_html.is_kept(database):
            missing = self._kept(database, missing, found, without_room, shown, most_bytes)
        if not sanitizes:
            without_room.update(key.id for key in missing)
        elif missing:
            self._sanitized(database, missing, found, without_room, shown)
        end = next((n for n, key in enumerate(some) if key.id in without_room), len(some))
        return {key.id: found[key.id] for key in some[:end] if key.id in found}, keys[end:]

    def all_of(
        self, database: Database, keys: Iterable[BodyKey], *, shown: BodyFor = "reader"
    ) -> dict[str, Body]:
        """By item id, all bodies of these items; items that are gone are left out."""
        found: dict[str, Body] = {}
        left: Sequence[BodyKey] = list(keys)
        while left:
            some, left = self.page(database, left, shown=shown)
            found |= some
        return found

    def _kept(
        self,
        database: Database,
        keys: Sequence[BodyKey],
        found: dict[str, Body],
        without_room: set[str],
        shown: BodyFor,
        most_bytes: int,
    ) -> list[BodyKey]:
        """Add the bodies with HTML that is kept; the items without, before the first one for which there is
        no room."""
        missing = list[BodyKey]()
        numbers = [key.arrived for key in keys if key.arrived is not None and not _is_users(key)]
        [read] = database.batch([kept_html.read(numbers, rules=self._rules, most_bytes=most_bytes)])
        kept, ready = kept_html.found_of(read), list[tuple[BodyKey, FoundHtml, bytes]]()
        for key in keys:
            one = None if key.arrived is None or _is_users(key) else kept.get(key.arrived)
            if one is None or not one.is_valid(key.feed_link, key.feed_url):
                missing.append(key)
            elif one.packed is None:
                without_room.add(key.id)
                break
            else:
                ready.append((key, one, one.marked))
        shows_images = [key.id for key, _, marked in ready if has_images(marked)]
        archived = (
            bodies.images_by_item(database.batch([bodies.images(shows_images)])[0]) if shows_images else {}
        )
        for key, one, marked in ready:
            title = plain_title(key.title) if one.title is None else one.title
            files = read_enclosures(key.enclosures_json if one.files is None else one.files)
            body = self._placed(title, marked, files, archived.get(key.id, {}), key.bases, shown)
            found[key.id] = body
            with self._lock:
                self._keep((key.id, shown), key.version, body)
        return missing

    def _sanitized(
        self,
        database: Database,
        keys: Sequence[BodyKey],
        found: dict[str, Body],
        without_room: set[str],
        shown: BodyFor,
    ) -> None:
        """Add bodies that are made now, of the first of these items."""
        ids = [key.id for key in keys]
        of_users = {key.id: key.version for key in keys if _is_users(key)}
        read = bodies.sources(ids, most_characters=MOST_HTML_CHARACTERS + 1, with_users_text=of_users)
        sources, images = database.batch([read, bodies.images(ids)])
        archived = bodies.images_by_item(images)
        for row in sources.rows:
            version: str = of_users.get(row["id"]) or row["version"]
            found[row["id"]] = self._made(row, version, archived.get(row["id"], {}), shown)
        if sources.rows:
            # Those before the last one that was read and not in the answer are gone.
            without_room.update(ids[ids.index(sources.rows[-1]["id"]) + 1 :])

    def earlier(self, database: Database, item_id: str, *, shown: BodyFor = "reader") -> list[EarlierVersion]:
        """The versions that an item had before it was repaired, the latest first: ten at most. They are made
        anew at each call, and show archived images as the item does."""
        versions = bodies.kept_versions(
            item_id, most=_MOST_VERSIONS, most_characters=MOST_HTML_CHARACTERS + 1
        )
        found, archived = database.batch([versions, bodies.images([item_id])])
        keys = bodies.images_by_item(archived).get(item_id, {})
        return [
            EarlierVersion(
                datetime.fromisoformat(row["replaced_at"]),
                self._body(row, keys, shown),
            )
            for row in found.rows
        ]

    def _made(self, row: Row, version: str, keys: Mapping[str, ArchivedImage], shown: BodyFor) -> Body:
        with self._making:
            known = self.known({row["id"]: version}, shown=shown)
            if known:
                return known[row["id"]]
            body = self._body(row, keys, shown)
            with self._lock:
                self._keep((row["id"], shown), version, body)
        return body

    def _body(self, row: Row, archived: Mapping[str, ArchivedImage], kind: BodyFor) -> Body:
        source = body_source(row)
        body = safe_body(source)
        title = plain_title(row["title"]) if body.title_of_text is None else body.title_of_text
        return self._placed(title, body.marked, body.files, archived, source.bases, kind)

    def _placed(
        self,
        title: str,
        marked: bytes,
        files: tuple[Enclosure, ...],
        archived: Mapping[str, ArchivedImage],
        bases: Sequence[str | None],
        kind: BodyFor,
    ) -> Body:
        """The body with archived images, as `kind` shows it."""
        known = with_former_urls(archived, bases)

        def place(url: str) -> PlacedImage | None:
            found = known.get(url.partition("#")[0])
            return None if found is None else PlacedImage(self._served(found.key), found.size)

        def image(url: str) -> str | None:
            found = known.get(url)
            return None if found is None else url_of(found.key)

        def url_of(key: str) -> str | None:
            return public_url(self._objects, key) if kind == "public" else self._served(key)

        if kind in ("reader", "public"):
            urls = ((url, new) for url, found in archived.items() if (new := url_of(found.key)))
            return Body(title, with_places(marked, image, usual_places(urls)), files)
        shows_all = kind == "page_with_publishers"
        html = page_html(without_marks(marked), placed=place, shows_publishers_images=shows_all)
        return Body.of(title, html, files)

    def _served(self, key: str) -> str:
        return public_url(self._objects, key) or image_path(key)

    def _keep(self, key: tuple[str, BodyFor], version: str, body: Body) -> None:
        size = sum(map(sys.getsizeof, (body.title, version))) + _ENTRY_BYTES
        size += sum(map(len, body.html_json)) + _PIECE_BYTES * len(body.html_json)
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
