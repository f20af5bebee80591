"""The search index brought up to date: new items, rewritten items, items that are gone, and rebuilds.

Each transaction is bounded, and a process may be killed at any moment; the next one goes on behind the last
transaction. Two rows of the database say whether there is anything to do.

While a generation is built, the one that serves stays current: after each transaction of the new one the
database is looked at again, and what the serving one lacks is written first.
"""

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.sanitize.html import plain_text
from rss_pipeline.collector.sanitize.text import without_markup
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.search import sql, writing
from rss_pipeline.features.search.index_file import IndexFile, check_fts5, index_path, open_to_write
from rss_pipeline.features.search.sql import IndexEnds, IndexSource
from rss_pipeline.features.search.words import spaced
from rss_pipeline.features.search.writing import Generation, IndexedItem, scope_of_time
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database
from rss_pipeline.storage.database import Database

TRANSACTION_BYTES = 24_000_000
"""Size of text. A process that is killed loses no more than this; smaller ones leave FTS5 more to merge."""
COMPARED_EVERY = timedelta(days=1)
"""Items that retention or `forget` removed are never shown; at this interval they also leave the index."""
FIRST_YEAR, LAST_YEAR = 1990, 2050
_COMPARED_AT_ONCE = 10_000

_COMPARED, _DATABASE = "compared_at", "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWork:
    """The work of one call."""

    added: int = 0
    replaced: int = 0
    dropped: int = 0
    rebuilt: bool = False
    """A generation was completed."""


def bring_up_to_date(
    file: IndexFile,
    database: Database,
    *,
    now: datetime,
    is_over: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
) -> IndexWork:
    """Write into the index what has changed in the database since the last time; `is_over` ends it early, and
    the next call goes on.

    Raises:
        DatabaseUnavailable: the database or the file does not work now; what was done until then stays.
        SearchUnavailable: the file was damaged meanwhile.
    """
    done = IndexWork()
    with ThreadPoolExecutor(1) as thread:
        writer = _Writer(file, database, is_over, progress or NoProgress(), thread)
        while not is_over():
            ends = sql.ends(database)
            _check_database(file, ends.identity)
            while not _is_at(serving := writing.generations(file)[0], ends) and not is_over():
                done = _added(done, writer.go_on(serving, ends))
            building = writing.generations(file)[1:]
            if not building:
                break
            done = _added(done, writer.go_on(building[0], ends))
    if is_over():
        return done
    compared = writing.state(file, _COMPARED)
    if compared is None or now - datetime.fromisoformat(compared) >= COMPARED_EVERY:
        dropped = compare(file, database)
        writing.set_state(file, _COMPARED, instant(now))
        done = _added(done, IndexWork(dropped=dropped))
    serving, *building = writing.generations(file)
    if not building and writing.needs_rebuild(serving, documents=writing.count(file, serving)):
        writing.rebuild(file)
    return done


def is_behind(file: IndexFile, database: Database) -> bool:
    """True if there is something to do now."""
    ends = sql.ends(database)
    serving, *building = writing.generations(file)
    return bool(building) or not _is_at(serving, ends)


def compare(file: IndexFile, database: Database) -> int:
    """Drop what the database has no more, found by the numbers of items of each feed; return how many."""
    dropped = 0
    for generation in writing.generations(file):
        stored = sql.counts_by_feed(database, up_to=generation.arrived)
        indexed = writing.counts_by_feed(file, generation)
        more = [id for id, count in indexed.items() if count > stored.get(id, 0)]
        last = -1
        while more and (
            numbers := writing.numbers_of_feeds(file, generation, more, behind=last, limit=_COMPARED_AT_ONCE)
        ):
            gone = sql.gone(database, numbers)
            if gone:
                writing.drop(file, generation, gone)
            dropped += len(gone)
            last = numbers[-1]
        indexed = writing.counts_by_feed(file, generation) if more else indexed
        if any(indexed.get(id, 0) < count for id, count in stored.items()):
            # It cannot be, unless somebody wrote numbers by hand; but an item that is not found is lost.
            writing.mark_worn(file, generation)
    return dropped


@dataclass(frozen=True, slots=True)
class _Writer:
    """Brings generations on, some transactions at a time.

    While items are written, another thread makes the documents of the next transaction: SQLite works without
    Python's lock, so two cores are used. The documents of two transactions are in memory.
    """

    file: IndexFile
    database: Database
    is_over: Callable[[], bool]
    progress: Progress
    thread: ThreadPoolExecutor
    ahead: dict[Generation, Future[tuple[list[IndexedItem], int]]] = field(default_factory=dict)
    """The documents that are made already, by the state of the generation in which they are next."""

    def go_on(self, at: Generation, ends: IndexEnds) -> IndexWork:
        """Write the next items; behind the last item, the next new versions; behind the last version, that it
        is complete. Nothing more is written where another process was first.

        Versions come after all items, because an item may be rewritten after its document was made.
        """
        if at.arrived == 0 and at.version_row == 0 < ends.version_row:
            writing.start(self.file, at, version_row=ends.version_row, version_at=ends.version_at)
            return IndexWork()
        added = replaced = 0
        if at.arrived < ends.arrived:
            ready, arrived = self._documents(at, ends)
            if not writing.add(self.file, at, ready, arrived=arrived):
                return IndexWork()
            if ready:
                self.progress.advance("items", len(ready))
            added, at = len(ready), replace(at, arrived=arrived)
        if at.arrived >= ends.arrived and not _has_versions(at, ends):
            rewritten, version = _rewritten(self.database, at, ends)
            if not writing.replace(self.file, at, rewritten, version=version):
                return IndexWork(added=added)
            replaced, at = len(rewritten), replace(at, version_row=version[0], version_at=version[1])
        is_new = not at.is_complete and at.arrived >= ends.arrived and _has_versions(at, ends)
        if is_new:
            writing.complete(self.file, at)
        return IndexWork(added=added, replaced=replaced, rebuilt=is_new)

    def _documents(self, at: Generation, ends: IndexEnds) -> tuple[list[IndexedItem], int]:
        made = self.ahead.pop(at, None)
        ready, arrived = made.result() if made else self._make(at, ends)
        if arrived < ends.arrived and not self.is_over():
            following = replace(at, arrived=arrived)
            self.ahead.clear()
            self.ahead[following] = self.thread.submit(self._make, following, ends)
        return ready, arrived

    def _make(self, at: Generation, ends: IndexEnds) -> tuple[list[IndexedItem], int]:
        return _next_documents(self.database, at.arrived, ends, self.is_over)


def _next_documents(
    database: Database, arrived: int, ends: IndexEnds, is_over: Callable[[], bool]
) -> tuple[list[IndexedItem], int]:
    """The documents of one transaction, and the arrival number up to which they are."""
    ready: list[IndexedItem] = []
    size = 0
    while size < TRANSACTION_BYTES:
        found = sql.behind(database, arrived, up_to=ends.arrived)
        if not found:
            return ready, ends.arrived
        ready += map(_document, found)
        size += sum(len(each.html) for each in found)
        arrived = found[-1].arrived
        if is_over():
            break
    return ready, arrived


def _rewritten(
    database: Database, at: Generation, ends: IndexEnds
) -> tuple[list[IndexedItem], tuple[int, str]]:
    """The next items that were rewritten, and the place of their last version."""
    place = sql.version_place(database, version_row=at.version_row, version_at=at.version_at)
    found, (row, replaced_at) = sql.replaced(
        database, version_row=place, version_at=ends.version_at, up_to=ends.version_row
    )
    if row >= ends.version_row:
        row, replaced_at = ends.version_row, ends.version_at
    # Those that are not in the index yet come as they are now.
    return [_document(each) for each in found if each.arrived <= at.arrived], (row, replaced_at)


def _is_at(at: Generation, ends: IndexEnds) -> bool:
    return at.is_complete and at.arrived >= ends.arrived and _has_versions(at, ends)


def _has_versions(at: Generation, ends: IndexEnds) -> bool:
    return (at.version_row, at.version_at) == (ends.version_row, ends.version_at)


def _check_database(file: IndexFile, identity: str) -> None:
    """An index of another database is of no use: its numbers name other items."""
    known = writing.state(file, _DATABASE)
    if known is not None and known != identity:
        writing.rebuild(file)
        for generation in writing.generations(file)[:-1]:
            writing.forget(file, generation)
    if known != identity:
        writing.set_state(file, _DATABASE, identity)


def _document(item: IndexSource) -> IndexedItem:
    published = item.published_at
    year = min(max(published.year, FIRST_YEAR), LAST_YEAR)
    return IndexedItem(
        arrived=item.arrived,
        feed_id=item.feed_id,
        published=int(published.timestamp()),
        title=_spaced(without_markup(item.title)),
        author=_spaced(" · ".join(item.authors)),
        content=_spaced(plain_text(item.html)),
        months=f"{scope_of_time(year)} {scope_of_time(year, published.month)}",
    )


def _spaced(text: str) -> str:
    text = spaced(text)
    # SQLite takes a text up to its first U+0000; half of a character is none at all.
    if "\0" in text:
        text = text.replace("\0", " ")
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _added(one: IndexWork, other: IndexWork) -> IndexWork:
    return IndexWork(
        added=one.added + other.added,
        replaced=one.replaced + other.replaced,
        dropped=one.dropped + other.dropped,
        rebuilt=one.rebuilt or other.rebuilt,
    )


# The search index kept current: looks at the database again and again, for as long as the reader runs.
#
# It is the work of a process of its own beside the reader, wherever that runs, for only the reader uses the
# index; a run of Dagster for each look would cost more than the look. A look at an unchanged database reads
# four rows.

LOOK_SECONDS = 5.0
REMOTE_LOOK_SECONDS = 60.0
"""Interval of looks that are requests over the network."""
LONGEST_WAIT = 60.0

_logger = logging.getLogger(__name__)


def keep_current(settings: Settings, *, clock: Clock, wait: Callable[[float], bool]) -> None:
    """Bring the index up to date until `wait`, which takes seconds, returns True; it returns at once where
    that is due.

    A store that does not work is tried again, with a line in the log when that begins.

    Raises:
        SearchUnavailable: this SQLite has no FTS5: there is nothing to keep.
    """
    check_fts5()
    every = LOOK_SECONDS if settings.database.is_here else REMOTE_LOOK_SECONDS
    failures, said = 0, ""
    while True:
        try:
            if _follow(settings, clock=clock, wait=wait, every=every):
                return
            failures, said = 0, ""
        except RssPipelineError as error:
            failures += 1
            if str(error) != said:
                said = str(error)
                _logger.warning("the search index is not current: %s", error)
        if wait(min(every * 2 ** min(failures, 10), LONGEST_WAIT) if failures else 0):
            return


def _follow(settings: Settings, *, clock: Clock, wait: Callable[[float], bool], every: float) -> bool:
    """Follow with one pair of connections; True to stop, False where the file was deleted."""
    with ExitStack() as stack:
        file = stack.enter_context(open_to_write(index_path(settings)))
        database = stack.enter_context(open_database(settings))
        while file.is_current():
            bring_up_to_date(file, database, now=clock(), is_over=lambda: wait(0))
            if wait(every):
                return True
    return False
