"""The search index brought up to date: new items, rewritten items, items that are gone, and rebuilds.

Each step is bounded and ends in one transaction, so it may be killed at any moment; the next process goes on
behind the last step. Two rows of the database say whether there is anything to do.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.pipeline.search.plain import plain_text
from rss_pipeline.pipeline.search.words import spaced
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.search import documents as source
from rss_pipeline.storage.search import writing
from rss_pipeline.storage.search.documents import Ends, Source
from rss_pipeline.storage.search.index_file import IndexFile
from rss_pipeline.storage.search.writing import Document, Generation, scope_of_time

TRANSACTION_BYTES = 24_000_000
"""Of text. A process that is killed loses no more than this; smaller ones leave FTS5 more to merge."""
COMPARED_EVERY = timedelta(days=1)
"""Items that retention or `forget` removed are never shown; at this interval they also leave the index."""
FIRST_YEAR, LAST_YEAR = 1990, 2050
_COMPARED_AT_ONCE = 10_000

_COMPARED, _DATABASE = "compared_at", "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
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
) -> Done:
    """Write into the index what has changed in the database since the last time; `is_over` ends it early, and
    the next call goes on.

    Raises:
        DatabaseUnavailable: the database or the file does not work now; what was done until then stays.
        SearchUnavailable: the file was damaged meanwhile.
    """
    _check_database(file, database)
    done = Done()
    ends = source.ends(database)
    for generation in writing.generations(file):
        done = _added(done, _catch_up(file, database, generation, ends, is_over, progress or NoProgress()))
    if is_over() or not _is_caught_up(file, ends):
        return done
    compared = writing.state(file, _COMPARED)
    if compared is None or now - datetime.fromisoformat(compared) >= COMPARED_EVERY:
        dropped = compare(file, database)
        writing.set_state(file, _COMPARED, instant(now))
        done = _added(done, Done(dropped=dropped))
    serving = writing.generations(file)
    if len(serving) == 1 and writing.needs_rebuild(serving[0], documents=writing.count(file, serving[0])):
        writing.rebuild(file)
    return done


def is_behind(file: IndexFile, database: Database) -> bool:
    """True if there is something to do now."""
    ends = source.ends(database)
    generations = writing.generations(file)
    return len(generations) > 1 or not _is_caught_up(file, ends)


def compare(file: IndexFile, database: Database) -> int:
    """Drop what the database has no more, found by the numbers of items of each feed; return how many."""
    dropped = 0
    for generation in writing.generations(file):
        stored = source.counts_by_feed(database, up_to=generation.arrived)
        indexed = writing.counts_by_feed(file, generation)
        more = [id for id, count in indexed.items() if count > stored.get(id, 0)]
        last = -1
        while more and (
            numbers := writing.numbers_of_feeds(file, generation, more, behind=last, limit=_COMPARED_AT_ONCE)
        ):
            gone = source.gone(database, numbers)
            if gone:
                writing.drop(file, generation, gone)
            dropped += len(gone)
            last = numbers[-1]
        indexed = writing.counts_by_feed(file, generation) if more else indexed
        if any(indexed.get(id, 0) < count for id, count in stored.items()):
            # It cannot be, unless somebody wrote numbers by hand; but an item that is not found is lost.
            writing.mark_worn(file, generation)
    return dropped


def _catch_up(
    file: IndexFile,
    database: Database,
    generation: Generation,
    ends: Ends,
    is_over: Callable[[], bool],
    progress: Progress,
) -> Done:
    if generation.arrived == 0 and generation.version_row == 0:
        writing.start(file, generation, version_row=ends.version_row, version_at=ends.version_at)
    replaced = _replace(file, database, generation.number, ends, is_over)
    added = 0
    while (at := _again(file, generation.number)) is not None and at.arrived < ends.arrived and not is_over():
        added += _add(file, database, at, ends, is_over, progress)
    at = _again(file, generation.number)
    is_new = at is not None and not at.is_complete and at.arrived >= ends.arrived
    if at is not None and is_new:
        writing.complete(file, at)
    return Done(added=added, replaced=replaced, rebuilt=is_new)


def _add(
    file: IndexFile,
    database: Database,
    generation: Generation,
    ends: Ends,
    is_over: Callable[[], bool],
    progress: Progress,
) -> int:
    """The items behind a generation, until there are no more or another process adds some.

    While one transaction is written, another thread makes the documents of the next one: SQLite works without
    Python's lock, so two cores are used. The documents of two transactions are in memory.
    """
    added = 0
    with ThreadPoolExecutor(1) as maker:
        made = maker.submit(_next_documents, database, generation.arrived, ends, is_over)
        while True:
            ready, arrived = made.result()
            is_last = arrived >= ends.arrived or is_over()
            if not is_last:
                made = maker.submit(_next_documents, database, arrived, ends, is_over)
            if not writing.add(file, generation, ready, arrived=arrived):
                return added
            progress.advance("items", len(ready))
            added += len(ready)
            if is_last:
                return added
            generation = replace(generation, arrived=arrived)


def _next_documents(
    database: Database, arrived: int, ends: Ends, is_over: Callable[[], bool]
) -> tuple[list[Document], int]:
    """The documents of one transaction, and the arrival number up to which they are."""
    ready: list[Document] = []
    size = 0
    while size < TRANSACTION_BYTES:
        found = source.behind(database, arrived, up_to=ends.arrived)
        if not found:
            return ready, ends.arrived
        ready += map(_document, found)
        size += sum(len(each.html) for each in found)
        arrived = found[-1].arrived
        if is_over():
            break
    return ready, arrived


def _replace(
    file: IndexFile, database: Database, number: int, ends: Ends, is_over: Callable[[], bool]
) -> int:
    replaced = 0
    at = _again(file, number)
    if at is None or (at.version_row, at.version_at) == (ends.version_row, ends.version_at):
        return 0
    place = source.version_place(database, version_row=at.version_row, version_at=at.version_at)
    while place < ends.version_row and not is_over():
        found, (place, version_at) = source.replaced(
            database, version_row=place, version_at=ends.version_at, up_to=ends.version_row
        )
        # Those that are not in the index yet come as they are now.
        old = [each for each in found if each.arrived <= at.arrived]
        if not writing.replace(file, at, map(_document, old), version=(place, version_at)):
            return replaced
        replaced += len(old)
        again = _again(file, number)
        if again is None:
            return replaced
        at = again
    if place >= ends.version_row:
        writing.replace(file, at, [], version=(ends.version_row, ends.version_at))
    return replaced


def _again(file: IndexFile, number: int) -> Generation | None:
    return next((each for each in writing.generations(file) if each.number == number), None)


def _is_caught_up(file: IndexFile, ends: Ends) -> bool:
    return all(
        each.is_complete
        and each.arrived >= ends.arrived
        and (each.version_row, each.version_at) == (ends.version_row, ends.version_at)
        for each in writing.generations(file)
    )


def _check_database(file: IndexFile, database: Database) -> None:
    """An index of another database is of no use: its numbers name other items."""
    identity = source.identity(database)
    known = writing.state(file, _DATABASE)
    if known is not None and known != identity:
        writing.rebuild(file)
        for generation in writing.generations(file)[:-1]:
            writing.forget(file, generation)
    if known != identity:
        writing.set_state(file, _DATABASE, identity)


def _document(item: Source) -> Document:
    published = item.published_at
    year = min(max(published.year, FIRST_YEAR), LAST_YEAR)
    return Document(
        arrived=item.arrived,
        feed_id=item.feed_id,
        published=int(published.timestamp()),
        title=_spaced(item.title),
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


def _added(one: Done, other: Done) -> Done:
    return Done(
        added=one.added + other.added,
        replaced=one.replaced + other.replaced,
        dropped=one.dropped + other.dropped,
        rebuilt=one.rebuilt or other.rebuilt,
    )
