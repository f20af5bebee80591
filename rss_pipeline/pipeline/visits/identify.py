"""The identities of a document's items by what is stored: for a poll and a replay alike.

Of items without guid, and of those that a former codec of the feed identified otherwise. A document without
such items is not looked at, and costs no query. The rules are collector.models.identity's.
"""

import json
import logging
import pickle
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

from rss_pipeline.collector.http.body import spooling
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.identity import Identities, Known, held_back, settled
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.storage.database import Database, item_bytes
from rss_pipeline.storage.items.identities import known_identities
from rss_pipeline.storage.items.items import COLUMNS, chunked_rows, with_guid

logger = logging.getLogger(__name__)

_GUID = COLUMNS.index("guid")
_SOURCE = COLUMNS.index("guid_source")

Planned = dict[str, Known]
"""The items that a dry run would have stored until now, by guid."""


def identify(database: Database, feed: Feed, parsed: Parsed, *, planned: Planned | None = None) -> Parsed:
    """The document with each item under the guid by which it is stored or retired, if it is.

    Its rows in the spool are rewritten where that is another than the parser's. With `planned`, items that a
    dry run would have stored count as stored, and those of this document are added.
    """
    if not (parsed.without_guid or parsed.has_former_guids):
        return parsed
    items: list[Identities] = []
    others: set[str] = set()
    former: list[tuple[str, str]] = []
    for chunk in read_chunks(parsed.path):
        items += chunk.identities
        former += chunk.former_guids
        if len(chunk.identities) < len(chunk.ids):
            others |= set(chunk.guids()) - {item.guid for item in chunk.identities}
    wanted = chain(*(item.guids for item in items), *former)
    known = (planned or {}) | known_identities(database, feed.id, wanted)
    listed = others.union(*(item.guids for item in items))
    found = {old: new for new, old in reversed(former) if old in known.keys() - listed and new not in known}
    stored = {new: old for old, new in found.items()}
    known |= {new: known[old] for new, old in stored.items()}
    guids = settled(
        items,
        known,
        earlier=None if parsed.document.are_links_shared else parsed.document.backup_key,
        earlier_abouts=None if parsed.document.are_abouts_shared else parsed.document.backup_key,
        others=others,
    )
    if planned is not None:
        for item, guid in zip(items, guids, strict=True):
            planned.setdefault(stored.get(guid, guid), _planned(item))
        for guid in others & dict(former).keys():
            planned.setdefault(stored.get(guid, guid), Known())
    changed = {item.guid: guid for item, guid in zip(items, guids, strict=True) if guid != item.guid}
    if changed or stored:
        links = {item.link for item in items}
        ids = _rewrite(feed, parsed, changed, stored, links, item_bytes=item_bytes(database))
        members = parsed.stream_members.items()
        renamed = {name: tuple(ids[old] for old in olds if old in ids) for name, olds in members}
        parsed = replace(parsed, stream_members=renamed)
    held = sum(held_back(item, guid, known) for item, guid in zip(items, guids, strict=True))
    return _warned(feed, parsed, held) if held else parsed


def _rewrite(
    feed: Feed,
    parsed: Parsed,
    changed: dict[str, str],
    stored: dict[str, str],
    links: set[str],
    *,
    item_bytes: int,
) -> dict[str, str]:
    """The rows in the spool, with these guids in place of the parser's, and with those that a former codec
    read in place of these. Returns the parser's id of each row to the id that it has now."""
    imageless: set[str] = set()
    seen: set[str] = set()
    ids: dict[str, str] = {}

    def rows() -> Iterator[list[Any]]:
        for chunk in read_chunks(parsed.path):
            read = json.loads(chunk.text)
            for id, row in zip(chunk.ids, [read] if chunk.alone else read, strict=True):
                source = row[_SOURCE]
                guid = changed.get(row[_GUID], row[_GUID])
                if guid != row[_GUID]:
                    source = "link" if guid in links else "hash"
                guid = stored.get(guid, guid)
                if guid != row[_GUID]:
                    row = with_guid(row, feed.id, guid, source, item_bytes=item_bytes)
                if row[0] in seen:
                    continue
                seen.add(row[0])
                ids[id] = row[0]
                if id in chunk.imageless:
                    imageless.add(row[0])
                yield row

    path = parsed.path.with_name(parsed.path.name + ".known")
    with spooling(path), path.open("wb") as file:
        for chunk in chunked_rows(rows()):
            pickle.dump(replace(chunk, imageless=tuple(id for id in chunk.ids if id in imageless)), file)
    path.replace(parsed.path)
    return ids


def _planned(item: Identities) -> Known:
    return Known(
        title=item.titles[0],
        link=item.url,
        pub_date=item.pub_date,
        pub_date_raw=item.pub_date_raw,
    )


def _warned(feed: Feed, parsed: Parsed, held: int) -> Parsed:
    """The document with a warning of items that may be news, or the retired item of their link."""
    sentence = (
        f"{held:,} of {parsed.items_seen:,} items were left out: they have no date, and an item with the same"
        " link was removed when its time was over, so they may be that one; `key: title+date` for this feed"
        " stores them all"
    )
    logger.warning("%s: %s", feed.url, sentence)
    return replace(parsed, warnings=(*parsed.warnings, FeedWarning(kind="shared_guids", sentence=sentence)))
