"""Parsing in worker processes under limits of time and memory, so that a hostile document costs its own visit
only.

The functions that run there are here too and must stay importable without Dagster, for each worker imports
this module. What a parse means is the collector's.
"""

import contextlib
import itertools
import multiprocessing
import os
import pickle
import resource
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from pebble import ProcessExpired, ProcessPool

from rss_pipeline.collector.images.find import item_images, may_show_images
from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import Item, item_id
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.collector.parse.document import parse_feed
from rss_pipeline.errors import NotAFeed, StorageRejected
from rss_pipeline.storage.images.tasks import ItemImages
from rss_pipeline.storage.items.items import RowChunk, item_rows, rows_to_items

_MEMORY_BYTES = 1 << 30
"""Of address space. Documents of 20 MB took up to 650 MB, most of it for detecting a charset."""
_OUT_OF_MEMORY = 77
"""The exit code of a worker that had no more."""
_ROWS_BYTES = 60_000_000
"""Of one document's rows, three times what a document may have: a base of 8,000 characters stands in every
link."""
_IMAGE_URL_BYTES = 10_000_000
"""Of the images of one task, likewise; some 100,000 of them."""
_MOST_SAID = 2_000
_TASKS_A_WORKER = 2_000
_POOLS_TRIED = 3
_PATIENCE = 5
"""How many times its limit of processor time a task may take by the clock: on a busy machine a sound document
does."""
_GRACE_SECONDS = 5.0
_BAD_DATES = 20
_MOST_SHOWN = 200

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class WorkerFailure:
    """What became of a task that gave no value: a failure kind and a sentence."""

    kind: str
    message: str


class ParserPool:
    """A pool of parser processes, started at the first task."""

    def __init__(self, *, processes: int, timeout: float) -> None:
        self._processes = processes
        self._timeout = timeout
        self._pool: ProcessPool | None = None

    def map(
        self, function: Callable[[T], R], tasks: Iterable[T], *, timeout: float | None = None
    ) -> Iterator[tuple[T, R | WorkerFailure]]:
        """Run each task in a worker, each under the limit of seconds of processor time; pairs come as they
        are done."""
        limit = timeout or self._timeout
        left = list(tasks)
        for _ in range(_POOLS_TRIED):
            broken: list[T] = []
            for task, result in self._run(function, left, limit):
                if isinstance(result, BrokenProcessPool):
                    broken.append(task)
                else:
                    yield task, result
            if not broken:
                return
            # All workers were killed while none was at a task, which the pool does not survive.
            self.close()
            left = broken
        for task in left:
            yield task, WorkerFailure("crashed", "the parser processes were killed again and again")

    def _run(
        self, function: Callable[[T], R], tasks: Sequence[T], limit: float
    ) -> Iterator[tuple[T, R | WorkerFailure | BrokenProcessPool]]:
        """Two tasks a worker are under way: what they give waits in memory until it is taken."""
        futures: dict[Future[R], T] = {}
        waiting = iter(tasks)
        try:
            while True:
                for task in itertools.islice(waiting, 2 * self._processes - len(futures)):
                    try:
                        future = self._started().schedule(
                            _bounded, args=[function, limit, task], timeout=limit * _PATIENCE
                        )
                    except RuntimeError as error:
                        yield task, BrokenProcessPool(str(error))
                    else:
                        futures[future] = task
                if not futures:
                    return
                done, _ = wait(futures, return_when=FIRST_COMPLETED)
                for future in done:
                    task = futures.pop(future)
                    result: R | WorkerFailure | BrokenProcessPool = _settle(future, limit)
                    yield task, result
        finally:
            for future in futures:
                future.cancel()

    def close(self) -> None:
        """End the worker processes at once."""
        if self._pool is not None:
            self._pool.stop()  # type: ignore[no-untyped-call]
            self._pool.join()
            self._pool = None

    def _started(self) -> Any:
        if self._pool is None:
            # Not fork: the run's process has threads. The server imports the parsers once, and a worker
            # that was killed is replaced in milliseconds.
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload([__name__])
            self._pool = ProcessPool(
                max_workers=self._processes,
                max_tasks=_TASKS_A_WORKER,
                initializer=_limit_memory,
                context=context,
            )
        return self._pool


def _settle(future: "Future[R]", timeout: float) -> R | WorkerFailure | BrokenProcessPool:
    try:
        return future.result()
    except NotAFeed as error:
        return WorkerFailure(error.kind, str(error)[:_MOST_SAID])
    except StorageRejected as error:
        return WorkerFailure("storage_rejected", str(error))
    except TimeoutError:
        return _overran(timeout)
    except BrokenProcessPool as error:
        return error
    except ProcessExpired as error:
        if error.exitcode == -signal.SIGPROF:
            return _overran(timeout)
        if error.exitcode == _OUT_OF_MEMORY:
            return WorkerFailure(
                "parse_memory",
                f"parsing took more than {_MEMORY_BYTES >> 20:,} MB of memory and was stopped",
            )
        return WorkerFailure(
            "crashed", f"the parser process died of this document (exit code {error.exitcode})"
        )
    except Exception as error:  # noqa: BLE001 - foreign parsers raise what they like; one document's affair
        return WorkerFailure(
            "crashed", f"the parser failed on this document: {type(error).__name__}: {error}"[:500]
        )


def _overran(seconds: float) -> WorkerFailure:
    return WorkerFailure("parse_timeout", f"parsing took more than {seconds:g} s and was stopped")


def _bounded(function: Callable[[T], R], limit: float, task: T) -> R:
    """Run a task. The kernel ends what overruns, also where the process that would wait for it was killed."""
    signal.setitimer(signal.ITIMER_PROF, limit)
    signal.setitimer(signal.ITIMER_REAL, limit * _PATIENCE + _GRACE_SECONDS)
    try:
        return function(task)
    except MemoryError:
        # What was begun is in pieces all over this process; the next document gets a fresh one.
        os._exit(_OUT_OF_MEMORY)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def _limit_memory() -> None:
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParseTask:
    feed: Feed
    document: Document
    now: datetime


def parse_document(task: ParseTask) -> Parsed:
    """Decode, repair and parse a spooled document; its rows go into a file beside it.

    Raises:
        NotAFeed: there is no feed in it.
        StorageRejected: its items could never be stored.
    """
    document, feed = task.document, task.feed
    fetched_at = document.response.fetched_at
    parsed = parse_feed(
        document.path.read_bytes(),
        content_type=document.response.content_type,
        url=document.response.url,
        hint=feed.http.charset,
        key=feed.key,
        now=fetched_at,
    )
    path = document.path.with_name(document.path.name + ".rows")
    imageless = {item_id(feed.id, item.guid) for item in parsed.items if not may_show_images(item)}
    with path.open("wb") as file:
        for chunk in item_rows(feed.id, parsed.items, fetched_at=fetched_at):
            pickle.dump(replace(chunk, imageless=tuple(id for id in chunk.ids if id in imageless)), file)
            if file.tell() > _ROWS_BYTES:
                raise StorageRejected(
                    f"its items fill more than {_ROWS_BYTES:,} bytes; that is no feed's size"
                )
    return Parsed(
        document=document,
        path=path,
        header=replace(parsed.header, hints=replace(parsed.header.hints, max_age=document.response.max_age)),
        items_seen=len(parsed.items),
        duplicate_guids=len(parsed.duplicate_guids),
        dropped_items=parsed.dropped_items,
        bad_dates=tuple(_bad_dates(parsed.items)),
    )


def _bad_dates(items: Iterable[Item]) -> list[tuple[str, str]]:
    bad = (
        (i.pub_date_raw[:_MOST_SHOWN], (i.title or i.guid)[:_MOST_SHOWN])
        for i in items
        if i.pub_date is None and i.pub_date_raw
    )
    return list(itertools.islice(bad, _BAD_DATES))


def read_chunks(path: Path) -> Iterator[RowChunk]:
    """The rows `parse_document` left, a megabyte of them at a time."""
    with path.open("rb") as file:
        while file.peek(1):
            yield pickle.load(file)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSearch:
    """Look for images in these items: rows in a spool file (of them `ids`), or the items themselves."""

    feed: Feed
    feed_link: str | None
    path: Path | None = None
    ids: frozenset[str] = frozenset()
    items: tuple[tuple[str, Item], ...] = ()


def find_item_images(task: ImageSearch) -> list[ItemImages]:
    """The images of each item of the task, items without any included.

    Beyond 10 MB of URLs the task's items have none: a base of 8,000 characters stands in every URL.
    """
    items: Iterable[tuple[str, Item]] = task.items
    if task.path is not None:
        items = ((id, item) for id, item in rows_to_items(read_chunks(task.path)) if id in task.ids)
    found: list[ItemImages] = []
    left = _IMAGE_URL_BYTES
    for id, item in items:
        urls = []
        for url in item_images(item, feed_link=task.feed_link, feed_url=task.feed.url) if left > 0 else ():
            left -= len(url)
            if left < 0:
                break
            urls.append(url)
        found.append(ItemImages(item_id=id, urls=tuple(urls)))
    return found
