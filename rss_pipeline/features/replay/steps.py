"""The steps of a replay: open, parse, store and extract images, for backups.

They close no visit, and write one thing into feeds: that a document which failed can be read now.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import product
from pathlib import Path

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Document, Parsed, Pending
from rss_pipeline.errors import BackupUnreadable, StorageRejected
from rss_pipeline.features.replay import sql as replays
from rss_pipeline.features.replay.model import (
    FINDINGS_KEPT,
    BackupVisit,
    BackupVisits,
    Difference,
    ItemBefore,
    NoLongerRead,
    Replayed,
    Unreadable,
)
from rss_pipeline.features.replay.sql import row_of
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, read_chunks
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.visits.backup import open_backup
from rss_pipeline.pipeline.visits.extract_images import image_search, spooled_items
from rss_pipeline.pipeline.visits.identify import identify
from rss_pipeline.pipeline.visits.in_parallel import in_parallel
from rss_pipeline.pipeline.visits.parse import parse_documents, rejected
from rss_pipeline.storage.database import Database, item_bytes
from rss_pipeline.storage.feeds.feed_row import forget_failed_document
from rss_pipeline.storage.images import image_tasks as tasks
from rss_pipeline.storage.images.image_tasks import KnownImages, MovedImage
from rss_pipeline.storage.items.identities import add_aliases
from rss_pipeline.storage.items.items import (
    COLUMNS,
    RowChunk,
    chunked_rows,
    image_source,
    known_rows,
    not_stored,
)
from rss_pipeline.storage.objects import ObjectStore


def parse(visits: BackupVisits, *, run: RunContext, pool: ParserPool, spool: Spool) -> BackupVisits:
    """Open each backup and read it, slice by slice; only the rows of what was read stay in the spool."""
    done: dict[str, BackupVisit] = {}
    for some in slices(visits):
        opened = open_backups(some, objects=run.objects, spool=spool)
        done |= {visit.key: visit for visit in opened}
        now = run.clock()
        jobs = [
            (
                visit,
                ParseTask(
                    feed=visit.feed,
                    document=visit.outcome,
                    now=now,
                    secrets=visit.secrets,
                    item_bytes=item_bytes(run.database),
                ),
            )
            for visit in opened
            if isinstance(visit.outcome, Document)
        ]
        for visit, outcome in parse_documents(jobs, pool=pool, progress=run.progress):
            done[visit.key] = replace(visit, outcome=outcome)
            if isinstance(visit.outcome, Document):
                visit.outcome.path.unlink(missing_ok=True)
    return [done[visit.key] for visit in visits]


def store(visits: BackupVisits, *, run: RunContext) -> BackupVisits:
    """Insert the items that are missing, or, in a dry run, find them."""

    def one(visit: BackupVisit, parsed: Parsed) -> BackupVisit:
        try:
            return store_backup(visit, parsed, database=run.database, now=run.clock())
        except StorageRejected as error:
            return replace(visit, outcome=rejected(parsed.document, str(error)))

    def unread(visit: BackupVisit, failure: Failure) -> BackupVisit:
        return with_lost_items(visit, failure, database=run.database)

    visits = in_parallel("store", visits, Parsed, one, progress=run.progress)
    return in_parallel("store", visits, Failure, unread, progress=run.progress)


def extract_images(visits: BackupVisits, *, run: RunContext, pool: ParserPool) -> BackupVisits:
    """Write the image tasks of items that a replay inserted or rewrote, and their HTML.

    They are searched in the spool and not in the database: their relative URLs are that document's. In a
    repair, the images of all its items are reviewed.
    """
    visits = review_images(visits, run=run, pool=pool)
    search = image_search(run, pool, again=True)
    written = [visit for visit in visits if not visit.dry_run]
    leftovers = {
        visit.feed.id: visit
        for visit in written
        if visit.feed.images and visit.feed.unfinished.images_pending
    }
    fresh = [
        (visit, task)
        for visit in written
        if isinstance(visit.outcome, Replayed)
        and (
            task := spooled_items(
                visit.feed,
                visit.outcome.parsed,
                visit.outcome.new_ids if visit.feed.images else (),
                keep=visit.outcome.written if search.is_kept else {},
            )
        )
        and (task.ids or task.keep)
    ]
    run.progress.begin("extract_images", len(fresh))
    # A feed has several backups, and its search is finished with the last one of them.
    left = Counter(visit.feed.id for visit, _ in fresh)
    searched = {visit.feed.id for visit, task in fresh if task.ids}
    for visit in search.search(fresh):
        left[visit.feed.id] -= 1
        if not left[visit.feed.id] and visit.feed.id in searched - leftovers.keys():
            search.finish(visit.feed)
        run.progress.advance("extract_images")
    if leftovers and fresh:
        # The images found so far are not to be found again.
        search.write()
    for visit in leftovers.values():
        link = visit.outcome.parsed.header.link if isinstance(visit.outcome, Replayed) else visit.feed.link
        search.search_stored(visit.feed, link)
        search.finish(visit.feed)
    search.write()
    return visits


# The images of stored items that a replay finds otherwise than the run that stored them.
# The items with images that have no task are searched again by the replay. An image whose URL is resolved
# against another base now keeps its task, with its place and its object, under its new URL.

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReview:
    """The stored items of a backup with its rows in the spool, and the xml:base that each was stored with."""

    feed: Feed
    feed_link: str | None
    path: Path
    bases: Mapping[str, str | None]
    most: int | None
    """Images of one item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedImages:
    item_id: str
    urls: tuple[str, ...]
    written: Mapping[str, str]
    """By URL, the characters by which the item's HTML names the image."""
    former: Mapping[str, str]
    """By the URLs of now, those that some of them had when the item was stored."""


def review(task: ImageReview) -> list[ReviewedImages]:
    """The images of these items as they are found now; it runs in a parser process."""
    from rss_pipeline.collector.images.find import image_bases, item_images
    from rss_pipeline.collector.images.urls import former_base, former_url, usable_base
    from rss_pipeline.collector.images.written import written_references

    found: list[ReviewedImages] = []
    for id, row in known_rows(read_chunks(task.path)).items():
        if id not in task.bases:
            continue
        item = image_source(row_of(row))
        bases = image_bases(item, task.feed_link, task.feed.url)
        base = usable_base(bases)
        former = former_base((task.bases[id], item.link, task.feed_link, task.feed.url))
        urls = item_images(item, task.feed_link, task.feed.url)[: task.most]
        pairs = ((url, former_url(url, base=base, former=former)) for url in urls)
        known = {url: old for url, old in pairs if old is not None and old not in urls}
        written = written_references(item.content_html, urls, bases=bases)
        found.append(ReviewedImages(item_id=id, urls=urls, written=written, former=known))
    return found


def review_images(visits: BackupVisits, *, run: RunContext, pool: ParserPool) -> BackupVisits:
    """Give the tasks of moved images their new URLs, and add the items with further images to those that are
    searched; in a dry run, report these items alone."""
    reviews = dict(_reviews(visits, run.settings.images_per_item))
    done: dict[str, BackupVisit] = {visit.key: visit for visit in visits}
    keys = {id(task): key for key, task in reviews.items()}
    for task, result in pool.map(review, list(reviews.values())) if reviews else ():
        key = keys[id(task)]
        if isinstance(result, WorkerFailure):
            # What cannot be searched has no images, as when it was stored.
            logger.warning("%s: no review of its images: %s", key, result.message)
        else:
            done[key] = _reviewed(done[key], result, run)
    return [done[visit.key] for visit in visits]


def _reviews(visits: BackupVisits, most: int | None) -> Iterator[tuple[str, ImageReview]]:
    for visit in visits:
        outcome = visit.outcome
        if isinstance(outcome, Replayed) and outcome.stored and visit.feed.images:
            bases = {id: stored.base_url for id, stored in outcome.stored.items()}
            link, path = outcome.parsed.header.link, outcome.parsed.path
            yield visit.key, ImageReview(feed=visit.feed, feed_link=link, path=path, bases=bases, most=most)


def _reviewed(visit: BackupVisit, found: list[ReviewedImages], run: RunContext) -> BackupVisit:
    outcome = visit.outcome
    assert isinstance(outcome, Replayed)
    known = tasks.known_images(run.database, [each.item_id for each in found])
    moved: list[MovedImage] = []
    further: list[str] = []
    for each in found:
        if each.item_id not in known:
            continue
        urls = known[each.item_id].urls
        here = [
            MovedImage(item_id=each.item_id, former=old, url=new)
            for new, old in each.former.items()
            if old in urls and new not in urls
        ]
        moved += here
        is_searched = not known[each.item_id].is_pending
        if is_searched and not urls.keys() >= {*each.urls} - {image.url for image in here}:
            further.append(each.item_id)
    if not visit.dry_run:
        tasks.move(run.database, moved, now=run.clock())
        tasks.write_references(run.database, _unwritten(found, known))
    changed = dict.fromkeys([*(image.item_id for image in moved), *further])
    others = [id for id in changed if not outcome.stored[id].differs]
    findings = [
        Difference(item_id=id, title=outcome.stored[id].title, what="differs", fields=("images",))
        for id in others
    ]
    reviewed = replace(
        outcome,
        new_ids=tuple(dict.fromkeys((*outcome.new_ids, *further))),
        items_differ=outcome.items_differ + len(others),
        items_repaired=outcome.items_repaired + (0 if visit.dry_run else len(others)),
        findings=tuple([*outcome.findings, *findings][:FINDINGS_KEPT]),
    )
    return replace(visit, outcome=reviewed)


def _unwritten(
    found: Sequence[ReviewedImages], known: Mapping[str, KnownImages]
) -> dict[tuple[str, str], str]:
    """The references to images of tasks from before they were noted."""
    return {
        (each.item_id, url): text
        for each in found
        if each.item_id in known
        for url, text in each.written.items()
        if known[each.item_id].urls.get(url, "") is None or url in each.former
    }


# The items of a replayed backup into the items table, or, in a dry run, the differences alone.

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
            beside=[partial(each.inserting, parsed) for each in visit.features],
            retired_since=visit.retired_since,
        )
        written = {id for chunk in fresh for id in chunk.ids}
        for feature, chunk in product(visit.features, chunks):
            for statements in feature.others(parsed, chunk.ids, written):
                database.batch(statements)
        if feed.http.failed_hash == parsed.document.content_hash:
            # The next visit reads this document again, and stores its validators.
            forget_failed_document(database, feed.id, parsed.document.content_hash)
    visit.handled.update(id for chunk in fresh for id in chunk.ids)
    known = known_rows(chunks) if new or visit.dry_run or visit.repair else {}
    findings = [Difference(item_id=id, title=known[id][_TITLE], what="new") for id in new]
    gone: list[Difference] = []
    differing: list[Difference] = []
    stored: dict[str, ItemBefore] = {}
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


def with_lost_items(visit: BackupVisit, failure: Failure, *, database: Database) -> BackupVisit:
    """A backup that cannot be read, with the items that were stored of it when it could, if any."""
    assert failure.fetched_at is not None
    gone = [
        Difference(item_id=stored["id"], title=stored["title"], what="gone")
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
            known = known_rows([chunk])
            imageless = set(chunk.imageless)
            some += (
                replace(each, imageless=tuple(id for id in each.ids if id in imageless))
                for each in chunked_rows(known[id] for id in fresh)
            )
    return some


def _would_be_new(database: Database, feed_id: str, fresh: Sequence[RowChunk]) -> tuple[str, ...]:
    new: list[str] = []
    for chunk in fresh:
        pairs = [(id, row[_GUID]) for id, row in known_rows([chunk]).items()]
        missing = not_stored(database, feed_id, pairs)
        new += [id for id in chunk.ids if id in missing]
    return tuple(new)


def _compare(
    database: Database, visit: BackupVisit, parsed: Parsed, known: dict[str, list[object]]
) -> tuple[list[Difference], list[Difference], dict[str, ItemBefore]]:
    """The items stored of this backup that it does not list now, those that read otherwise, and all that it
    lists."""
    gone, differing = [], []
    listed: dict[str, ItemBefore] = {}
    for stored in replays.stored_of(
        database,
        visit.feed.id,
        fetched_at=parsed.document.response.fetched_at,
        backup_key=visit.backup_key,
    ):
        id, title = stored["id"], stored["title"]
        if id not in known:
            gone.append(Difference(item_id=id, title=title, what="gone"))
            continue
        fields = replays.differing(stored, known[id])
        if fields:
            differing.append(Difference(item_id=id, title=title, what="differs", fields=fields))
        listed[id] = ItemBefore(title=title, base_url=stored["base_url"], differs=bool(fields))
    return gone, differing, listed


# Backups into documents of the spool, in slices that bound its size.

SLICE_BYTES = 32_000_000
SLICE_BACKUPS = 200
_THREADS = 16


def slices(visits: Iterable[BackupVisit]) -> Iterator[BackupVisits]:
    """Consecutive visits with bodies that may be in the spool at once."""
    some: BackupVisits = []
    size = 0
    for visit in visits:
        if some and (size + visit.backup_bytes > SLICE_BYTES or len(some) == SLICE_BACKUPS):
            yield some
            some, size = [], 0
        some.append(visit)
        size += visit.backup_bytes
    if some:
        yield some


def open_backups(visits: Sequence[BackupVisit], *, objects: ObjectStore, spool: Spool) -> BackupVisits:
    """Bring the backups that are not open yet into the spool, as documents."""
    folder = spool.folder

    def one(visit: BackupVisit) -> BackupVisit:
        return _opened(visit, objects, folder) if isinstance(visit.outcome, Pending) else visit

    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(one, visits))


def _opened(visit: BackupVisit, objects: ObjectStore, folder: Path) -> BackupVisit:
    try:
        opened = open_backup(
            visit.feed, visit.backup_key, objects=objects, folder=folder, following=visit.following
        )
    except BackupUnreadable as error:
        return replace(visit, outcome=Unreadable(message=str(error)))
    if opened is None:
        message = f"{visit.backup_key} is gone: it was there when the backups were listed"
        return replace(visit, outcome=Unreadable(message=message))
    return replace(visit, feed=opened.feed, secrets=visit.secrets | opened.secrets, outcome=opened.document)
