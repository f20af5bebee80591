"""The items of a replayed backup into the items table, or, in a dry run, the differences alone.

The statements are storage.items.replay's.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.replay import sql as replays
from rss_pipeline.features.replay.backup_visit import (
    FINDINGS_KEPT,
    BackupVisit,
    Finding,
    NoLongerRead,
    Replayed,
    StoredItem,
)
from rss_pipeline.features.streams.model import streams_in
from rss_pipeline.features.streams.sql import Judgement, judgement_of
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.pipeline.visits.identify import identify
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import forget_failed_document
from rss_pipeline.storage.items.aliases import add_aliases
from rss_pipeline.storage.items.items import COLUMNS, RowChunk, chunked_rows

_TITLE = COLUMNS.index("title")
_OMITTED = COLUMNS.index("content_omitted")
_GUID = COLUMNS.index("guid")


def store_backup(visit: BackupVisit, parsed: Parsed, *, database: Database, now: datetime) -> BackupVisit:
    """Insert the items of a backup that are not stored; report or rewrite those that read otherwise now.

    Raises:
        StorageRejected: the database refuses something of it.
    """
    feed, fetched_at = visit.feed, parsed.document.response.fetched_at
    if not _brings_known_items(visit, parsed):
        parsed = identify(database, feed, parsed, planned=visit.planned if visit.dry_run else None)
    chunks = list(read_chunks(parsed.path))
    fresh = _not_handled(chunks, visit.handled)
    judgement = judgement_of(feed, parsed)
    if visit.dry_run:
        new = _would_be_new(database, feed.id, fresh)
    else:
        if parsed.aliases:
            add_aliases(database, feed.id, parsed.aliases, fetched_at=fetched_at)
        new = replays.insert(
            database,
            fresh,
            feed_id=feed.id,
            fetched_at=fetched_at,
            backup_key=visit.backup_key,
            judgement=judgement,
            retired_since=visit.retired_since,
        )
        _judge(database, visit, parsed, judgement, chunks, fresh)
        if feed.http.failed_hash == parsed.document.content_hash:
            # The next visit reads this document again, and stores its validators.
            forget_failed_document(database, feed.id, parsed.document.content_hash)
    visit.handled.update(id for chunk in fresh for id in chunk.ids)
    known = replays.known_rows(chunks) if new or visit.dry_run or visit.repair else {}
    findings = [Finding(item_id=id, title=known[id][_TITLE], what="new") for id in new]
    gone: list[Finding] = []
    differing: list[Finding] = []
    stored: dict[str, StoredItem] = {}
    if visit.dry_run or visit.repair:
        gone, differing, stored = _compare(database, visit, parsed, known)
    repaired: tuple[str, ...] = ()
    if visit.repair and not visit.dry_run and differing:
        repaired = replays.repair(
            database,
            (known[finding.item_id] for finding in differing),
            feed_id=feed.id,
            backup_key=visit.backup_key,
            now=now,
        )
    imageless = {id for chunk in fresh for id in chunk.imageless}
    left: tuple[str, ...] = ()
    if feed.unfinished.images_pending and not visit.dry_run:
        left = replays.without_images(database, feed.id, fetched_at=fetched_at, backup_key=visit.backup_key)
    replayed = Replayed(
        parsed=parsed,
        new_ids=tuple(dict.fromkeys((*(id for id in new if id not in imageless), *repaired, *left))),
        items_new=len(new),
        written=dict.fromkeys(() if visit.dry_run else new) | dict.fromkeys(repaired, instant(now)),
        items_gone=len(gone),
        items_differ=len(differing),
        items_repaired=len(repaired),
        stored=stored,
        items_cut=sum(known[id][_OMITTED] is not None for id in new),
        findings=tuple([*findings, *gone, *differing][:FINDINGS_KEPT]),
    )
    return replace(visit, outcome=replayed)


def _brings_known_items(visit: BackupVisit, parsed: Parsed) -> bool:
    """Return True if earlier backups brought all of its items, under the guids that it gives them."""
    return not (parsed.without_guid or parsed.has_former_guids) and all(
        visit.handled.issuperset(chunk.ids) for chunk in read_chunks(parsed.path)
    )


def _judge(
    database: Database,
    visit: BackupVisit,
    parsed: Parsed,
    judgement: Judgement,
    chunks: Sequence[RowChunk],
    inserted: Sequence[RowChunk],
) -> None:
    """The streams of the backup's other items, where earlier backups did not show the same ones."""
    if not judgement.judged:
        return
    written = {id for chunk in inserted for id in chunk.ids}
    for chunk in chunks:
        streams_of = {id: tuple(judgement.streams_of.get(id, ())) for id in chunk.ids}
        others = [
            id for id, names in streams_of.items() if id not in written and visit.judged.get(id) != names
        ]
        for statements in judgement.groups(others):
            database.batch(statements)
        if streams_in(parsed).errors:
            # Of some streams it is not known: the next backup writes all of them.
            for id in streams_of:
                visit.judged.pop(id, None)
        else:
            visit.judged.update(streams_of)


def with_lost_items(visit: BackupVisit, failure: Failure, *, database: Database) -> BackupVisit:
    """A backup that cannot be read, with the items that were stored of it when it could, if any."""
    assert failure.fetched_at is not None
    gone = [
        Finding(item_id=stored["id"], title=stored["title"], what="gone")
        for stored in replays.stored_of(
            database, visit.feed.id, fetched_at=failure.fetched_at, backup_key=visit.backup_key
        )
    ]
    if not gone:
        return visit
    unread = NoLongerRead(failure=failure, items_gone=len(gone), findings=tuple(gone[:FINDINGS_KEPT]))
    return replace(visit, outcome=unread)


def _not_handled(chunks: Sequence[RowChunk], handled: set[str]) -> list[RowChunk]:
    """The rows that no earlier backup brought: a feed's 1,400 backups cost one insert an item."""
    some: list[RowChunk] = []
    for chunk in chunks:
        fresh = [id for id in chunk.ids if id not in handled]
        if len(fresh) == len(chunk.ids):
            some.append(chunk)
        elif fresh:
            known = replays.known_rows([chunk])
            imageless = set(chunk.imageless)
            some += (
                replace(each, imageless=tuple(id for id in each.ids if id in imageless))
                for each in chunked_rows(known[id] for id in fresh)
            )
    return some


def _would_be_new(database: Database, feed_id: str, fresh: Sequence[RowChunk]) -> tuple[str, ...]:
    new: list[str] = []
    for chunk in fresh:
        pairs = [(id, row[_GUID]) for id, row in replays.known_rows([chunk]).items()]
        missing = replays.not_stored(database, feed_id, pairs)
        new += [id for id in chunk.ids if id in missing]
    return tuple(new)


def _compare(
    database: Database, visit: BackupVisit, parsed: Parsed, known: dict[str, list[object]]
) -> tuple[list[Finding], list[Finding], dict[str, StoredItem]]:
    """The items stored of this backup that it does not list now, those that read otherwise, and all that it
    lists."""
    gone, differing = [], []
    listed: dict[str, StoredItem] = {}
    for stored in replays.stored_of(
        database,
        visit.feed.id,
        fetched_at=parsed.document.response.fetched_at,
        backup_key=visit.backup_key,
    ):
        id, title = stored["id"], stored["title"]
        if id not in known:
            gone.append(Finding(item_id=id, title=title, what="gone"))
            continue
        fields = replays.differing(stored, known[id])
        if fields:
            differing.append(Finding(item_id=id, title=title, what="differs", fields=fields))
        listed[id] = StoredItem(title=title, base_url=stored["base_url"], differs=bool(fields))
    return gone, differing, listed
