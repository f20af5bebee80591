"""Streams, judged by the parser processes together with their feed's document."""

import resource
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.item import item_id
from rss_pipeline.collector.models.outcome import Document, Parsed, Response
from rss_pipeline.features.streams.model import FieldSelector, StreamSpec, streams_in, streams_of
from rss_pipeline.pipeline.session.parser_pool import ParserPool
from rss_pipeline.pipeline.session.parser_tasks import ParseTask, parse_document, read_chunks
from rss_pipeline_tests.features.streams.stream_documents import keys
from rss_pipeline_tests.support.feeds import make_feed
from rss_pipeline_tests.support.pipeline import NOON

URL = "http://a.example/feed"
SLOW = "//*[count(//*[count(//*)>1])>1]"


@pytest.fixture(scope="module")
def pool() -> Iterator[ParserPool]:
    pool = ParserPool(processes=1, timeout=20)
    yield pool
    pool.close()


def task(body: bytes, folder: Path, **xpaths: str) -> ParseTask:
    path = folder / "body"
    path.write_bytes(body)
    response = Response(status=200, requested_url=URL, url=URL, fetched_at=NOON, fetch_ms=1)
    streams = tuple(StreamSpec(name=name, selector=xpath) for name, xpath in xpaths.items())
    by_field = StreamSpec(name="field", selector=FieldSelector(category=("1", "Ｘ*")))
    return ParseTask(
        feed=replace(make_feed("idol", URL, "a.example"), feature_keys=keys(by_field, *streams)),
        document=Document(response=response, path=path, body_bytes=len(body), content_hash=""),
        now=NOON,
    )


def items(count: int) -> bytes:
    each = "".join(f"<item><guid>{n}</guid><category>{n % 2}</category></item>" for n in range(count))
    return f"<rss version='2.0'><channel><title>T</title>{each}</channel></rss>".encode()


def stored(parsed: Parsed) -> list[str]:
    return [id for chunk in read_chunks(parsed.path) for id in chunk.ids]


def parse(pool: ParserPool, one: ParseTask) -> Parsed:
    [(_, parsed)] = pool.map(parse_document, [one])
    assert isinstance(parsed, Parsed), parsed
    return parsed


def test_members_are_ids_of_the_items_that_are_stored(pool: ParserPool, tmp_path: Path) -> None:
    parsed = parse(
        pool, task(items(4), tmp_path, odd="//item[category=1]", none="//item[link]", all="//guid")
    )
    ids = [item_id("idol", str(n)) for n in range(4)]
    # Rows are in the order in which items arrive: without dates, the last one first.
    assert stored(parsed) == ids[::-1]
    odd = (ids[1], ids[3])
    assert streams_in(parsed).members == {"field": odd, "odd": odd, "none": (), "all": tuple(ids)}
    assert (streams_in(parsed).errors, streams_in(parsed).values) == ({}, {})


def test_of_a_stream_without_members_the_values_are_known(pool: ParserPool, tmp_path: Path) -> None:
    one = task(items(2).replace(b">1<", b">" + b"2" * 150 + b"<"), tmp_path, none="//item[link]")
    streams = (
        *streams_of(one.feed),
        StreamSpec(name="link", selector=FieldSelector(link=("x",), title=("y",))),
        StreamSpec(name="author", selector=FieldSelector(negated=FieldSelector(author=("x",)))),
    )
    parsed = parse(pool, replace(one, feed=replace(one.feed, feature_keys=keys(*streams))))
    assert {name for name, ids in streams_in(parsed).members.items() if ids} == {"author"}
    assert streams_in(parsed).values == {"category": ("0", "2" * 100), "title": ()}


@pytest.mark.slow
def test_a_slow_selector_costs_its_stream_and_no_item(pool: ParserPool, tmp_path: Path) -> None:
    """Over 5,000 items, under the limit of two seconds of processor time."""
    one = task(items(5_000), tmp_path, odd="//item[category=1]", sound=SLOW, late="//item")
    parsed = parse(pool, one)
    assert len(stored(parsed)) == parsed.items_seen == 5_000
    assert {name: len(ids) for name, ids in streams_in(parsed).members.items()} == {
        "odd": 2_500,
        "field": 2_500,
    }
    assert streams_in(parsed).errors == {
        "sound": "The XPath of idol/sound took longer than 2 s.",
        "late": "The XPath of idol/late was not evaluated: the XPath of idol/sound took longer than 2 s.",
    }


@pytest.mark.slow
def test_the_child_has_the_worker_s_limit_of_memory(pool: ParserPool, tmp_path: Path) -> None:
    """A text of 2 MB joined a hundred times, where 60 MB are left."""
    [(_, limit)] = pool.map(_limited, [60_000_000])
    assert isinstance(limit, int)
    text = b"<description>" + b"x" * 2_000_000 + b"</description><guid>"
    greedy = f"//item[string-length(concat({','.join(['description'] * 100)})) > 1]"
    one = task(items(1).replace(b"<guid>", text), tmp_path, a="//item", greedy=greedy, c="//item")
    try:
        parsed = parse(pool, one)
    finally:
        pool.close()
    assert parsed.items_seen == 1
    assert (set(streams_in(parsed).members), set(streams_in(parsed).errors)) == (
        {"a", "c", "field"},
        {"greedy"},
    )
    assert "memory" in streams_in(parsed).errors["greedy"]


def _limited(more: int) -> int:
    """Limit this worker's address space to what it has and `more` bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return limit


def test_ids_of_members_hold_no_secret_either(pool: ParserPool, tmp_path: Path) -> None:
    one = task(
        b"<rss><channel><item><guid>u?token=s3cret</guid></item></channel></rss>", tmp_path, all="//item"
    )
    parsed = parse(pool, replace(one, secrets=Secrets(plain=frozenset(["s3cret"]))))
    assert list(streams_in(parsed).members["all"]) == stored(parsed) == [item_id("idol", "u?token=***")]


def test_a_feed_without_streams_loads_nothing_of_them_and_one_without_xpath_nothing_of_it(
    tmp_path: Path,
) -> None:
    loaded = (
        "[name for name in ('judge_document', 'model', 'expression', 'xpath')"
        " if f'rss_pipeline.features.streams.{name}' in __import__('sys').modules]"
    )
    alone = ParserPool(processes=1, timeout=20)
    one = task(items(2), tmp_path)
    try:
        assert parse(alone, replace(one, feed=replace(one.feed, feature_keys={}))).parts == {}
        [(_, unneeded)] = alone.map(eval, [loaded])
        assert streams_in(parse(alone, one)).members == {"field": (item_id("idol", "1"),)}
        [(_, needed)] = alone.map(eval, [loaded])
    finally:
        alone.close()
    assert unneeded == []
    assert needed == ["judge_document", "model"]
