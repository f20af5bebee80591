"""The steps of a replay: parse, store and extract images, for backups.

They close no visit, and write one thing into feeds: that a document which failed can be read now. The parts
that they share with a poll's steps are pipeline.visits': reading a document, applying a step in threads,
searching items for images.
"""

from collections import Counter
from dataclasses import replace

from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.errors import StorageRejected
from rss_pipeline.pipeline.replay.backup_visit import BackupVisit, BackupVisits, Replayed
from rss_pipeline.pipeline.replay.image_review import review_images
from rss_pipeline.pipeline.replay.open_backups import open_backups, slices
from rss_pipeline.pipeline.replay.store_backup import store_backup, with_lost_items
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ParseTask
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.spool import Spool
from rss_pipeline.pipeline.visits.document_failures import rejected
from rss_pipeline.pipeline.visits.image_search import ItemImageSearch, spooled_items
from rss_pipeline.pipeline.visits.in_parallel import in_parallel
from rss_pipeline.pipeline.visits.parse import parse_documents
from rss_pipeline.storage.database import item_bytes


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
    repair, the images of all its items are reviewed (image_review.py).
    """
    visits = review_images(visits, run=run, pool=pool)
    search = ItemImageSearch(
        database=run.database,
        clock=run.clock,
        pool=pool,
        images_per_item=run.settings.images_per_item,
    )
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
