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
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.features.replay import steps
from rss_pipeline.features.replay.backup_visit import BackupVisit
from rss_pipeline.pipeline.registry.sync import registered_accesses
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.pipeline.visits.identify import identify
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backups.backups import newest_same_backup
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.feeds import feeds_by_id
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
        except InfrastructureError:
            return None  # A full disk has no room for the document either.

    def _parsed(self, feed: Feed, content_hash: str) -> Parsed | None:
        backup = newest_same_backup(self._run.objects, feed.id, content_hash)
        info = None if backup is None else self._run.objects.head(backup.key)
        if backup is None or info is None:
            return None
        visit = BackupVisit(
            feed=feed,
            backup_key=backup.key,
            backup_bytes=info.size,
            dry_run=True,
            secrets=Secrets.of(self._accesses.get(feed.id) or Access()),
        )
        [read] = steps.parse([visit], run=self._run, pool=self._pool, spool=self._spool)
        return read.outcome if isinstance(read.outcome, Parsed) else None

    def close(self) -> None:
        self._pool.close()
        self._spool.remove()
