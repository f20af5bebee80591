"""Servers that never end: each attack over real connections ends in time, unread beyond its cap, by its kind.

Documents built to be costly once they are here are in pipeline/visits/faults/test_hostile.py: a worker's
limits end them.
"""

import gzip
import time
import zlib
from pathlib import Path

import pytest

from rss_pipeline.collector.fetch.image_round import fetch_images, image_policy
from rss_pipeline.collector.fetch.image_visit import ImageRequest
from rss_pipeline.collector.http.metered_stream import MAX_HEAD_BYTES
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline_tests.collector.fetch.rounds import LOOPBACK, POLICY, RSS, InstantPace, feed, fetch, now
from rss_pipeline_tests.collector.http.attacks import CHUNKED, FLOODS, OK, SLOW
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.cost import costs_less_than
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

PACKED = gzip.compress(RSS)

HOST, OTHER = "127.0.0.2", "127.0.0.3"
DEADLINE = 0.5
BUFFERED = 16_000_000
"""The bytes that two systems' buffers on loopback may hold beyond what we read."""


@pytest.mark.slow
@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
def test_whatever_is_dripped_the_deadline_ends_it(answer: Answer, server: FeedServer, tmp_path: Path) -> None:
    started = time.monotonic()
    outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path, deadline=DEADLINE)
    assert time.monotonic() - started < DEADLINE + PROMPT
    assert isinstance(outcome, Failure)
    assert outcome.kind == "timeout"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("kind", "answer"), FLOODS.values(), ids=FLOODS)
def test_whatever_floods_us_is_not_read_beyond_its_cap(
    kind: str, answer: Answer, server: FeedServer, tmp_path: Path
) -> None:
    started = time.monotonic()
    outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path, deadline=PATIENCE)
    assert time.monotonic() - started < PATIENCE, "its end is the cap's, not the deadline's"
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind, outcome
    assert outcome.message.endswith(".")
    assert server.bytes_sent < POLICY.max_wire_bytes + MAX_HEAD_BYTES + BUFFERED
    assert list(tmp_path.iterdir()) == []


BLANKS = b" " * 60_000


@pytest.mark.parametrize(
    ("framing", "kind"),
    [
        (b"1\r\nx\r\n0\r\nX-A:" + BLANKS + b"\0\r\n\r\n", None),
        (b"1;" + BLANKS + b"\n;\r\nx\r\n", "truncated"),
    ],
    ids=["trailer, of which nothing is needed", "extension of a chunk"],
)  # fmt: skip
def test_a_line_of_blanks_takes_no_longer_than_another_one(
    framing: bytes, kind: str | None, server: FeedServer, tmp_path: Path
) -> None:
    answer = Answer(raw=CHUNKED + framing)
    with costs_less_than(seconds=1.0):
        outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path, deadline=PATIENCE)
    assert (outcome.kind if isinstance(outcome, Failure) else None) == kind, outcome


@pytest.mark.parametrize(
    ("kind", "labels", "body"),
    [
        ("bad_compression", "gzip, gzip, gzip", gzip.compress(gzip.compress(PACKED))),
        ("bad_compression", "gzip, br", PACKED),
        ("bad_compression", "gzip", zlib.compress(RSS)),
        ("bad_compression", "gzip", RSS),
        ("bad_compression", "zstd", RSS),
        ("truncated", "gzip", PACKED[:-1]),
        ("truncated", "gzip", PACKED + PACKED[:12]),
        ("bad_compression", "deflate", RSS),
        ("truncated", "deflate", zlib.compress(RSS)[:-1]),
    ],
    ids=range(9),
)
def test_gzip_that_says_another_length(
    kind: str, labels: str, body: bytes, server: FeedServer, tmp_path: Path
) -> None:
    answer = Answer(body=body, headers={"Content-Encoding": labels})
    outcome = fetch(feed(server.route(HOST, "/feed", answer)), tmp_path)
    assert isinstance(outcome, Failure)
    assert outcome.kind == kind


def test_nineteen_thousand_headers_are_an_answer_still(server: FeedServer, tmp_path: Path) -> None:
    raw = OK + b"a:b\r\n" * 19_000 + b"\r\n" + RSS
    outcome = fetch(feed(server.route(HOST, "/feed", Answer(raw=raw))), tmp_path)
    assert isinstance(outcome, Document)


def test_interim_answers_before_the_final_one_are_passed_over(server: FeedServer, tmp_path: Path) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n"
    raw = early * 20 + OK + b"\r\n" + RSS
    outcome = fetch(feed(server.route(HOST, "/feed", Answer(raw=raw))), tmp_path)
    assert isinstance(outcome, Document)
    assert outcome.path.read_bytes() == RSS


@pytest.mark.parametrize(
    "location",
    ["http://" + "ü" * 20_000 + "/", "http://" + "a." * 30_000 + "/", "/" * 60_000, "../" * 15_000 + "x"],
    ids=["IDN", "labels", "slashes", "parents"],
)
def test_a_location_without_end_takes_no_time(location: str, server: FeedServer, tmp_path: Path) -> None:
    headers = {"Location": location.encode().decode("latin-1")}
    with costs_less_than(1):
        outcome = fetch(feed(server.route(HOST, "/feed", Answer(status=302, headers=headers))), tmp_path)
    assert isinstance(outcome, Failure)
    assert len(outcome.message) < 500


def test_a_304_with_a_body_spoils_no_request_after_it(server: FeedServer, tmp_path: Path) -> None:
    """RFC 9110 15.4.5 gives it none: on a kept connection its body would be the next answer."""
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    spoilt = Answer(status=304, headers={"Connection": "keep-alive"}, body=body, keep_alive=True)
    url = server.route(HOST, "/feed", spoilt, Answer(body=RSS, keep_alive=True))
    stored = feed(url, etag='"1"', validators_url=url)
    fetch(stored, tmp_path)
    outcome = fetch(stored, tmp_path)
    assert isinstance(outcome, Document)
    assert outcome.path.read_bytes() == RSS
    assert len({request.connection for request in server.requests}) == 2


@pytest.mark.parametrize(
    "other",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nGIF",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Rest: ",
        b"\n",
    ],
    ids=["whole", "begun", "a line"],
)
def test_what_follows_an_answer_on_a_kept_connection_is_no_answer(
    other: bytes, server: FeedServer, tmp_path: Path
) -> None:
    """A server that sends two answers to one request, or a part of one: the next request gets its own."""
    ours = pictures.png(2, 2)
    twice = Answer(body=ours + other, headers={"Content-Length": str(len(ours))}, keep_alive=True)
    urls = [server.route(HOST, f"/{n}.png", twice) for n in range(3)]
    outcomes = fetch_images(
        [ImageRequest(id=str(n), url=url, private=LOOPBACK) for n, url in enumerate(urls)],
        policy=image_policy(user_agent="tests", host_delay=0.0, connections_per_host=1),
        spool=tmp_path,
        keep=lambda _, image: image.body,
        clock=now,
        pace=InstantPace(),
    )
    assert [getattr(outcome, "value", outcome) for outcome in outcomes] == [ours] * 3


def test_each_answer_on_a_kept_connection_has_the_whole_cap(server: FeedServer, tmp_path: Path) -> None:
    large = pictures.png(2, 2) + bytes(9_000_000)
    urls = [server.route(HOST, f"/{n}.png", Answer(body=large, keep_alive=True)) for n in range(3)]
    outcomes = fetch_images(
        [ImageRequest(id=str(n), url=url, private=LOOPBACK) for n, url in enumerate(urls)],
        policy=image_policy(user_agent="tests", host_delay=0.0, connections_per_host=1),
        spool=tmp_path,
        keep=lambda _, image: image.size,
        clock=now,
        pace=InstantPace(),
    )
    assert [getattr(outcome, "value", outcome) for outcome in outcomes] == [len(large)] * 3
    assert len({request.connection for request in server.requests}) == 1


@pytest.mark.slow
def test_through_a_proxy_the_caps_hold_as_well(server: FeedServer, tmp_path: Path) -> None:
    flood = Answer(raw=b"", endless=b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)
    server.route(OTHER, "http://feeds.example/feed", flood)
    outcome = fetch(feed("http://feeds.example/feed"), tmp_path, proxy=server.url(OTHER, ""))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "too_large"
