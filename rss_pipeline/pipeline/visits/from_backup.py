"""The two ends of a replayed visit: a backup into a document of the spool, and its items into the table.

Between the two a replay goes through the steps of every visit (steps.py). Which backups are replayed is
replaying.py's, the statements are storage.replays'.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document, Pending, Response
from rss_pipeline.errors import BackupUnreadable, ObjectStoreUnavailable
from rss_pipeline.pipeline.visits.parser_pool import read_chunks
from rss_pipeline.pipeline.visits.session import Session
from rss_pipeline.pipeline.visits.visit import (
    Finding,
    NoLongerRead,
    Parsed,
    Replay,
    Replayed,
    Unreadable,
    Visit,
)
from rss_pipeline.storage.backups.backups import describe_backup
from rss_pipeline.storage.items import replay as replays
from rss_pipeline.storage.items.items import COLUMNS, RowChunk, chunked_rows

SLICE_BYTES = 32_000_000
SLICE_BACKUPS = 200
FINDINGS_KEPT = 200
_THREADS = 16
_TITLE = COLUMNS.index("title")
_GUID = COLUMNS.index("guid")


def slices(visits: Iterable[Visit]) -> Iterator[list[Visit]]:
    """Consecutive visits whose bodies may lie in the spool at once; other visits count nothing."""
    some: list[Visit] = []
    size = count = 0
    for visit in visits:
        more = 0 if visit.replay is None else visit.replay.backup_bytes
        if count and (size + more > SLICE_BYTES or count == SLICE_BACKUPS):
            yield some
            some, size, count = [], 0, 0
        some.append(visit)
        size += more
        count += visit.replay is not None
    if some:
        yield some


def open_backups(session: Session, visits: Sequence[Visit]) -> list[Visit]:
    """Bring the backups that replays have not opened yet into the spool, as documents; the rest passes."""

    def one(visit: Visit) -> Visit:
        if visit.replay is None or not isinstance(visit.outcome, Pending):
            return visit
        return _opened(session, visit, visit.replay)

    if not any(visit.replay for visit in visits):
        return list(visits)
    spool = session.spool
    assert spool.exists()
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(one, visits))


def _opened(session: Session, visit: Visit, replay: Replay) -> Visit:
    found = session.objects.get(replay.backup_key)
    if found is None:
        message = f"{replay.backup_key} is gone: it was there when the backups were listed"
        return replace(visit, outcome=Unreadable(message=message))
    body, info = found
    try:
        backup = describe_backup(info)
    except BackupUnreadable as error:
        return replace(visit, outcome=Unreadable(message=str(error)))
    path = session.spool / replay.backup_key.replace("/", "@")
    try:
        path.write_bytes(body)
    except OSError as error:
        raise ObjectStoreUnavailable(f"{path}: {error}; check the spool folder and the disk") from error
    document = Document(
        response=Response(
            status=backup.status,
            requested_url=backup.requested_url,
            url=backup.url,
            fetched_at=backup.fetched_at,
            fetch_ms=0,
            content_type=backup.content_type,
            etag=backup.etag,
            last_modified=backup.last_modified,
        ),
        path=path,
        body_bytes=len(body),
        content_hash=backup.content_hash,
        backup_key=backup.key,
    )
    # As the feed was then: the codec it had shown, and what identified its items.
    feed = replace(
        visit.feed,
        key=backup.item_key or visit.feed.key,
        http=replace(visit.feed.http, charset=backup.hint),
    )
    return replace(visit, feed=feed, outcome=document)


def store_replayed(session: Session, visit: Visit, replay: Replay, parsed: Parsed) -> Visit:
    """Insert the items of a backup that are not there, and tell or mend those that read otherwise now.

    Raises:
        StorageRejected: the database refuses something of it.
    """
    feed, fetched_at = visit.feed, parsed.document.response.fetched_at
    chunks = list(read_chunks(parsed.path))
    fresh = _not_handled(chunks, replay.handled)
    if replay.dry_run:
        new = _would_be_new(session, feed.id, fresh)
    else:
        new = replays.insert(
            session.database, fresh, feed_id=feed.id, fetched_at=fetched_at, backup_key=replay.backup_key
        )
    replay.handled.update(id for chunk in fresh for id in chunk.ids)
    known = replays.known_rows(chunks) if new or replay.dry_run or replay.repair else {}
    findings = [Finding(item_id=id, title=known[id][_TITLE], what="new") for id in new]
    gone: list[Finding] = []
    differing: list[Finding] = []
    if replay.dry_run or replay.repair:
        gone, differing = _compare(session, visit, parsed, replay, known)
    repaired: tuple[str, ...] = ()
    if replay.repair and not replay.dry_run and differing:
        repaired = replays.repair(
            session.database,
            (known[finding.item_id] for finding in differing),
            feed_id=feed.id,
            backup_key=replay.backup_key,
            now=session.clock(),
        )
    imageless = {id for chunk in fresh for id in chunk.imageless}
    left: tuple[str, ...] = ()
    if feed.unfinished.images_pending and not replay.dry_run:
        left = replays.without_images(
            session.database, feed.id, fetched_at=fetched_at, backup_key=replay.backup_key
        )
    replayed = Replayed(
        parsed=parsed,
        new_ids=tuple(dict.fromkeys((*(id for id in new if id not in imageless), *repaired, *left))),
        items_new=len(new),
        items_gone=len(gone),
        items_differ=len(differing),
        items_repaired=len(repaired),
        findings=tuple([*findings, *gone, *differing][:FINDINGS_KEPT]),
    )
    return replace(visit, outcome=replayed)


def told_of_its_items(session: Session, visit: Visit, replay: Replay, failure: Failure) -> Visit:
    """A backup that cannot be read, with the items it gave when it could be, if any."""
    assert failure.fetched_at is not None
    gone = [
        Finding(item_id=stored["id"], title=stored["title"], what="gone")
        for stored in replays.stored_of(
            session.database, visit.feed.id, fetched_at=failure.fetched_at, backup_key=replay.backup_key
        )
    ]
    if not gone:
        return visit
    told = NoLongerRead(failure=failure, items_gone=len(gone), findings=tuple(gone[:FINDINGS_KEPT]))
    return replace(visit, outcome=told)


def _not_handled(chunks: Sequence[RowChunk], handled: set[str]) -> list[RowChunk]:
    """What no earlier backup brought: a feed's 1,400 backups cost one insert an item."""
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


def _would_be_new(session: Session, feed_id: str, fresh: Sequence[RowChunk]) -> tuple[str, ...]:
    new: list[str] = []
    for chunk in fresh:
        pairs = [(id, row[_GUID]) for id, row in replays.known_rows([chunk]).items()]
        missing = replays.not_stored(session.database, feed_id, pairs)
        new += [id for id in chunk.ids if id in missing]
    return tuple(new)


def _compare(
    session: Session, visit: Visit, parsed: Parsed, replay: Replay, known: dict[str, list[object]]
) -> tuple[list[Finding], list[Finding]]:
    """Of the items that were stored of this backup: those it does not list now, those that read otherwise."""
    gone, differing = [], []
    for stored in replays.stored_of(
        session.database,
        visit.feed.id,
        fetched_at=parsed.document.response.fetched_at,
        backup_key=replay.backup_key,
    ):
        id, title = stored["id"], stored["title"]
        if id not in known:
            gone.append(Finding(item_id=id, title=title, what="gone"))
        elif fields := replays.differing(stored, known[id]):
            differing.append(Finding(item_id=id, title=title, what="differs", fields=fields))
    return gone, differing
