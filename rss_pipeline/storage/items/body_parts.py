"""The parts that bodies of items are made of, and a version of them all.

How a body is made, and for how long it is kept, is reader.bodies'.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rss_pipeline.collector.models.item import ImageSize
from rss_pipeline.features import FEATURES
from rss_pipeline.storage.database import Result, Statement
from rss_pipeline.storage.sql import compact, number

_OF_USER = next((each.item_text_of_user for each in FEATURES if each.item_text_of_user), None)
MOST_ITEMS = 200
"""Items of one page."""
MOST_BYTES = 4_000_000
"""Bytes, as stored, of the texts read at once; a larger one comes alone."""


class BodyKey(NamedTuple):
    """An item whose body is wanted, in a version."""

    id: str
    arrived: int | None
    title: str | None
    link: str | None
    base_url: str | None
    enclosures_json: str
    feed_link: str | None
    feed_url: str
    version: str

    @property
    def bases(self) -> tuple[str | None, ...]:
        """The bases of its references; the first usable one counts."""
        return (self.base_url, self.link, self.feed_link, self.feed_url)


def body_version(*, items: str = "items", feeds: str = "feeds", user: str | None = None) -> str:
    """An SQL expression for the version of an item's body; `items` and `feeds` are the names of its rows,
    `user` is the id of the user who sees it.

    It changes with a repair, with the images that are archived, and with the feed's addresses, against which
    links are resolved. A row that was restored has a new arrival number. Where the user sees a text of their
    own, it ends with its version.
    """
    own = "NULL"
    if user is not None and _OF_USER is not None:
        own = f"({_OF_USER.version.format(item=f'{items}.id', user=user)})"
    return f"""json_array({items}.arrived, {feeds}.url, {feeds}.link,
      (SELECT max(v.replaced_at) FROM item_versions AS v WHERE v.item_id = {items}.id),
      (SELECT count(*) || ' ' || sum(t.rowid) FROM image_tasks AS t INDEXED BY image_tasks_item
       WHERE t.item_id = {items}.id AND t.status = 'success'), {own})"""


def repaired_at(version: str) -> str | None:
    """The time of the last repair of an item, by the version of its body."""
    found: str | None = json.loads(version)[3]
    return found


def has_users_text(version: str) -> bool:
    """True if the body of this version is made of a text that its user alone sees."""
    return _OF_USER is not None and not version.endswith("null]")


def own_text(items: str) -> str:
    """An SQL expression for what an item's feed has of it: its content, or else its summary."""
    is_blank = f"coalesce(trim({items}.content_html, ' \t\n\r'), '') = ''"
    return f"CASE WHEN {is_blank} THEN {items}.summary ELSE {items}.content_html END"


def body_text(items: str) -> str:
    """An SQL expression for what an item's body is made of: a feature's longer text, or its feed's."""
    return longer_or(own_text(items), items)


def longer_or(own: str, items: str) -> str:
    """An SQL expression for a feature's longer text of an item, or else this."""
    longer = "".join(
        f"({each.item_text.format(item=f'{items}.id')}), " for each in FEATURES if each.item_text
    )
    return f"coalesce({longer}{own})" if longer else own


def versions(item_ids: Iterable[str]) -> Statement:
    """A query for the `keys_of` of at most 200 items; items that are gone are left out."""
    return Statement(
        f"""SELECT items.id, items.arrived, items.title, items.link, items.base_url,
          items.enclosures AS enclosures_json, feeds.link AS feed_link, feeds.url AS feed_url,
          {body_version()} AS version
        FROM json_each(?) AS j CROSS JOIN items ON items.id = j.value
        JOIN feeds ON feeds.id = items.feed_id""",
        [compact(_ids(item_ids))],
        name="read versions of bodies",
    )


def keys_of(result: Result) -> dict[str, BodyKey]:
    """By item id, the result of `versions`."""
    return {key.id: key for key in map(BodyKey._make, result.columns(*BodyKey._fields))}


def sources(
    item_ids: Iterable[str],
    *,
    most_characters: int,
    most_bytes: int = MOST_BYTES,
    with_users_text: Iterable[str] = (),
) -> Statement:
    """A query for what the bodies of at most 200 items are made of.

    It gives the items in their order for as long as their texts are within `most_bytes`, and at least
    one; of each text so many characters from its start. A row has `id`, `version`, `title`, `link`,
    `base_url`, `enclosures`, `html` (the content, or the summary of an item without), `content_omitted` (what
    was too large to be stored), `feed_url`, `feed_link`. Items that are gone are left out. Of those
    `with_users_text` it has what some users alone see.
    """
    ids, of_users = compact(_ids(item_ids)), compact(list(with_users_text))
    text = body_text("i")
    if _OF_USER is not None:
        html = _OF_USER.html.format(item="i.id")
        text = f"CASE WHEN {{page}}.is_users = 1 THEN coalesce(({html}), {text}) ELSE {text} END"
    items = f"""WITH chosen AS (
        SELECT {number("j.key")} AS n, j.value AS id,
          {number("j.value IN (SELECT value FROM json_each(?))")} AS is_users FROM json_each(?) AS j),
      wanted AS (
        SELECT c.n, i.rowid AS place, c.is_users,
          coalesce(length(CAST({text.format(page="c")} AS BLOB)), 0) AS size
        FROM chosen AS c CROSS JOIN items AS i ON i.id = c.id),
      page AS (SELECT n, place, is_users, sum(size) OVER (ORDER BY n) AS total,
        row_number() OVER (ORDER BY n) AS nth FROM wanted)
      SELECT i.id, {body_version(items="i")} AS version, i.title, i.link, i.base_url, i.enclosures,
        substr({text.format(page="page")}, 1, CAST(? AS INTEGER)) AS html, i.content_omitted,
        feeds.url AS feed_url, feeds.link AS feed_link
      FROM page CROSS JOIN items AS i ON i.rowid = page.place JOIN feeds ON feeds.id = i.feed_id
      WHERE page.nth = 1 OR page.total <= ? ORDER BY page.n"""
    return Statement(items, [of_users, ids, most_characters, most_bytes], name="read sources of bodies")


def images(item_ids: Iterable[str]) -> Statement:
    """A query, for `images_by_item`, for the archived images of at most 200 items."""
    return Statement(
        """SELECT t.item_id, t.original_url, t.r2_key, t.width, t.height
        FROM json_each(?) AS j CROSS JOIN image_tasks AS t ON t.item_id = j.value
        WHERE t.status = 'success' AND t.r2_key IS NOT NULL""",
        [compact(_ids(item_ids))],
        name="read images of bodies",
    )


def kept_versions(item_id: str, *, most: int, most_characters: int) -> Statement:
    """A query for what the bodies of an item's earlier versions are made of, the latest first.

    A row is as one of `sources`, with `replaced_at`: when this version was no longer the item's.
    """
    return Statement(
        f"""SELECT v.replaced_at, i.id, v.title, v.link, v.base_url, v.enclosures,
          substr({own_text("v")}, 1, CAST(? AS INTEGER)) AS html, feeds.url AS feed_url,
          feeds.link AS feed_link
        FROM items AS i CROSS JOIN item_versions AS v ON v.item_id = i.id JOIN feeds ON feeds.id = i.feed_id
        WHERE i.id = ? ORDER BY v.replaced_at DESC LIMIT CAST(? AS INTEGER)""",
        [most_characters, item_id, most],
        name="read earlier versions of an item",
    )


class ArchivedImage(NamedTuple):
    """The key of an archived image, and its pixels if they are known."""

    key: str
    width: float | None = None
    height: float | None = None

    @property
    def size(self) -> ImageSize | None:
        return ImageSize(int(self.width), int(self.height)) if self.width and self.height else None


def images_by_item(result: Result) -> dict[str, dict[str, ArchivedImage]]:
    """By item id, archived images by original URL, from the result of `images`."""
    found: dict[str, dict[str, ArchivedImage]] = {}
    for id, url, *image in result.columns("item_id", "original_url", "r2_key", "width", "height"):
        found.setdefault(id, {})[url] = ArchivedImage._make(image)
    return found


def _ids(item_ids: Iterable[str]) -> Sequence[str]:
    ids = list(item_ids)
    if len(ids) > MOST_ITEMS:
        raise ValueError(f"{len(ids)} items; at most {MOST_ITEMS} are read at once")
    return ids
