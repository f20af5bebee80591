"""The items that the newest stored document of a feed lists, as its backup says.

An item that is not listed any more needs no tombstone: no poll brings it back. Only a clean of a full
database asks, since it takes a document of each feed to be read again.
"""

from collections.abc import Set
from datetime import datetime
from functools import lru_cache

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.errors import BackupUnreadable, InfrastructureError
from rss_pipeline.pipeline.registry.sync import registered_accesses
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, read_chunks
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.visits.backup import open_backup
from rss_pipeline.pipeline.visits.identify import identify
from rss_pipeline.pipeline.visits.parse import parse_documents
from rss_pipeline.progress import NoProgress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups.backups import newest_same_backup
from rss_pipeline.storage.database import Database, item_bytes
from rss_pipeline.storage.feeds.feed_row import feeds_by_id
from rss_pipeline.storage.objects import ObjectStore


class Listed:
    """The lists of feeds, read as they are needed; `close` ends the parser and removes its files."""

    def __init__(
        self, database: Database, objects: ObjectStore, settings: Settings, *, now: datetime
    ) -> None:
        self._run = RunContext(
            settings=settings,
            database=database,
            objects=objects,
            run_id="clean",
            clock=lambda: now,
        )
        self._spool = Spool(settings.spool_path, run_id="clean")
        self._pool = ParserPool(processes=1, timeout=settings.parse_timeout_seconds)
        self._accesses = registered_accesses(settings)
        # Items come feed by feed.
        self.ids = lru_cache(maxsize=8)(self._ids)

    def _ids(self, feed_id: str) -> Set[str] | None:
        """Ids of the items that a feed lists; None where it is not known."""
        feed = feeds_by_id(self._run.database, [feed_id]).get(feed_id)
        # A document that was cut off lists more than it shows.
        if feed is None or feed.http.content_hash is None or feed.http.cut_hash is not None:
            return None
        try:
            parsed = self._parsed(feed, feed.http.content_hash)
            if parsed is None or parsed.cut_off:
                return None
            parsed = identify(self._run.database, feed, parsed)
            return {id for chunk in read_chunks(parsed.path) for id in chunk.ids}
        except (BackupUnreadable, InfrastructureError):
            return None  # A full disk has no room for the document either.

    def _parsed(self, feed: Feed, content_hash: str) -> Parsed | None:
        backup = newest_same_backup(self._run.objects, feed.id, content_hash)
        if backup is None:
            return None
        opened = open_backup(feed, backup.key, objects=self._run.objects, folder=self._spool.folder)
        if opened is None:
            return None
        task = ParseTask(
            feed=opened.feed,
            document=opened.document,
            now=self._run.clock(),
            secrets=opened.secrets | Secrets.of(self._accesses.get(feed.id) or Access()),
            item_bytes=item_bytes(self._run.database),
        )
        [(_, outcome)] = parse_documents([(feed.id, task)], pool=self._pool, progress=NoProgress())
        opened.document.path.unlink(missing_ok=True)
        return outcome if isinstance(outcome, Parsed) else None

    def close(self) -> None:
        self._pool.close()
        self._spool.remove()
