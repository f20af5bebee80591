"""The parser pool with workers that are really killed, stopped and without room on the disk."""

import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from rss_pipeline.collector.models.outcome import Document, Parsed, Response
from rss_pipeline.errors import InfrastructureError
from rss_pipeline.fast_zlib import decompress
from rss_pipeline.pipeline.session import parser_pool
from rss_pipeline.pipeline.session.parser_pool import ParserPool, WorkerFailure
from rss_pipeline.pipeline.session.parser_tasks import (
    ImageSearch,
    ParseTask,
    SearchOfAll,
    find_item_images,
    found_early,
    parse_document,
    read_chunks,
    search_early,
)
from rss_pipeline.pipeline.visits.extract_images import spooled_items
from rss_pipeline.pipeline.visits.parse import parse_documents
from rss_pipeline.progress import NoProgress
from rss_pipeline_tests.pipeline.session.worker_tasks import Reading, die, ends_by, take
from rss_pipeline_tests.support.feeds import make_feed
from rss_pipeline_tests.support.pipeline import NOON, rss

pytestmark = pytest.mark.slow
URL = "http://a.example/feed"


@pytest.fixture
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(processes=2, timeout=20)
    yield pool
    pool.close()


def a_task(tmp_path: Path, *ends: str) -> Path:
    path = tmp_path / f"task-{len(list(tmp_path.iterdir()))}"
    path.write_text("\n".join(ends))
    return path


def test_a_task_that_is_attempted_may_fail_in_any_way(pool: ParserPool, tmp_path: Path) -> None:
    fine = a_task(tmp_path, "exit")
    for task in (a_task(tmp_path, "SIGKILL"), tmp_path / "missing", fine):
        pool.attempt(ends_by, task)
    assert fine.read_text() == "", "it was begun"
    [(_, outcome)] = pool.map(ends_by, [fine])
    assert isinstance(outcome, int)


def test_a_server_that_was_begun_early_is_the_one_of_the_pool() -> None:
    program = """
from multiprocessing import forkserver
from rss_pipeline.pipeline.session.parser_pool import ParserPool, begin_server
begin_server()
begun = forkserver._forkserver._forkserver_pid
pool = ParserPool(processes=1, timeout=60.0)
print(list(pool.map(abs, [-1])), begun is not None and begun == forkserver._forkserver._forkserver_pid)
pool.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[(-1, 1)] True\n"


@pytest.mark.parametrize("damage", ["none", "cut", "empty", "another task", "gone"])
def test_what_was_found_early_is_taken_only_whole_and_can_be_taken_again(tmp_path: Path, damage: str) -> None:
    rows = tmp_path / "document.rows"
    rows.write_bytes(b"")
    task = ImageSearch(feed=make_feed("feed", URL, "a.example"), feed_link=None, path=rows)
    search_early(task)
    [left] = set(tmp_path.iterdir()) - {rows}
    match damage:
        case "cut":
            left.write_bytes(left.read_bytes()[:-5])
        case "empty":
            left.write_bytes(b"")
        case "another task":
            task = replace(task, ids=frozenset({"another"}))
        case "gone":
            left.unlink()
    for _ in range(2):
        assert found_early(task) == ([] if damage == "none" else None)


def test_the_items_of_a_feed_s_first_document_are_searched_where_it_is_read(
    pool: ParserPool, tmp_path: Path
) -> None:
    task = replace(a_document(tmp_path), search=SearchOfAll(most=5, is_kept=True))
    [(_, parsed)] = pool.map(parse_document, [task])
    assert isinstance(parsed, Parsed)
    [chunk] = read_chunks(parsed.path)
    ids = frozenset(chunk.ids) - frozenset(chunk.imageless)
    search = replace(spooled_items(task.feed, parsed, ids, keep=dict.fromkeys(chunk.ids)), most=5)
    found = found_early(search)
    assert found is not None
    # Compressed, equal HTML may differ.
    assert [each._replace(html=None) for each in found] == [
        each._replace(html=None) for each in find_item_images(search)
    ]
    assert all(each.html is not None and decompress(each.html.html) for each in found)


def test_a_document_with_html_that_ends_a_worker_is_read_all_the_same(tmp_path: Path) -> None:
    class Ending:
        """A pool in which the search ends each worker."""

        def map(
            self, function: Callable[[ParseTask], Parsed], tasks: Sequence[ParseTask]
        ) -> Iterator[tuple[ParseTask, Parsed | WorkerFailure]]:
            for task in tasks:
                parsed = function(task)
                yield task, parsed if task.search is None else WorkerFailure("parse_timeout", "too long")

    task = replace(a_document(tmp_path), search=SearchOfAll(most=None, is_kept=True))
    pool = cast("ParserPool", Ending())
    [(job, outcome)] = parse_documents([("job", task)], pool=pool, progress=NoProgress())
    assert job == "job"
    assert isinstance(outcome, Parsed)
    assert outcome.items_seen == 10


def test_a_worker_that_ended_once_or_twice_proves_nothing_against_its_document(
    pool: ParserPool, tmp_path: Path
) -> None:
    once, twice, fine = a_task(tmp_path, "SIGKILL"), a_task(tmp_path, "exit", "exit"), a_task(tmp_path)
    outcomes = dict(pool.map(ends_by, [once, twice, fine]))
    assert all(isinstance(outcome, int) for outcome in outcomes.values()), outcomes
    assert set(outcomes) == {once, twice, fine}
    [(_, alarmed)] = pool.map(ends_by, [a_task(tmp_path, "SIGALRM")])
    assert isinstance(alarmed, int)


def test_a_document_that_ends_its_worker_twice_alone_has_failed(pool: ParserPool, tmp_path: Path) -> None:
    deadly, fine = a_task(tmp_path, *["SIGSEGV"] * 9), a_task(tmp_path)
    outcomes = dict(pool.map(ends_by, [deadly, fine]))
    failed = outcomes[deadly]
    assert isinstance(failed, WorkerFailure)
    assert (failed.kind, "2 times alone" in failed.message) == ("crashed", True)
    assert not failed.may_pass
    # A pool that is being replaced may have begun it once more.
    assert len(deadly.read_text().split()) in (5, 6), "once or twice among others, and twice alone"
    assert isinstance(outcomes[fine], int)


@pytest.mark.parametrize(("end", "kind"), [("SIGKILL", "crashed"), ("SIGALRM", "parse_timeout")])
def test_a_document_that_the_machine_could_not_read_has_failed_for_this_time(
    tmp_path: Path, end: str, kind: str
) -> None:
    single = ParserPool(processes=1, timeout=20)
    try:
        [(_, failed)] = single.map(ends_by, [a_task(tmp_path, *[end] * 9)])
    finally:
        single.close()
    assert isinstance(failed, WorkerFailure)
    assert (failed.kind, failed.may_pass) == (kind, True)


def test_a_suspect_is_read_alone_in_a_fresh_worker(pool: ParserPool, tmp_path: Path) -> None:
    killed = a_task(tmp_path, "SIGKILL")
    outcomes = dict(pool.map(ends_by, [killed, *(a_task(tmp_path) for _ in range(4))]))
    alone = outcomes.pop(killed)
    assert alone not in outcomes.values()
    assert list(outcomes) != [], "the others came first"


def test_a_worker_that_was_stopped_beyond_its_time_proves_nothing_either(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A laptop that sleeps, or SIGSTOP: the clock goes on, and the document has used no processor time."""
    monkeypatch.setattr(parser_pool, "_PATIENCE", 0.05)
    stopped = a_task(tmp_path, "SIGSTOP")
    [(_, outcome)] = pool.map(ends_by, [stopped])
    assert isinstance(outcome, int)


def test_processor_time_is_the_document_s_own(pool: ParserPool) -> None:
    [(_, outcome)] = pool.map(sum, [range(10**13)], timeout=0.2)
    assert isinstance(outcome, WorkerFailure)
    assert outcome.kind == "parse_timeout"


def test_a_larger_document_may_take_more_time_and_memory() -> None:
    pool = ParserPool(processes=1, timeout=0.5)
    tasks = [Reading(60_000_000, seconds=0.8), Reading(60_000_000, memory=2 << 30)]
    try:
        assert dict(pool.map(take, tasks)) == dict.fromkeys(tasks, "done")
    finally:
        pool.close()


def test_threads_that_begin_tasks_at_once_start_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    def meet(_pid: int) -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait(timeout=0.5)

    monkeypatch.setattr(parser_pool, "put_sockets", meet)
    pool = ParserPool(processes=1, timeout=20)
    try:
        with ThreadPoolExecutor(2) as threads:
            first, second = [threads.submit(pool._started) for _ in range(2)]
        assert first.result() is second.result()
        assert [total for _, total in pool.map(sum, [range(3)])] == [3]
    finally:
        pool.close()


def test_a_full_disk_fails_the_run_and_no_document(tmp_path: Path) -> None:
    """The worker may write files of at most 1,000 bytes: the rows of ten items do not fit."""
    single = ParserPool(processes=1, timeout=20)
    [(_, worker)] = single.map(ends_by, [a_task(tmp_path)])
    assert isinstance(worker, int)
    try:
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (1_000, resource.RLIM_INFINITY))
        with pytest.raises(InfrastructureError, match="disk"):
            list(single.map(parse_document, [a_document(tmp_path)]))
        resource.prlimit(worker, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        [(_, outcome)] = single.map(parse_document, [a_document(tmp_path)])
        assert isinstance(outcome, Parsed)
    finally:
        single.close()


def test_workers_that_do_not_stay_alive_fail_the_run_and_no_document(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process may be started any more: the kernel refuses, as it does without memory."""
    monkeypatch.setattr(parser_pool, "_limit_memory", die)
    with pytest.raises(InfrastructureError, match="parser process"):
        list(pool.map(ends_by, [a_task(tmp_path)]))


def test_a_task_that_comes_while_the_pool_breaks_is_begun_in_the_next_one(
    pool: ParserPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All idle workers are killed: the pool fails the tasks it knows, and this one is in its queue only."""
    [(_, before)] = pool.map(ends_by, [a_task(tmp_path)])
    broken = pool._started()
    put = broken._context.task_queue.put

    def put_too_late(task: object) -> None:
        broken._pool_manager.handle_broken_pool(BrokenProcessPool("All workers expired"))
        put(task)

    monkeypatch.setattr(broken._context.task_queue, "put", put_too_late)
    [(_, after)] = pool.map(ends_by, [a_task(tmp_path)])
    assert isinstance(after, int)
    assert after != before


def a_document(tmp_path: Path) -> ParseTask:
    path = tmp_path / "body"
    path.write_bytes(rss(*map(str, range(10))))
    response = Response(status=200, requested_url=URL, url=URL, fetched_at=NOON, fetch_ms=1)
    document = Document(response=response, path=path, body_bytes=path.stat().st_size, content_hash="")
    return ParseTask(feed=make_feed("feed", URL, "a.example"), document=document, now=NOON)
