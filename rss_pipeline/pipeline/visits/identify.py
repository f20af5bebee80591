"""The identities of a document's items by what is stored: for a poll and a replay alike.

Of items without guid, of those that a former codec of the feed identified otherwise, and of those with guids
that their publisher has changed since. The rules are collector.models.identity.s and below.
"""

import json
import logging
import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.identity import (
    MAX_TITLE_CHARACTERS,
    Identities,
    Known,
    held_back,
    respelled,
    same_title,
    settled,
    spellings,
)
from rss_pipeline.collector.models.item import Moved
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.collector.parse.links import last_part
from rss_pipeline.errors import spooling
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.storage.database import Database, item_bytes
from rss_pipeline.storage.items.identities import alias_counts, alike, count_known, known_identities
from rss_pipeline.storage.items.items import COLUMNS, chunked_rows, with_guid

# The items of a document whose publisher has given nearly all of them other guids, by what is stored.
#
# A new guid alone is a new item. Only where a whole document has new ones, and half of its items are stored
# ones, have its guids been rewritten: by other software, a moved site, or at every visit. Pure functions; the
# stored items are read in storage.items.identities.

MIN_REWRITTEN = 3

Key = Callable[[Known], Hashable | None]


def may_be_rewritten(new: int, listed: int) -> bool:
    """Return True if at least 80 % of a document's guids are new, and at least three."""
    return new >= MIN_REWRITTEN and 5 * new >= 4 * listed


@dataclass(frozen=True, slots=True)
class Brought:
    """The items of a document whose guids were first seen in this very document: it is read again."""

    new: Collection[str] = ()
    """The ones stored from it, by guid."""
    rewritten: Collection[str] = ()
    """The ones recognized in it, by the guid that they keep."""

    @property
    def all(self) -> set[str]:
        """The new and the recognized ones."""
        return {*self.new, *self.rewritten}


def rewritten(
    listed: Mapping[str, Known],
    known: Collection[str],
    stored: Mapping[str, Known],
    *,
    before: bool = False,
    brought: Brought = Brought(),
) -> dict[str, str]:
    """The new guids that stored items have in this document, each with the guid that its item keeps.

    `listed` are the document's items, `known` the guids among theirs that are stored or retired, and `stored`
    at least the feed's items, also retired ones, with a link or title of the document; all by guid. Two items
    are one if both have the same link; if one of them has no link, the same title and date; if one has moved
    to another host, the same path, title and date. Neither the document nor the feed may have another item
    that is alike: what is ambiguous is new. Nothing is rewritten unless these are at least three, and half of
    the document's items.

    A feed whose guids were rewritten `before` may go back, or list guids of several kinds: then a new guid is
    that of the one stored item with the same link, title and date; without dates, with the same link and
    title, where the document has at least 80 % new guids.

    A document that is read again is judged as it was: what it has `brought` was new then.
    """
    found: dict[str, str] = {}
    stored_links = {_by_link(old) for old in stored.values()}

    def find(key: Key, may_be: Callable[[Known, Known], bool]) -> None:
        theirs = _only(stored, key)
        for value, guid in _only(listed, key).items():
            old = theirs.get(value)
            if guid is None or old is None or guid in known or guid in found:
                continue
            if old not in listed and may_be(listed[guid], stored[old]):
                found[guid] = old

    again = sum(guid in listed for guid in brought.rewritten)
    were_known = set(known) - brought.all
    is_rewritten = may_be_rewritten(sum(guid not in were_known for guid in listed), len(listed))
    if is_rewritten:
        find(_by_link, lambda _new, _old: True)
        find(_by_title_and_date, lambda new, old: not new.link or not old.link)
        find(_by_page, lambda new, _old: _by_link(new) not in stored_links)
    if len(found) + again < MIN_REWRITTEN or 2 * (len(found) + again) < len(listed):
        found.clear()
        if before:
            find(_by_all, lambda _new, _old: True)
        if before and is_rewritten:
            find(_by_link_and_title, lambda _new, _old: True)
    return found


def moved(
    listed: Mapping[str, Known], known: Collection[str], stored: Mapping[str, Known], by: Moved
) -> dict[str, str]:
    """The new guids of stored items in a document whose addresses have changed, each with the guid that its
    item keeps; the parameters are those of `rewritten`.

    An item that the reader of the document knows again is the stored one of its title that has the same date,
    or the same last part of its address. Of the others, an item is one if neither the document nor the feed
    has its title twice and it has both; of an older one, either will do. Where a person has confirmed the
    list, the title is enough, if these are at least three, and half of its items. Items with two dates are
    two, and what is ambiguous is new.
    """
    times = Counter(map(_by_title, listed.values()))
    titled: dict[str | None, list[str]] = defaultdict(list)
    for old, item in stored.items():
        if old not in listed:
            titled[_by_title(item)].append(old)
    found: dict[str, str] = {}
    alone: dict[str, str] = {}
    for guid, item in listed.items():
        title = _by_title(item)
        if guid in known or title is None:
            continue
        alike = {old: _likeness((guid, item), (old, stored[old])) for old in titled[title]}
        olds = [old for old, likeness in alike.items() if likeness > 0]
        if guid in by.guids and len(olds) == 1:
            found[guid] = olds[0]
        elif len(alike) == times[title] == 1:
            [(old, likeness)] = alike.items()
            if likeness >= (1 if guid in by.older else 2):
                found[guid] = old
            elif likeness >= 0:
                alone[guid] = old
    if by.is_confirmed and len(found | alone) >= MIN_REWRITTEN and 2 * len(found | alone) >= len(listed):
        found |= alone
    takers = Counter(found.values())
    return {guid: old for guid, old in found.items() if takers[old] == 1}


def _likeness(new: tuple[str, Known], old: tuple[str, Known]) -> int:
    """The number of what two items have in common of date and last part of the guid; -1 for two dates."""
    days = {new[1].pub_date, old[1].pub_date}
    name = last_part(new[0])
    if len(days - {None}) == 2:
        return -1
    return int(len(days) == 1 and None not in days) + int(name is not None and name == last_part(old[0]))


def _only(items: Mapping[str, Known], key: Key) -> dict[Hashable, str | None]:
    """The guid of the item with each key; None where several have it."""
    by_key: dict[Hashable, str | None] = {}
    for guid, item in items.items():
        if (value := key(item)) is not None:
            by_key[value] = None if value in by_key else guid
    return by_key


def _by_link(item: Known) -> str | None:
    return _without_scheme(item.link) if item.link else None


def _by_title(item: Known) -> str | None:
    return same_title(item.title) if item.title else None


def _by_title_and_date(item: Known) -> tuple[str, str] | None:
    if not item.title or item.pub_date is None:
        return None
    return item.title[:MAX_TITLE_CHARACTERS], instant(item.pub_date)


def _by_page(item: Known) -> Hashable | None:
    titled = _by_title_and_date(item)
    path = _without_scheme(item.link or "").lstrip("/").partition("/")[2]
    return (path, titled) if path and titled else None


def _by_all(item: Known) -> Hashable | None:
    titled = _by_title_and_date(item)
    return (_by_link(item), titled) if titled else None


def _by_link_and_title(item: Known) -> Hashable | None:
    """The key of an item without a date."""
    is_undated = item.link and item.title and item.pub_date is None
    return (_by_link(item), (item.title or "")[:MAX_TITLE_CHARACTERS]) if is_undated else None


def _without_scheme(link: str) -> str:
    scheme, colon, rest = link.partition(":")
    return rest if colon and scheme.lower() in ("http", "https") else link


def same_links(link: str) -> tuple[str, ...]:
    """The link over http and over https, if it is either: the same page."""
    rest = _without_scheme(link)
    return (link,) if rest == link else (f"http:{rest}", f"https:{rest}")


logger = logging.getLogger(__name__)

_GUID = COLUMNS.index("guid")
_SOURCE = COLUMNS.index("guid_source")
_GUIDS_AT_ONCE = 250_000
"""Characters of a document's guids from which on they are no part of a common query."""

Planned = dict[str, Known]
"""The items that a dry run would have stored until now, and the aliases of items, by guid."""


def to_identify(database: Database, documents: Iterable[tuple[Feed, Parsed]]) -> set[str]:
    """The feeds, by id, with a document that has to be identified: the others have the guids of their items.

    It is one query for the documents of a round, and not one for each.
    """
    found: set[str] = set()

    def unsure() -> Iterator[tuple[str, list[str]]]:
        for feed, parsed in documents:
            if parsed.without_guid or parsed.has_former_guids or parsed.moved:
                found.add(feed.id)
            elif feed.http.last_body_at is not None or feed.unfinished.was_interrupted:
                guids = [guid for chunk in read_chunks(parsed.path) for guid in chunk.guids]
                if sum(map(len, guids)) < _GUIDS_AT_ONCE:
                    yield feed.id, guids
                else:
                    found.add(feed.id)

    for feed_id, known in count_known(database, unsure()).items():
        new = known.listed - known.stored
        is_one_again = known.aliases or known.respelled or (known.has_rewritten and new)
        if is_one_again or may_be_rewritten(new, known.listed):
            found.add(feed_id)
    return found


def identify(database: Database, feed: Feed, parsed: Parsed, *, planned: Planned | None = None) -> Parsed:
    """The document with each item under the guid by which it is stored or retired, if it is.

    Its rows in the spool are rewritten where that is another than the parser's. With `planned`, items that a
    dry run would have stored count as stored, and those of this document are added.
    """
    items: list[Identities] = []
    others: dict[str, None] = {}
    former: list[tuple[str, str]] = []
    for chunk in read_chunks(parsed.path):
        items += chunk.identities
        former += chunk.former_guids
        if len(chunk.identities) < len(chunk.ids):
            identified = {item.guid for item in chunk.identities}
            others |= {guid: None for guid in chunk.guids if guid not in identified}
    wanted = dict.fromkeys(chain(*(item.guids for item in items), *former, others))
    known = {guid: planned[guid] for guid in wanted if guid in planned} if planned else {}
    known |= known_identities(database, feed.id, wanted)
    listed = others.keys() | set(chain(*(item.guids for item in items)))
    urls = {item.link: item.url for item in items}
    found = {old: new for new, old in _as_stored(former, known, urls) if old not in listed}
    known |= {new: replace(known[old], alias_of=known[old].alias_of or old) for old, new in found.items()}
    guids = settled(
        items,
        known,
        earlier=None if parsed.document.are_links_shared else parsed.document.backup_key,
        earlier_abouts=None if parsed.document.are_abouts_shared else parsed.document.backup_key,
        others=others.keys(),
    )
    changed = {item.guid: guid for item, guid in zip(items, guids, strict=True) if guid != item.guid}
    stored = {guid: row.alias_of for guid, row in known.items() if row.alias_of is not None}
    held = sum(held_back(item, guid, known) for item, guid in zip(items, guids, strict=True))
    own = [*guids, *others]
    for guid, row in _respelled(database, feed, parsed, own, changed, known, planned).items():
        known[guid] = row
        stored[guid] = row.alias_of or guid
    is_known = {stored.get(guid, guid) for guid in own if guid in known}
    now = {stored.get(guid, guid) for guid in own}
    # Those without a guid are identified by their link, title and date in any case.
    before = _alias_counts(database, feed, planned) if others and now - is_known else Counter()
    brought = _brought(own, known, at=parsed.document.response.fetched_at)
    new = len(now - is_known) and len(now - (is_known - brought.all))
    if planned is not None or before or parsed.moved or may_be_rewritten(new, len(now)):
        rows = _rows(parsed, changed, stored)
        again = _rewritten(
            database, feed, rows, is_known, planned, brought, before=bool(before), by=parsed.moved
        )
        if again:
            before = before or _alias_counts(database, feed, planned)
            parsed = _with_aliases(feed, parsed, again, before)
            stored |= again
        if planned is not None:
            for guid, row in rows.items():
                planned.setdefault(again.get(guid, guid), row)
            planned |= {new: replace(rows[new], alias_of=old) for new, old in parsed.aliases.items()}
    if changed or not stored.keys().isdisjoint(own):
        links = {item.link for item in items}
        ids = _rewrite(feed, parsed, changed, stored, links, item_bytes=item_bytes(database))
        parsed = replace(parsed, parts={name: part.renamed(ids) for name, part in parsed.parts.items()})
    return _warned(feed, parsed, held) if held else parsed


def _respelled(
    database: Database,
    feed: Feed,
    parsed: Parsed,
    own: Collection[str],
    changed: Mapping[str, str],
    known: Mapping[str, Known],
    planned: Planned | None,
) -> dict[str, Known]:
    """The guids of the document that spell a stored one otherwise, each with the row of that."""
    wanted = dict.fromkeys(chain(*(spellings(guid) for guid in own if guid not in known)))
    if not wanted:
        return {}
    stored = {guid: row for guid in wanted if (row := (planned or {}).get(guid))}
    stored |= known_identities(database, feed.id, wanted)
    if not stored:
        return {}
    found = respelled(_rows(parsed, changed, {}), {**stored, **known})
    rows = {row.alias_of or guid: row for guid, row in stored.items()}
    # It was not brought by this document, whenever that came.
    return {new: replace(rows[old], alias_of=old, since=None) for new, old in found.items()}


def _as_stored(
    former: Iterable[tuple[str, str]], known: Mapping[str, Known], urls: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    """The guids that are not stored, each with the former one that is.

    What several items may be stored under is that of the one with the stored link, by `urls` of links that
    are identities; else the oldest item's, which is the first.
    """
    takers: dict[str, list[str]] = {}
    for new, old in dict.fromkeys(former):
        if old in known:
            takers.setdefault(old, []).append(new)
    for old, some in takers.items():
        free = [new for new in some if new not in known]
        if len(some) > 1:
            linked = [new for new in free if urls.get(new) == known[old].link]
            free = linked or [new for new in free if new not in urls][:1]
        yield from ((new, old) for new in free)


def _brought(own: Iterable[str], known: Mapping[str, Known], *, at: datetime) -> Brought:
    """The items that the document fetched at this time, or a later one, has brought: new when it came."""
    first = at.replace(microsecond=0)
    rows = [(guid, known[guid]) for guid in own if guid in known]
    seen = [(guid, row.alias_of) for guid, row in rows if row.since is not None and row.since >= first]
    return Brought(
        new=[guid for guid, alias_of in seen if alias_of is None],
        rewritten=[alias_of for _, alias_of in seen if alias_of is not None],
    )


def _rows(parsed: Parsed, changed: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, Known]:
    """The rows of the document by the guids that they have so far."""
    found: dict[str, Known] = {}
    for chunk in read_chunks(parsed.path):
        rows = json.loads(chunk.text)
        for values in [rows] if chunk.alone else rows:
            row = dict(zip(COLUMNS, values, strict=True))
            guid = changed.get(row["guid"], row["guid"])
            has_date = row["pub_date_source"] == "feed"
            read = Known(
                title=row["title"] and row["title"][:MAX_TITLE_CHARACTERS],
                link=row["link"],
                pub_date=from_instant(row["pub_date"]) if has_date else None,
                pub_date_raw=row["pub_date_raw"],
            )
            found.setdefault(stored.get(guid, guid), read)
    return found


def _rewritten(
    database: Database,
    feed: Feed,
    rows: Mapping[str, Known],
    known: Set[str],
    planned: Planned | None,
    brought: Brought,
    *,
    before: bool,
    by: Moved | None,
) -> dict[str, str]:
    """The new guids that stored items have among these rows, each with the stored one."""
    new = rows.keys() - known
    were_new = rows.keys() - (known - brought.all)
    if not new or not (before or by or may_be_rewritten(len(were_new), len(rows))):
        return {}
    links = chain(*(same_links(row.link) for row in rows.values() if row.link))
    found = alike(database, feed.id, links, (row.title for row in rows.values()))
    found |= {guid: row for guid, row in (planned or {}).items() if row.alias_of is None}
    if by:
        return moved(rows, known, found, by)
    return rewritten(rows, known, found, before=before, brought=brought)


def _alias_counts(database: Database, feed: Feed, planned: Planned | None) -> Counter[str]:
    counts = Counter(alias_counts(database, feed.id))
    counts.update(row.alias_of for row in (planned or {}).values() if row.alias_of is not None)
    return counts


def _with_aliases(feed: Feed, parsed: Parsed, again: Mapping[str, str], counts: Mapping[str, int]) -> Parsed:
    """The document with the aliases to write, and with a warning if most of its items had some before."""
    parsed = replace(parsed, aliases=again)
    changed = f"{len(again):,} of {parsed.items_seen:,} items have new guids"
    if parsed.moved or 2 * sum(old in counts for old in again.values()) < len(again):
        logger.warning("%s: %s: all were rewritten; stored items keep theirs", feed.url, changed)
        return parsed
    sentence = (
        f"unstable guids: {changed} again; stored ones are recognized by link, or by title and date, and do"
        " not come twice. `key: link` or `key: title+date` for this feed identifies all of them"
    )
    logger.warning("%s: %s", feed.url, sentence)
    warning = FeedWarning(kind="unstable_guids", sentence=sentence)
    return replace(parsed, warnings=(*parsed.warnings, warning))


def _rewrite(
    feed: Feed,
    parsed: Parsed,
    changed: dict[str, str],
    stored: dict[str, str],
    links: set[str],
    *,
    item_bytes: int,
) -> dict[str, str]:
    """The rows in the spool, with these guids in place of the parser's, and with the stored ones in place of
    these. Returns the parser's id of each row to the id that it has now."""
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


def _warned(feed: Feed, parsed: Parsed, held: int) -> Parsed:
    """The document with a warning of items that may be news, or the retired item of their link."""
    sentence = (
        f"{held:,} of {parsed.items_seen:,} items were left out: they have no date, and an item with the same"
        " link was removed when its time was over, so they may be that one; `key: title+date` for this feed"
        " stores them all"
    )
    logger.warning("%s: %s", feed.url, sentence)
    return replace(parsed, warnings=(*parsed.warnings, FeedWarning(kind="shared_guids", sentence=sentence)))
