"""Articles fetched: which are due, one guarded and paced request for each, and what is kept of it.

No poll waits for it, and nothing of it fails a poll. The host's pace, its holds and its robots.txt are those
of all requests; no header and no password of a feed goes with one.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from rss_pipeline.collector.fetch.feed_round import fetch_feeds
from rss_pipeline.collector.http.address_policy import private_hosts
from rss_pipeline.collector.models.failure import UNREACHED_KINDS, UNREQUESTED_KINDS, Failure
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotBegun
from rss_pipeline.errors import ExtraMissing, StorageRejected
from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.full_text import auto, sql
from rss_pipeline.features.full_text.about import CANNOT_READ, HOST_A_DAY, NOT_YET
from rss_pipeline.features.full_text.kept_pages import open_page, page_key
from rss_pipeline.features.full_text.model import Extracted
from rss_pipeline.features.pages import AUTO
from rss_pipeline.pipeline.adding.find_feed import feed_at
from rss_pipeline.pipeline.session.parser_pool import WorkerFailure
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.fetch import checks
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.images import image_tasks
from rss_pipeline.storage.images.image_tasks import ItemImages

FEED_AT_ONCE = 100
"""New items of a feed that get an article at a time: the newest."""
ASKED_AT_ONCE = 1_000
_AT_ONCE = 100
_ATTEMPTS = 3
_AGAIN = timedelta(hours=1)
_BUSY = timedelta(minutes=5)
_SOON = timedelta(seconds=20)
"""In place of that, where a user waits."""
_MOST_BYTES = 10_000_000
_MOST_LATER = 200
_ACCEPT = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"
_INTERRUPTED = "the run that requested its page was killed, and the answer is lost"

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Articles:
    """The result of a fetch."""

    wanted: int = 0
    shown: int = 0
    none: int = 0
    waiting: int = 0
    """Put off: a hold, a host that another run has, the most of a host's day, a network failure."""
    full_hosts: dict[str, int] = field(default_factory=dict)
    """Hosts that had their most requests of the day, with their number."""
    reasons: list[tuple[str, str, str]] = field(default_factory=list)
    """Feed id, link and reason of what is not shown; the first 200."""
    decisions: dict[str, auto.Decision] = field(default_factory=dict)
    later: list[tuple[str, str, str]] = field(default_factory=list)
    """Links of one feed that wait, each with the time and the reason; the first 200."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArticleTask:
    """A page to be read in a parser process, with what its item has."""

    path: Path
    content_type: str | None
    url: str
    bytes: int
    title: str
    own_html: str

    def size(self) -> int:
        """The bytes that the task reads, by which its limits are measured."""
        return self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadArticle:
    """The article of a page, the characters of the feed's own text, and the images of the article."""

    extracted: Extracted
    own_characters: int
    images: tuple[str, ...] = ()


def read_article(task: ArticleTask) -> ReadArticle:
    """Read a spooled page; runs in a parser process."""
    from rss_pipeline.collector.images.find import find_images
    from rss_pipeline.collector.sanitize.html import READ_FOR_TEXT, text_of
    from rss_pipeline.features.full_text.extract import extract_article
    from rss_pipeline.features.full_text.walls import AboutItem

    own = text_of(task.own_html, limit=READ_FOR_TEXT)
    read = max(1, min(len(task.own_html), READ_FOR_TEXT))
    found = extract_article(
        task.path.read_bytes(), task.content_type, task.url, about=AboutItem(title=task.title, text=own)
    )
    return ReadArticle(
        extracted=found,
        own_characters=len(own) * len(task.own_html) // read,
        images=find_images(found.html, bases=[task.url]) if found.html else (),
    )


def article_task(row: Row, page: Document) -> ArticleTask:
    """The task to read the page behind an item."""
    return ArticleTask(
        path=page.path,
        content_type=page.response.content_type,
        url=page.response.url or row["link"] or "",
        bytes=page.body_bytes,
        title=row["title"] or "",
        own_html=row["own_html"] or "",
    )


def want(session: Session, *, feed_id: str | None = None) -> int:
    """Let new items of the feeds with full text have their article; return their number."""
    now, wanted, database = session.run.clock(), 0, session.run.database
    rows = sql.feeds_with_articles(database, now=now)
    if unwanted := [row["id"] for row in rows if row["full_text"] is None and row["user_id"] is None]:
        database.batch(sql.end_articles(unwanted, now=now))
    for row in rows:
        if row["id"] in unwanted or feed_id not in (None, row["id"]):
            continue
        most = _most_by_registry(row)
        # What feeds.yaml wants counts for no user.
        user_id = row["user_id"] if most < FEED_AT_ONCE else None
        wanted += sql.want_new(
            database,
            row["id"],
            after=int(row["full_text_after"]),
            most=most if user_id is None else FEED_AT_ONCE,
            user_id=user_id,
            now=now,
        )
    return wanted


def _most_by_registry(row: Row) -> int:
    """The new items of a feed that get an article because feeds.yaml says so."""
    if row["full_text"] != "auto":
        return 0 if row["full_text"] is None else FEED_AT_ONCE
    decision = auto.read_decision(row["full_text_decision"])
    return auto.COMPARED if decision is None else FEED_AT_ONCE if decision.is_truncated else 0


def fetch_articles(
    session: Session, *, feed_id: str | None = None, most: int = 2_000, is_requested: bool = False
) -> Articles:
    """Request the articles that are due, of all feeds or of one, at most so many; `is_requested`: those alone
    for which a user waits.

    Raises:
        ExtraMissing: articles cannot be read here; nothing was requested, and what was due waits for an hour.
        InfrastructureError: a store fails; what was not recorded is due again.
    """
    try:
        ARTICLES.require()
    except ExtraMissing:
        now = session.run.clock()
        due = [row["item_id"] for row in sql.due_articles(session.run.database, now=now, most=most)]
        session.run.database.batch([sql.put_off(due, now + _AGAIN, CANNOT_READ)])
        raise
    done = Articles(wanted=0 if is_requested else want(session, feed_id=feed_id))
    session.run.objects.probe()
    left = most
    while left > 0:
        look = partial(
            sql.due_articles, session.run.database, now=session.run.clock(), most=min(_AT_ONCE, left)
        )
        # What a user waits for is shown before the rest is requested.
        rows = look(feed_id=feed_id, is_requested=True) or ([] if is_requested else look(feed_id=feed_id))
        if not rows:
            break
        left -= len(rows)
        with session.leases.without_feeds() as lease:
            _Round(session, lease, done).fetch(rows)
    _decide(session, done)
    if feed_id is not None:
        later = sql.waiting_of(session.run.database, feed_id, now=session.run.clock(), most=_MOST_LATER)
        done.later = [(row["link"], row["until"], row["reason"] or NOT_YET) for row in later]
    return done


def _decide(session: Session, done: Articles) -> None:
    for row in sql.feeds_with_articles(session.run.database, now=session.run.clock()):
        if row["full_text"] != "auto" or row["full_text_decision"] is not None:
            continue
        found = sql.compared(session.run.database, row["id"], most=auto.COMPARED)
        items = [
            auto.Compared(
                own=int(each["own_characters"] or 0),
                page=None if each["page_characters"] is None else int(each["page_characters"]),
            )
            for each in found
        ]
        if (decision := auto.decide(items)) is not None:
            session.run.database.batch([sql.decide(row["id"], decision.as_text())])
            done.decisions[row["id"]] = decision


def _address(row: Row) -> str:
    return str(row["link"]).partition("#")[0]


class _Round:
    """Some due articles on their way to being recorded."""

    def __init__(self, session: Session, lease: str, done: Articles) -> None:
        self._session = session
        self._lease = lease
        self._done = done
        self._database = session.run.database
        self._now = session.run.clock()
        self._feeds: dict[str, Feed] = {}
        """The requests by URL."""
        self._rows: dict[str, list[Row]] = defaultdict(list)
        """The items with that link, by URL; one request serves all."""
        self._begun: set[str] = set()
        self._pages: list[tuple[Row, Document]] = []
        """The pages that came, each with its item and the key of its backup."""

    def fetch(self, rows: Sequence[Row]) -> None:
        """Request what may be requested now, and record or put off each."""
        self._session.politeness.read()
        asked = sql.requested_since(self._database, sql.day_before(self._now))
        for row in rows:
            self._choose(row, asked)
        if self._feeds:
            self._request()
        self._read()

    def _request(self) -> None:
        """Request the pages, each noted before and kept after: a run that is killed loses what is on its way
        at that moment alone."""
        fetch_feeds(
            [(feed, Access()) for feed in self._feeds.values()],
            policy=replace(
                self._session.policy,
                accept=_ACCEPT,
                max_body_bytes=min(_MOST_BYTES, self._session.policy.max_body_bytes),
            ),
            spool=self._session.spool.folder,
            clock=self._session.run.clock,
            pace=self._session.politeness.pace,
            holds=self._session.politeness.holds,
            other_runs=self._session.other_runs,
            beginnings=self,
            on_done=self._keep,
            check_of=checks(self._session.run),
        )
        self._session.politeness.keep_holds()

    def has_begun(self, feed_id: str) -> bool:
        """True if the request with this id is noted."""
        return feed_id in self._begun

    def begin(self, feed_id: str) -> bool:
        """Note a request before it is made: it may never be made again, whatever becomes of this run."""
        feed = next(feed for feed in self._feeds.values() if feed.id == feed_id)
        ids = [row["item_id"] for row in self._rows[feed.url]]
        self._database.batch([sql.begin(ids, host=feed.address.host, at=self._session.run.clock())])
        self._begun.add(feed_id)
        return True

    def _keep(self, feed: Feed, outcome: FetchOutcome) -> None:
        """Back up a page as it comes, or record why there is none."""
        if not isinstance(outcome, Document):
            self._end_without(feed, outcome)
            return
        for row in self._rows[feed.url]:
            self._pages.append((row, replace(outcome, backup_key=self._back_up(row, outcome))))

    def _choose(self, row: Row, asked: dict[str, int]) -> None:
        """Take an article into the round, or end it or put it off."""
        feed = feed_at(_address(row), allow_private=False)
        if isinstance(feed, Failure):
            self._none([row], "", feed.kind, feed.message, requested=False)
            return
        url, host = feed.url, feed.address.host
        if row["allow_private"]:
            # The hosts that feeds.yaml opens, whatever else a document links to.
            named = tuple(json.loads(row["private_hosts"] or "[]"))
            opened = private_hosts(row["feed_url"], allow_private=True, named=named)
            if opened.includes([host]):
                feed = replace(feed, allow_private=True, private_hosts=named)
        is_begun = row["verdict"] == sql.BEGUN
        if url not in self._feeds:
            if not is_begun and asked.get(host, 0) >= HOST_A_DAY:
                self._done.full_hosts[host] = HOST_A_DAY
                reason = f"{host} had {HOST_A_DAY} requests for articles within 24 hours, the most of a day"
                self._put_off([row], _AGAIN, reason)
                return
            if not self._session.leases.has_host(host):
                taken = self._session.leases.take_host(host)
                if taken.requested_elsewhere:
                    self._session.politeness.pace.requested_elsewhere([host])
                if not taken.is_ours:
                    self._put_off([row], _SOON, f"another run requests from {host}")
                    return
            if is_begun:
                self._resume(row, host)
                return
            asked[host] = asked.get(host, 0) + 1
            # As before a page that is collected: robots.txt, of the hosts of redirects too.
            self._feeds[url] = replace(feed, feature_keys={"page": AUTO})
        self._rows[url].append(row)

    def _end_without(self, feed: Feed, outcome: FetchOutcome) -> None:
        rows, host = self._rows[feed.url], feed.address.host
        match outcome:
            case OnHold(hold=hold, not_before=not_before):
                pause = max(hold.until, not_before or hold.until) - self._now
                self._put_off(rows, pause, f"{hold.of} is on hold ({hold.reason})", has_ended=True)
            case Failure() as failure:
                attempts = min(int(row["attempts"]) for row in rows) + 1
                is_unreached = failure.kind in UNREACHED_KINDS - UNREQUESTED_KINDS
                # A private address waits as an unknown name does: users are not to see which it is.
                may_pass = is_unreached or failure.kind in ("host_on_hold", "blocked_address")
                if (may_pass or failure.retry_after) and attempts < _ATTEMPTS:
                    pause = max(_AGAIN * 4 ** (attempts - 1), timedelta(seconds=failure.retry_after or 0))
                    kind = None if failure.kind == "host_on_hold" else failure.kind
                    self._put_off(rows, pause, failure.message, has_ended=True, kind=kind)
                else:
                    was_requested = failure.answered or failure.kind not in UNREQUESTED_KINDS
                    self._none(rows, host, failure.kind, failure.message, requested=was_requested)
            case NotBegun(not_before=not_before):
                pause = (not_before or self._now) - self._now
                self._put_off(rows, pause, "its turn did not come", has_ended=True)
            case _:
                self._none(rows, host, "no_content", "the server sent nothing", requested=True)

    def _resume(self, row: Row, host: str) -> None:
        """Go on with an item whose page another run has requested, and was killed: with its backup alone."""
        key = page_key(row["feed_id"], row["item_id"])
        page = open_page(self._session.run.objects, key, self._session.spool.folder)
        if page is None:
            self._none([row], host, sql.INTERRUPTED, _INTERRUPTED, requested=True)
        else:
            self._pages.append((row, page.document))

    def _read(self) -> None:
        """Read each page, and record what it has."""
        tasks = [article_task(row, page) for row, page in self._pages]
        of_task = {id(task): page for task, page in zip(tasks, self._pages, strict=True)}
        read = [
            (*of_task[id(task)], result)
            for task, result in self._session.parser_pool.map(read_article, tasks)
        ]
        texts: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row, _, result in read:
            if isinstance(result, ReadArticle) and result.extracted.text:
                texts[row["feed_id"], result.extracted.text].add(_address(row))
        for row, page, result in read:
            is_same = (
                isinstance(result, ReadArticle) and len(texts[row["feed_id"], result.extracted.text]) > 1
            )
            fetched = fetched_of(row, result, backup_key=page.backup_key, is_same=is_same)
            self._record(row, fetched, result.images if isinstance(result, ReadArticle) else ())
        # Thousands of pages would fill the spool before the session ends.
        for _, page in self._pages:
            page.path.unlink(missing_ok=True)

    def _back_up(self, row: Row, document: Document) -> str | None:
        key = page_key(row["feed_id"], row["item_id"])
        about = {
            "content_type": document.response.content_type,
            "url": document.response.url[:1_500],
            "fetched_at": document.response.fetched_at.isoformat(),
            **({} if row["for_all"] else {"for_all": False}),
        }
        try:
            self._session.run.objects.put(
                key,
                document.path,
                content_type="application/octet-stream",
                metadata={"rss-pipeline": json.dumps(about)},
            )
        except StorageRejected as error:
            logger.warning("%s has no backup of its page: %s", row["link"], error)
            return None
        return key

    def _record(self, row: Row, fetched: sql.Fetched, images: Sequence[str]) -> None:
        record(self._session.run, row, fetched, images)
        if fetched.html is not None:
            self._done.shown += 1
        else:
            self._note(row, fetched.reason)

    def _none(self, rows: Iterable[Row], host: str, kind: str, reason: str, *, requested: bool) -> None:
        for row in rows:
            fetched = sql.Fetched(
                item_id=row["item_id"],
                feed_id=row["feed_id"],
                host=host,
                verdict=kind,
                reason=reason,
                for_all=bool(row["for_all"]),
                was_requested=requested,
            )
            self._record(row, fetched, ())

    def _note(self, row: Row, reason: str) -> None:
        self._done.none += 1
        if len(self._done.reasons) < 200:
            self._done.reasons.append((row["feed_id"], row["link"], reason))

    def _put_off(
        self,
        rows: Sequence[Row],
        pause: timedelta,
        reason: str,
        *,
        has_ended: bool = False,
        kind: str | None = None,
    ) -> None:
        ids = [row["item_id"] for row in rows]
        least = _SOON if all(row["is_awaited"] for row in rows) else _BUSY
        until: datetime = self._now + max(pause, least)
        self._database.batch([sql.put_off(ids, until, reason, has_ended=has_ended, kind=kind)])
        self._done.waiting += len(ids)


def fetched_of(
    row: Row,
    result: ReadArticle | WorkerFailure,
    *,
    backup_key: str | None,
    requested_at: datetime | None = None,
    is_same: bool = False,
    for_all: bool | None = None,
) -> sql.Fetched:
    """The end of a request by what was read of its page."""
    found = sql.Fetched(
        item_id=row["item_id"],
        feed_id=row["feed_id"],
        host=urlsplit(row["link"] or "").hostname or "",
        verdict="unreadable",
        reason="",
        backup_key=backup_key,
        for_all=bool(row["for_all"]) if for_all is None else for_all,
        requested_at=requested_at,
    )
    if isinstance(result, WorkerFailure):
        return replace(found, reason=f"the page could not be read: {result.message}")
    article = result.extracted
    found = replace(
        found, verdict=article.verdict, reason=article.reason, own_characters=result.own_characters
    )
    if article.verdict != "article":
        return found
    if is_same:
        return replace(found, verdict="same_text", reason="pages of several items have the same text")
    found = replace(found, page_characters=len(article.text))
    if len(article.text) <= result.own_characters:
        return replace(found, verdict="no_longer", reason="the feed has as much text as the page")
    return replace(found, html=article.html)


def record(
    run: RunContext,
    row: Row,
    fetched: sql.Fetched,
    images: Sequence[str],
    *,
    was_shown: bool = False,
) -> None:
    """Write the end of a request, and tasks for the images of an article that is shown. `was_shown`: an
    article of before is replaced."""
    now = run.clock()
    try:
        run.database.batch(sql.record(fetched, was_shown=was_shown, now=now))
    except StorageRejected as error:
        refused = replace(fetched, html=None, verdict="storage_rejected", reason=str(error))
        run.database.batch(sql.record(refused, was_shown=was_shown, now=now))
        return
    if fetched.html is None or not images or not row["images"]:
        return
    found = ItemImages(
        item_id=row["item_id"], urls=tuple(images[: run.settings.images_per_item]), is_searched=False
    )
    for batch in image_tasks.record_statements([found], feeds=[], rules="", now=now):
        run.database.batch(batch)
