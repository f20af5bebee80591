"""Pages in the object store read again, without a request: for better texts, and after a restore."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rss_pipeline.batched import batched
from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.feature import ReadAgain
from rss_pipeline.features.full_text import sql
from rss_pipeline.features.full_text.kept_pages import PAGES, KeptPage, open_page
from rss_pipeline.features.full_text.service import (
    ArticleTask,
    ReadArticle,
    article_task,
    fetched_of,
    read_article,
    record,
)
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.run_context import RunContext, Spool
from rss_pipeline.storage.database import Row

_AT_ONCE = 50
"""Pages in the spool at a time."""
_THREADS = 8


def read_pages_again(
    run: RunContext,
    *,
    pool: ParserPool,
    spool: Spool,
    feed_ids: Collection[str],
    dry_run: bool = False,
    is_restore: bool = False,
) -> ReadAgain:
    """Read the pages of these feeds' items, and show what they have now.

    After a restore no item that is back counts as new: its page was requested, or was not to be.

    Raises:
        ExtraMissing: articles cannot be read here; nothing was read.
    """
    done = ReadAgain()
    if is_restore:
        run.database.batch([sql.begin_anew()])
    is_checked = False
    for feed_id in feed_ids:
        reading = _OfFeed(run, pool, spool.folder, done, dry_run=dry_run)
        for infos in batched(run.objects.list(f"{PAGES}{feed_id}/"), _AT_ONCE):
            if not is_checked:
                ARTICLES.require()
                is_checked = True
            reading.read({info.key: _item_of(info.key) for info in infos})
    return done


def _item_of(key: str) -> str:
    return key.rpartition("/")[2].removesuffix(".html")


@dataclass(frozen=True, slots=True)
class _Page:
    """A page in the spool, with the row of its item."""

    key: str
    row: Row
    task: ArticleTask
    fetched_at: datetime
    for_all: bool


class _OfFeed:
    """The pages of one feed on their way to being recorded."""

    def __init__(
        self, run: RunContext, pool: ParserPool, folder: Path, done: ReadAgain, *, dry_run: bool
    ) -> None:
        self._run = run
        self._pool = pool
        self._folder = folder
        self._done = done
        self._dry_run = dry_run
        self._links: dict[str, tuple[str, _Page]] = {}
        """By the text of an article, the link of its first item, and its page."""

    def read(self, item_of: Mapping[str, str]) -> None:
        """Read the pages of these keys, whose items are by key."""
        [found] = self._run.database.batch([sql.items_of_pages(list(item_of.values()))])
        rows = {row["item_id"]: row for row in found.rows}
        pages = {id(page.task): page for page in self._open(item_of, rows)}
        for task, result in self._pool.map(read_article, [page.task for page in pages.values()]):
            page = pages[id(task)]
            task.path.unlink(missing_ok=True)
            self._done.read += 1
            if isinstance(result, ReadArticle):
                self._take(page, result)
            else:
                self._done.unread.append((page.key, result.message))

    def _open(self, item_of: Mapping[str, str], rows: Mapping[str, Row]) -> Iterator[_Page]:
        keys = [key for key, item_id in item_of.items() if item_id in rows]

        def opened(key: str) -> KeptPage | None:
            return open_page(self._run.objects, key, self._folder)

        with ThreadPoolExecutor(_THREADS, "pages") as threads:
            for key, page in zip(keys, threads.map(opened, keys), strict=True):
                if page is not None:
                    row = rows[item_of[key]]
                    for_all = page.for_all if row["for_all"] is None else bool(row["for_all"])
                    document = page.document
                    task = article_task(row, document)
                    yield _Page(key, row, task, document.response.fetched_at, for_all)

    def _take(self, page: _Page, result: ReadArticle) -> None:
        text, link = result.extracted.text, (page.row["link"] or "").partition("#")[0]
        first_link, first = self._links.setdefault(text, (link, page)) if text else (link, page)
        if first_link != link:
            self._record(first, result, is_same=True)
        self._record(page, result, is_same=first_link != link)

    def _record(self, page: _Page, result: ReadArticle, *, is_same: bool) -> None:
        row = page.row
        now = fetched_of(
            row,
            result,
            backup_key=page.key,
            requested_at=None if row["status"] is not None else page.fetched_at,
            is_same=is_same,
            for_all=page.for_all,
        )
        is_known = row["status"] is not None
        if is_known and (now.verdict, now.html) == (row["verdict"], row["html"]):
            return
        self._done.changed += 1
        self._done.shown += now.html is not None
        if self._dry_run:
            return
        record(self._run, row, now, result.images, was_shown=row["html"] is not None)
