"""The steps of a visit: fetch, backup, parse, store, extract images. Each takes visits and returns them.

No Dagster: the ops call these, and so does whoever takes a feed through all steps alone. Which feeds are
visited is decided in claiming.py.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from typing import TypeVar

from rss_pipeline.collector.fetch import FetchOutcome, fetch_feeds
from rss_pipeline.collector.models import (
    Document,
    Failure,
    Feed,
    FeedHold,
    GivenBack,
    OnHold,
    Pending,
)
from rss_pipeline.collector.schedule import next_after_hold
from rss_pipeline.collector.secrets import scrubbed
from rss_pipeline.errors import StorageRejected
from rss_pipeline.orchestration.closing import close, failure_kind
from rss_pipeline.orchestration.image_finding import find_and_record
from rss_pipeline.orchestration.outages import set_our_outage_apart
from rss_pipeline.orchestration.replay_storing import open_backups, slices, store_replayed, told_of_its_items
from rss_pipeline.orchestration.storing import store_document
from rss_pipeline.orchestration.visiting import Visiting
from rss_pipeline.orchestration.visits import Outcome, Parsed, Visit
from rss_pipeline.orchestration.workers import ParseTask, Trouble, parse_document
from rss_pipeline.storage import leases
from rss_pipeline.storage.backups import newest_same_backup, put_backup

logger = logging.getLogger("rss_pipeline")

STORE_THREADS = 16
LARGE_BYTES = 1_000_000
"""Documents above it are backed up and stored one after the other: as a string one takes up to four times its
length, and copies of it."""

Visits = list[Visit]
Ended = TypeVar("Ended")


def fetch(visiting: Visiting, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """Ask each claimed feed; close what ends here (not modified, failed), give back what did not begin.

    Raises:
        NetworkUnavailable: our own network is down; no feed's count rose, all are due in five minutes. Where
            it went down during the round, what failed is `CutOff` instead.
    """
    visits = ask(visiting, visits, round_seconds=round_seconds)
    visits = set_our_outage_apart(visiting, visits)
    for token in {visit.token for visit in visits}:
        back = [v.feed.id for v in visits if v.token == token and isinstance(v.outcome, GivenBack)]
        if back:
            leases.give_back(visiting.database, token, back)
    visits = _put_off(visiting, visits)
    if not any(isinstance(visit.outcome, Document) for visit in visits):
        return close(visiting, visits)
    # Others may ask these hosts while we parse and store; where nothing came, the lease ends at once.
    return close(visiting, visits, release=sorted({visit.token for visit in visits if visit.token}))


def ask(visiting: Visiting, visits: Visits, *, round_seconds: float | None = None) -> Visits:
    """Ask each feed that is pending. Nothing is closed yet: a network failure may turn out to be ours."""
    pending = [visit for visit in visits if isinstance(visit.outcome, Pending)]
    visiting.progress.begin("fetch", len(pending))
    if not pending:
        return visits
    policy = replace(visiting.policy, round_seconds=round_seconds)

    def done(_feed: Feed, _outcome: FetchOutcome) -> None:
        visiting.keep_holds()
        visiting.progress.advance("fetch")

    outcomes = fetch_feeds(
        [(visit.feed, visit.access) for visit in pending],
        policy=policy,
        spool=visiting.spool,
        clock=visiting.clock,
        pace=visiting.pace,
        holds=visiting.holds,
        lookout=visiting,
        on_done=done,
    )
    fetched = {
        visit.feed.id: replace(visit, outcome=outcome)
        for visit, outcome in zip(pending, outcomes, strict=True)
    }
    return [fetched.get(visit.feed.id, visit) for visit in visits]


def _put_off(visiting: Visiting, visits: Visits) -> Visits:
    """Feeds that lead to a host which asked for a pause come when that is over."""
    now = visiting.clock()
    done: dict[str, Visit] = {}
    rows = []
    for visit in visits:
        if isinstance(visit.outcome, OnHold) and visit.next is None:
            hold = visit.outcome.hold
            later = next_after_hold(visit.feed, hold, now=now)
            led = None
            if hold.host != visit.feed.host:
                led = FeedHold(feed_id=visit.feed.id, host=hold.host, until=hold.until, reason=hold.reason)
            rows.append(leases.PutOff(feed_id=visit.feed.id, token=visit.token, hold=led, next=later))
            done[visit.feed.id] = replace(visit, next=later)
    leases.put_off(visiting.database, rows)
    return [done.get(visit.feed.id, visit) for visit in visits]


def backup(visiting: Visiting, visits: Visits) -> Visits:
    """Put each new document into the object store as it was served, before anything reads it."""

    def one(visit: Visit, document: Document) -> Visit:
        feed = visit.feed
        try:
            if feed.was_interrupted:
                known = newest_same_backup(visiting.objects, feed.id, document.content_hash)
                if known is not None:
                    # The visit that took it never closed: its items, if any, carry that fetch time.
                    response = replace(document.response, fetched_at=known.fetched_at)
                    return replace(visit, outcome=replace(document, response=response, backup_key=known.key))
            key = put_backup(visiting.objects, feed, document)
        except StorageRejected as error:
            # Its bytes are not at fault, so they may come again: with other headers they can be kept.
            rejected = replace(_rejected(document, str(error)), document_hash=None)
            return replace(visit, outcome=rejected)
        return replace(visit, outcome=replace(document, backup_key=key))

    return close(visiting, _side_by_side(visiting, "backup", visits, Document, one))


def parse(visiting: Visiting, visits: Visits) -> Visits:
    """Read each backed-up document in a worker process, under the time limit."""
    done: dict[str, Visit] = {}
    for some in slices(visits):
        done |= {visit.key: visit for visit in _parse(visiting, open_backups(visiting, some))}
    return close(visiting, [done.get(visit.key, visit) for visit in visits])


def _parse(visiting: Visiting, visits: Visits) -> Visits:
    now = visiting.clock()
    tasks = {
        visit.key: ParseTask(feed=visit.feed, document=visit.outcome, now=now)
        for visit in visits
        if isinstance(visit.outcome, Document)
    }
    keys = {id(task): key for key, task in tasks.items()}
    accesses = {visit.key: visit.access for visit in visits}
    replayed = {visit.key for visit in visits if visit.replay is not None}
    visiting.progress.begin("parse", len(tasks))
    outcomes: dict[str, Parsed | Failure] = {}
    for task, result in visiting.workers.map(parse_document, tasks.values()):
        key = keys[id(task)]
        if isinstance(result, Trouble):
            # The title of an error page may repeat what its server was sent.
            told = Trouble(result.kind, scrubbed(result.message, accesses[key]))
            outcomes[key] = _unreadable(task.document, told)
        else:
            outcomes[key] = result
            if key not in replayed:  # When the document came, all this was said.
                _log_reading(task.feed, result)
        if key in replayed:
            task.document.path.unlink(missing_ok=True)
        visiting.progress.advance("parse")
    return [replace(visit, outcome=outcomes.get(visit.key, visit.outcome)) for visit in visits]


def store(visiting: Visiting, visits: Visits) -> Visits:
    """Items first, then, in the last batch, validators, schedule and the release of the claim.

    Of a replay the items only, or what they would be.
    """

    def one(visit: Visit, parsed: Parsed) -> Visit:
        try:
            if visit.replay is not None:
                return store_replayed(visiting, visit, visit.replay, parsed)
            return store_document(visiting, visit, parsed)
        except StorageRejected as error:
            return replace(visit, outcome=_rejected(parsed.document, str(error)))

    def unread(visit: Visit, failure: Failure) -> Visit:
        return visit if visit.replay is None else told_of_its_items(visiting, visit, visit.replay, failure)

    visits = close(visiting, _side_by_side(visiting, "store", visits, Parsed, one))
    if any(visit.replay is not None for visit in visits):
        return _side_by_side(visiting, "store", visits, Failure, unread)
    return visits


def extract_images(visiting: Visiting, visits: Visits) -> Visits:
    """Write an image task for each image of the items that nobody looked at yet, from this run or another."""
    find_and_record(visiting, visits)
    return visits


STEPS = (fetch, backup, parse, store, extract_images)


def run_through(visiting: Visiting, visits: Visits) -> Visits:
    """All steps, one after the other: for visits that do not go the way of the batch."""
    for step in STEPS:
        visits = step(visiting, visits)
    visiting.end_leases({visit.token for visit in visits})
    return visits


def _side_by_side(
    visiting: Visiting, name: str, visits: Visits, kind: type[Ended], one: Callable[[Visit, Ended], Visit]
) -> Visits:
    """Apply `one` to the visits with such an outcome, in threads: stores answer side by side.

    Visits of one feed, as a replay has them, go one after the other in their order, and so do those of all
    feeds with a large document. The first infrastructure failure ends it; what has not begun by then is not
    begun.
    """
    large = {visit.feed.id for visit in visits if _size(visit.outcome) > LARGE_BYTES}
    chosen: dict[str, list[tuple[Visit, Ended]]] = {}
    for visit in visits:
        if isinstance(visit.outcome, kind):
            lane = "" if visit.feed.id in large else visit.feed.id
            chosen.setdefault(lane, []).append((visit, visit.outcome))
    visiting.progress.begin(name, sum(map(len, chosen.values())))
    done: dict[str, Visit] = {}
    over = threading.Event()

    def in_turn(feed: list[tuple[Visit, Ended]]) -> Visits:
        return [one(visit, outcome) for visit, outcome in feed if not over.is_set()]

    with ThreadPoolExecutor(STORE_THREADS) as threads:
        futures = [threads.submit(in_turn, feed) for feed in chosen.values()]
        try:
            for future in as_completed(futures):
                for visit in future.result():
                    done[visit.key] = visit
                    visiting.progress.advance(name)
        except BaseException:
            over.set()
            threads.shutdown(wait=True, cancel_futures=True)
            raise
    return [done.get(visit.key, visit) for visit in visits]


def _size(outcome: Outcome) -> int:
    match outcome:
        case Document(body_bytes=size):
            return size
        case Parsed(path=path):
            return path.stat().st_size
        case _:
            return 0


def _unreadable(document: Document, trouble: Trouble) -> Failure:
    response = document.response
    return Failure(
        kind=failure_kind(trouble.kind),
        message=trouble.message,
        status=response.status,
        fetched_at=response.fetched_at,
        fetch_ms=response.fetch_ms,
        answered=True,
        document_hash=document.content_hash,
        body_bytes=document.body_bytes,
        backup_key=document.backup_key,
    )


def _rejected(document: Document, message: str) -> Failure:
    return _unreadable(document, Trouble("storage_rejected", message))


def _log_reading(feed: Feed, parsed: Parsed) -> None:
    for raw, title in parsed.bad_dates:
        logger.warning(
            "unreadable date %r of item %r in %s: the fetch time stands in for it", raw, title, feed.url
        )
    if parsed.duplicate_guids:
        logger.warning(
            "%s lists %d guids twice; the first item of each was kept", feed.url, parsed.duplicate_guids
        )
    if parsed.dropped_items:
        logger.warning("%s: %d items beyond the cap were left out", feed.url, parsed.dropped_items)
    if parsed.charset_rule == "fallback":
        logger.warning("%s: no charset fits; read as %s with replacements", feed.url, parsed.charset)
