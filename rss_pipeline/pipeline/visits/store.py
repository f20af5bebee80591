"""The op store: a parsed document into the database, its items in batches, the closing statement in the last.

The statements are storage's. What is new is found here, and guids that change or are used again.
"""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice

from rss_pipeline.batched import batched
from rss_pipeline.collector.models.outcome import Ending, Parsed
from rss_pipeline.collector.models.warning import FeedWarning
from rss_pipeline.collector.schedule.after_visit import after_visit
from rss_pipeline.errors import StorageRejected, spooling
from rss_pipeline.features import FEED_KEYS
from rss_pipeline.pipeline.session.parser_tasks import read_chunks
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.visits.backup import remember
from rss_pipeline.pipeline.visits.close import Close, log_full, log_move
from rss_pipeline.pipeline.visits.identify import identify, to_identify
from rss_pipeline.pipeline.visits.in_parallel import in_parallel
from rss_pipeline.pipeline.visits.parse import rejected
from rss_pipeline.pipeline.visits.visit import Stored, Visit, Visits
from rss_pipeline.storage.database import (
    MAX_PARAMETER_BYTES,
    Database,
    Result,
    Row,
    Statement,
    WritesInTurn,
)
from rss_pipeline.storage.feeds.closing_parts import SENTENCE, mark_header
from rss_pipeline.storage.feeds.closings import StoredDocument, add_warning, closing_statement
from rss_pipeline.storage.feeds.stored_holds import feed_statements
from rss_pipeline.storage.items import items, tombstones
from rss_pipeline.storage.items.identities import add_aliases
from rss_pipeline.storage.items.items import COLUMNS, chunked_rows

logger = logging.getLogger(__name__)

_GUIDS_AT_ONCE = 500
_TOGETHER_BYTES = 500_000
"""The size of documents that are stored in one transaction: other processes wait for it some 20 ms."""


class _Storing:
    """A document on its way into the database: its statements, and what becomes of its visit after them."""

    def __init__(self, visit: Visit, parsed: Parsed, *, run: RunContext) -> None:
        self.visit = visit
        self.parsed = parsed
        """As it was read."""
        self._run = run
        self._now = now = run.clock()
        self._ending = after_visit(
            visit.feed, parsed, now=now, most_backup_bytes=run.settings.most_backup_bytes
        )
        self._limited, self._left_out = _within_day(visit, parsed, now, run=run)
        self._ids: list[str] = []
        self._imageless: set[str] = set()
        remember(visit, parsed, objects=run.objects)

    def batches(self) -> Iterator[list[Statement]]:
        """Items in batches, and in the last of them the closing statement."""
        visit, parsed, run = self.visit, self._limited, self._run
        fetched_at = parsed.document.response.fetched_at
        about_retired = _tombstones(visit, parsed, self._now, backup_days=run.settings.backup_days)
        if parsed.aliases:
            add_aliases(run.database, visit.feed.id, parsed.aliases, fetched_at=fetched_at, token=visit.token)
        groups = _groups(visit, parsed, self._ending, self._now, ids=self._ids, imageless=self._imageless)
        for batch in _batches(groups):
            if about_retired and sum(map(_length, (*batch, *about_retired))) <= MAX_PARAMETER_BYTES:
                batch[:0] = about_retired
                about_retired = []
            yield batch

    def stored(self, results: Sequence[Result]) -> Visit:
        """The visit, closed, after these results of all its statements."""
        visit, parsed, run = self.visit, self._limited, self._run
        feed, ending, now = visit.feed, self._ending, self._now
        fresh = items.new_ids(results[:-1])
        closed: Row | None = next(iter(results[-1].rows), None)  # None where the run had lost its claim.
        if closed is not None:
            log_move(feed, ending.address)
            log_full(feed, ending)
            warn_of_guids(run.database, visit, parsed, fresh=fresh, listed=self._ids)
            _warn_of_limits(visit, now, left_out=self._left_out, is_gap=bool(closed["gap"]), run=run)
        is_gap = closed is not None and bool(closed["gap"])
        stored = Stored(
            # They are stored, and the run keeps this value to its end.
            parsed=replace(parsed, aliases={}, parts={}),
            new_ids=tuple(id for id in fresh if id not in self._imageless),
            imageless_ids=tuple(id for id in fresh if id in self._imageless),
            items_new=0 if closed is None else int(closed["items_new"] or 0),
            is_gap=is_gap,
        )
        after = ending.if_gap.next if is_gap and ending.if_gap is not None else ending.next
        return replace(visit, outcome=stored, next=after, lost=closed is None)


def store_document(visit: Visit, parsed: Parsed, *, run: RunContext) -> Visit:
    """Store a document's items and close its visit.

    Raises:
        StorageRejected: the database refuses something of it; the visit is not closed.
    """
    storing = _Storing(visit, parsed, run=run)
    return storing.stored([result for batch in storing.batches() for result in run.database.batch(batch)])


def _groups(
    visit: Visit, parsed: Parsed, ending: Ending, now: datetime, *, ids: list[str], imageless: set[str]
) -> Iterator[list[Statement]]:
    """The statements of a document, made as they are sent: one of 20 MB has at most a megabyte in memory at a
    time. `ids` and `imageless` get the ids of its items, and of those without images."""
    feed, document = visit.feed, parsed.document
    assert document.backup_key is not None
    keys = [FEED_KEYS[name] for name in feed.feature_keys]
    with_items = [
        key.with_items.load()(feed, visit.token, parsed) for key in keys if key.with_items is not None
    ]
    for chunk in read_chunks(parsed.path):
        ids.extend(chunk.ids)
        imageless.update(chunk.imageless)
        inserts = items.insert_statements(
            chunk,
            feed_id=feed.id,
            token=visit.token,
            fetched_at=document.response.fetched_at,
            backup_key=document.backup_key,
        )
        groups = [of(chunk.ids) for of in with_items]
        yield [*inserts, *(each for of in groups for each in next(of, ()))]
        yield from chain(*groups)
    closing = closing_statement(
        StoredDocument(feed=feed, token=visit.token, parsed=parsed, item_ids=ids, ending=ending), now=now
    )
    marks = mark_header(feed, visit.token, parsed.header)
    holds = [] if ending.hold is None else feed_statements([ending.hold])
    closes = [key.at_close.load() for key in keys if key.at_close is not None]
    notes = [each for at_close in closes for each in at_close(feed, visit.token, parsed)]
    yield [*notes, *marks, *holds, closing]


def _warn_of_limits(visit: Visit, now: datetime, *, left_out: int, is_gap: bool, run: RunContext) -> None:
    """Warn of new items that were not stored, and of items that were probably missed."""
    feed = visit.feed
    if left_out:
        sentence = (
            f"{left_out:,} new items are not stored: the feed had {run.settings.items_per_day:,} on"
            f" {now:%Y-%m-%d}, its most of a day (RSS_ITEMS_PER_DAY). `rss-pipeline replay {feed.id}` adds"
            " them from the backup"
        )
        logger.warning("%s: %s", feed.url, sentence)
        add_warning(run.database, feed.id, FeedWarning(kind="day_full", sentence=sentence))
    if is_gap:
        logger.warning("%s: %s.", feed.url, SENTENCE)


def _within_day(visit: Visit, parsed: Parsed, now: datetime, *, run: RunContext) -> tuple[Parsed, int]:
    """The document without the new items beyond the feed's most of a day, and their number."""
    feed = visit.feed
    today = feed.day_items if feed.counted_day == now.date().isoformat() else 0
    room = max(0, run.settings.items_per_day - today)
    if parsed.items_seen <= room:
        return parsed, 0
    rows = items.known_rows(read_chunks(parsed.path))
    fresh: list[str] = []
    for some in batched(rows.items(), _GUIDS_AT_ONCE):
        pairs = [(id, row[COLUMNS.index("guid")]) for id, row in some]
        missing = items.not_stored(run.database, feed.id, pairs)
        fresh += [id for id, _ in pairs if id in missing]
    # Rows are in the order of their dates: the newest are kept.
    dropped = set(fresh[: max(0, len(fresh) - room)])
    if not dropped:
        return parsed, 0
    imageless = {id for chunk in read_chunks(parsed.path) for id in chunk.imageless}
    path = parsed.path.with_name(parsed.path.name + ".day")
    with spooling(path), path.open("wb") as file:
        for chunk in chunked_rows(row for id, row in rows.items() if id not in dropped):
            kept = replace(chunk, imageless=tuple(id for id in chunk.ids if id in imageless))
            pickle.dump(kept, file)
    return replace(parsed, path=path), len(dropped)


def _tombstones(visit: Visit, parsed: Parsed, now: datetime, *, backup_days: int) -> list[Statement]:
    """Statements about the retired items that this document lists, or does not.

    They go into a batch with room for them, for they are not worth another request: the next document will
    do. None where the list of the guids fits into no batch.
    """
    feed = visit.feed
    if parsed.cut_off:
        # What it does not list may have been cut off.
        return []
    if feed.http.last_body_at is None or feed.created_at is None:
        return []
    if now - feed.created_at < tombstones.TOMBSTONE_AGE:
        return []
    guids: list[str] = []
    size = 0
    for chunk in read_chunks(parsed.path):
        guids += chunk.guids
        size += sum(map(len, guids[-len(chunk.ids) :]))
        if size > MAX_PARAMETER_BYTES:
            return []
    return tombstones.note_listed(
        feed.id,
        visit.token,
        guids,
        now=now,
        backup_days=backup_days,
        is_first_today=feed.http.last_body_at.date() != now.date(),
    )


def _batches(groups: Iterable[list[Statement]]) -> Iterator[list[Statement]]:
    """Consecutive groups of statements together, each batch of at most about 1 MB of text."""
    batch: list[Statement] = []
    size = 0
    for group in groups:
        length = sum(map(_length, group))
        if batch and size + length > MAX_PARAMETER_BYTES:
            yield batch
            batch, size = [], 0
        batch += group
        size += length
    if batch:
        yield batch


def _length(statement: Statement) -> int:
    return sum(len(value.encode()) for value in statement.params if isinstance(value, str))


def store(
    visits: Visits, *, run: RunContext, close: Close, begin: Callable[[Visit], None] | None = None
) -> Visits:
    """Items first, then, in the last batch, validators, schedule and the release of the claim.

    `begin` is called for each visit with its document stored, and may take its time.
    """
    documents = ((visit.feed, visit.outcome) for visit in visits if isinstance(visit.outcome, Parsed))
    unsure = to_identify(run.database, documents)

    def identified(visit: Visit, parsed: Parsed) -> Parsed:
        return identify(run.database, visit.feed, parsed) if visit.feed.id in unsure else parsed

    if begin is None and isinstance(run.database, WritesInTurn) and run.database.writes_in_turn:
        return close(_store_in_turn(visits, identified, run=run))

    def one(visit: Visit, parsed: Parsed) -> Visit:
        try:
            visit = store_document(visit, identified(visit, parsed), run=run)
        except StorageRejected as error:
            return _refused(visit, parsed, error)
        if begin is not None:
            begin(visit)
        return visit

    return close(in_parallel("store", visits, Parsed, one, progress=run.progress))


def _refused(visit: Visit, parsed: Parsed, error: StorageRejected) -> Visit:
    return replace(visit, outcome=rejected(parsed.document, str(error)))


def _store_in_turn(
    visits: Visits, identified: Callable[[Visit, Parsed], Parsed], *, run: RunContext
) -> Visits:
    """Small documents in one transaction so many together: each is stored whole with its visit, or not at
    all, but a page of an index that several change is written once. Where the database refuses something,
    each is stored by itself."""
    done: dict[str, Visit] = {}
    together: list[tuple[_Storing, list[Statement]]] = []
    size = 0

    def end(visit: Visit) -> None:
        done[visit.key] = visit
        run.progress.advance("store")

    def alone(visit: Visit, parsed: Parsed) -> None:
        try:
            end(store_document(visit, parsed, run=run))
        except StorageRejected as error:
            end(_refused(visit, parsed, error))

    def write() -> None:
        nonlocal size
        some, size = [*together], 0
        together.clear()
        try:
            results = iter(run.database.batch([each for _, batch in some for each in batch]) if some else ())
        except StorageRejected:
            for storing, _ in some:
                alone(storing.visit, storing.parsed)
            return
        for storing, batch in some:
            of_this = [*islice(results, len(batch))]
            try:
                end(storing.stored(of_this))
            except StorageRejected as error:
                # A warning of it; the others of the lot are stored all the same.
                end(_refused(storing.visit, storing.parsed, error))

    chosen = [(visit, visit.outcome) for visit in visits if isinstance(visit.outcome, Parsed)]
    run.progress.begin("store", len(chosen))
    for visit, parsed in chosen:
        try:
            parsed = identified(visit, parsed)
            if parsed.path.stat().st_size > _TOGETHER_BYTES:
                end(store_document(visit, parsed, run=run))
                continue
            storing = _Storing(visit, parsed, run=run)
            batches = [*storing.batches()]
        except StorageRejected as error:
            end(_refused(visit, parsed, error))
            continue
        if len(batches) > 1:
            alone(visit, parsed)
            continue
        [batch] = batches
        length = sum(map(_length, batch))
        if size + length > _TOGETHER_BYTES:
            write()
        together.append((storing, batch))
        size += length
    write()
    return [done.get(visit.key, visit) for visit in visits]


# Warnings of guids that name no item: new ones for known items, and known ones for new items.
# Guids that items of one document share are found when it is parsed.

_UNSTABLE_FROM = 5
_UNSTABLE_SHARE = 0.8
_COMPARED = 3
"""Items of a document without news, the first ones, that are compared with those stored under their guids."""
_TELLING = ("title", "link", "pub_date")


def warn_of_guids(
    database: Database, visit: Visit, parsed: Parsed, *, fresh: Sequence[str], listed: Sequence[str]
) -> None:
    """Warn where a stored document has guids that change, or that are used again.

    `fresh` are the ids of its new items, `listed` those of all.
    """
    if visit.feed.schedule.last_success_at is None:
        return
    found = (
        _unstable(database, visit, parsed, fresh)
        if fresh
        else _used_again(database, parsed, listed[:_COMPARED])
    )
    if found is not None:
        logger.warning("%s: %s", visit.feed.url, found.sentence)
        add_warning(database, visit.feed.id, found)


def _unstable(database: Database, visit: Visit, parsed: Parsed, fresh: Sequence[str]) -> FeedWarning | None:
    """Nearly all items are new to a feed that was stored before, yet under known titles."""
    if len(fresh) < max(_UNSTABLE_FROM, _UNSTABLE_SHARE * parsed.items_seen):
        return None
    known = items.known_titles(database, visit.feed.id, fresh)
    if known < _UNSTABLE_SHARE * len(fresh):
        return None
    return FeedWarning(
        kind="unstable_guids",
        sentence=f"unstable guids: {known} of {len(fresh)} new items have titles that are known; if the"
        " server puts tokens into guids or links, set `key: link` or `key: title+date` for this feed",
    )


def _used_again(database: Database, parsed: Parsed, listed: Sequence[str]) -> FeedWarning | None:
    """An item with the guid of a stored one, but another title, link and date: it is another item."""
    rows = items.known_rows(read_chunks(parsed.path)) if listed else {}
    read = {id: dict(zip(COLUMNS, rows[id], strict=True)) for id in listed if id in rows}
    others = [
        id
        for id, stored in items.by_ids(database, list(read), columns=_TELLING).items()
        if all(stored[name] and read[id][name] and stored[name] != read[id][name] for name in _TELLING)
    ]
    if not others:
        return None
    title = str(read[others[0]]["title"])[:60]
    return FeedWarning(
        kind="reused_guids",
        sentence=f'reused guids: "{title}" has the guid of a stored item, but another title, link and date;'
        " it is not stored. If the server gives each new item the same guid, set `key: link` or"
        " `key: title+date` for this feed",
    )
