"""The wire: bodies cut, packed, too large or too slow; hosts that do not answer."""

import gc
import gzip
import socket
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import httpcore
import pytest

from rss_pipeline.collector.http.body import Inflate
from rss_pipeline.collector.http.client import FetchPolicy
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.network_errors import request_error
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline.errors import InfrastructureError
from rss_pipeline_tests.collector.fetch.rounds import RSS, InstantPace, feed, fetch
from rss_pipeline_tests.collector.http.exchange import HOST, ask, failure, served_once
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT

PACKED = gzip.compress(RSS * 50, mtime=0)
GZIP = {"Content-Encoding": "gzip"}
DEFLATE = {"Content-Encoding": "deflate"}
CAPS: dict[str, Any] = {"max_wire_bytes": 1_000, "max_body_bytes": 1_000}
RAW = zlib.compress(RSS * 500, wbits=-zlib.MAX_WBITS)
"""Deflate without its head (RFC 1951), as many servers send it."""


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(RSS) * 500, RSS * 500)


class TestBodies:
    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=RSS * 500, chunked=True),
            Answer(body=RSS * 500, gzip=True),
            Answer(body=RSS * 500, gzip=True, chunked=True, drip=(7, 0)),
            Answer(body=gzip.compress(RSS * 250) + gzip.compress(RSS * 250), headers=GZIP),
            Answer(body=gzip.compress(RSS * 500) + b"\0" * 512, headers={"Content-Encoding": "X-GZip"}),
            Answer(body=gzip.compress(RSS * 500), headers={"Content-Encoding": "identity, gzip"}),
            Answer(body=gzip.compress(RSS * 500) + b"\n \n\n", headers=GZIP),
            Answer(body=gzip.compress(RSS * 500) + b"<!-- served by cache 3 -->", headers=GZIP),
            Answer(body=gzip.compress(RSS * 500) + b"\x1f\x8bnonsense", headers=GZIP),
            Answer(body=gzip.compress(RSS * 250) + b"\0" * 9 + gzip.compress(RSS * 250), headers=GZIP),
            Answer(body=zlib.compress(RSS * 500), headers=DEFLATE),
            Answer(body=zlib.compress(RSS * 500) + b"\n", headers=DEFLATE),
            Answer(body=RAW, headers=DEFLATE),
            Answer(body=RAW + bytes(7), headers=DEFLATE, drip=(1, 0)),
            Answer(body=gzip.compress(RSS * 500), headers=DEFLATE),
            Answer(body=RSS * 500, headers={"Content-Encoding": "utf-8"}),
            Answer(body=RSS * 500, headers={"Content-Encoding": "text/xml; charset=iso-8859-1"}),
            Answer(body=RSS * 500, headers={"Content-Encoding": "binary, ISO-8859-1"}),
            Answer(body=gzip.compress(RSS * 500), headers={"Content-Encoding": '"gzip";q=1.0, null'}),
            Answer(body=zlib.compress(RSS * 500), headers={"Content-Encoding": "x-deflate"}),
            Answer(body=gzip.compress(RSS * 500), headers={"Content-Type": "application/gzip"}),
            Answer(raw=CHUNKED + b"0\r\nno trailer\r\nX Y: \0\r\n\r\n"),
            Answer(raw=b"HTTP/1.0 200 OK\r\n\r\n" + RSS * 500),
        ],
    )
    def test_however_a_body_comes_its_bytes_are_the_publishers(
        self, answer: Answer, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome = ask(server, answer, tmp_path)
        assert isinstance(outcome, Document)
        assert outcome.path.read_bytes() == RSS * 500

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=RSS, cut_after=20),
            Answer(body=RSS, cut_after=0),
            Answer(body=RSS, chunked=True, cut_after=20),
            Answer(body=RSS, chunked=True, cut_after=len(RSS) + 6),
            Answer(body=RSS, gzip=True, cut_after=20),
            Answer(body=PACKED[:-1], headers=GZIP),
            Answer(body=PACKED[:-9], headers=GZIP),
            Answer(body=PACKED[:5], headers=GZIP),
            Answer(body=PACKED + PACKED[:-4], headers=GZIP),
            Answer(body=PACKED + PACKED[:2], headers=GZIP),
            Answer(body=PACKED + bytes(512) + PACKED[:1], headers=GZIP),
            Answer(body=PACKED + b"\n", headers=GZIP, cut_after=len(PACKED)),
            Answer(body=zlib.compress(RSS * 50)[:-1], headers=DEFLATE),
            Answer(body=RAW[:-1], headers=DEFLATE),
            Answer(body=RAW[:1], headers=DEFLATE),
        ],
    )
    def test_a_body_cut_short_is_a_failure_and_no_short_feed(
        self, answer: Answer, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome = failure(ask(server, answer, tmp_path), "truncated", tmp_path)
        assert (outcome.status, outcome.answered) == (200, True)

    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=RSS, headers=GZIP),
            Answer(body=PACKED[:-8] + b"\0" * 8, headers=GZIP),
            Answer(body=PACKED + b"\x1f\x8b\x08nonsense", headers=GZIP),
            Answer(body=RSS, headers=DEFLATE),
            Answer(body=RAW[:20] + bytes(99), headers=DEFLATE),
            Answer(body=gzip.compress(b"") * 1001, headers=GZIP),
            Answer(body=gzip.compress(PACKED), headers={"Content-Encoding": "gzip, gzip"}),
            Answer(body=PACKED, headers=(("Content-Encoding", "gzip"), ("Content-Encoding", "gzip"))),
            Answer(body=b"\x8b\x03\x80", headers={"Content-Encoding": "br"}),
        ],
    )
    def test_packing_that_is_damaged_or_was_not_requested(
        self, answer: Answer, server: FeedServer, tmp_path: Path
    ) -> None:
        failure(ask(server, answer, tmp_path), "bad_compression", tmp_path)

    def test_a_bomb_packed_three_times_is_not_unpacked(self, server: FeedServer, tmp_path: Path) -> None:
        bomb = b"\0" * 30_000_000
        for _ in range(3):
            bomb = gzip.compress(bomb)
        assert len(bomb) < 1000
        answer = Answer(body=bomb, headers={"Content-Encoding": "gzip, gzip, gzip"})
        failure(ask(server, answer, tmp_path), "bad_compression", tmp_path)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "answer",
        [
            Answer(body=b"\0" * 30_000_000, gzip=True),
            Answer(body=gzip.compress(b"\0" * 30_000_000)),
            Answer(body=zlib.compress(b"\0" * 30_000_000), headers=DEFLATE),
            Answer(body=zlib.compress(b"\0" * 30_000_000, wbits=-15), headers=DEFLATE),
        ],
        ids=["gzip", "gzip that is not declared", "deflate", "raw deflate"],
    )
    def test_a_bomb_stops_at_the_cap(self, answer: Answer, server: FeedServer, tmp_path: Path) -> None:
        outcome = failure(ask(server, answer, tmp_path), "too_large", tmp_path)
        assert "20,000,000" in outcome.message

    @pytest.mark.slow
    @pytest.mark.parametrize("chunked", [True, False])
    def test_more_than_the_cap_is_not_read(self, chunked: bool, server: FeedServer, tmp_path: Path) -> None:
        answer = Answer(body=b"x" * 15_000_000, chunked=chunked)
        outcome = failure(ask(server, answer, tmp_path), "too_large", tmp_path)
        assert "10,000,000" in outcome.message
        assert outcome.answered

    @pytest.mark.parametrize(
        ("answer", "size"),
        [
            (Answer(body=b"x" * 3_500), "has 3,500 bytes"),
            (Answer(body=b"x" * 3_500, chunked=True), "has more than 1,000 bytes"),
            (Answer(body=b"x" * 3_500, gzip=True), "decompresses to 3,500 bytes"),
            (Answer(body=zlib.compress(b"x" * 3_500), headers=DEFLATE), "decompresses to 3,500 bytes"),
            (Answer(body=b"x" * 500_000, gzip=True), "decompresses to more than 4,000 bytes"),
        ],
    )
    def test_the_message_has_both_numbers_and_says_how_to_read_such_a_feed(
        self, answer: Answer, size: str, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome = failure(ask(server, answer, tmp_path, **CAPS), "too_large", tmp_path)
        assert outcome.message == (
            f"The body {size}; at most 1,000 are read. To read such a large feed, set max_size for it in "
            "feeds.yaml, or RSS_MAX_FEED_MB for all feeds."
        )

    def test_a_feed_has_a_size_of_its_own(self, server: FeedServer, tmp_path: Path) -> None:
        answers = [
            Answer(body=b"x" * 3_500),
            Answer(body=b"x" * 3_500, chunked=True),
            Answer(body=b"x" * 3_500, gzip=True),
        ]
        for number, answer in enumerate(answers):
            url = server.route(HOST, f"/{number}", answer)
            read = fetch(feed(url, id=f"feed-{number}", max_size=3_500), tmp_path, **CAPS)
            assert isinstance(read, Document)
            assert read.path.read_bytes() == b"x" * 3_500
            read.path.unlink()
            for size in (3_499, 500):
                over = fetch(feed(url, max_size=size), tmp_path, **CAPS)
                assert f"at most {size:,} are read" in failure(over, "too_large", tmp_path).message

    def test_a_round_that_ends_with_a_body_half_read_says_nothing(
        self, server: FeedServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """asyncio complained of what was to be closed when the loop had ended."""
        url = server.route(HOST, "/feed", Answer(body=b"x" * 3_500, chunked=True))
        failure(fetch(feed(url, max_size=500), tmp_path, **CAPS), "too_large", tmp_path)
        gc.collect()
        assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []

    def test_a_larger_feed_may_take_longer(self) -> None:
        policy = FetchPolicy(user_agent="x", deadline=30)
        assert policy.of_size(None) == policy
        assert [policy.of_size(size).deadline for size in (10**6, 20 * 10**6, 100 * 10**6)] == [30, 30, 150]

    def test_an_announced_size_above_the_cap_is_refused_unread(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        answer = Answer(body=RSS, headers={"Content-Length": "10000001"})
        failure(ask(server, answer, tmp_path), "too_large", tmp_path)

    def test_exactly_the_caps_is_allowed(self, server: FeedServer, tmp_path: Path) -> None:
        for chunked in (True, False):
            assert isinstance(
                ask(server, Answer(body=b"x" * 1000, chunked=chunked), tmp_path, **CAPS), Document
            )
            (tmp_path / "feed-0123456789").unlink()
            over = Answer(body=b"x" * 1001, chunked=chunked)
            failure(ask(server, over, tmp_path, **CAPS), "too_large", tmp_path)

    def test_a_spool_that_cannot_be_written_is_no_feeds_fault(
        self, server: FeedServer, tmp_path: Path
    ) -> None:
        with pytest.raises(InfrastructureError, match="spool"):
            ask(server, Answer(body=RSS), tmp_path / "missing")


class TestInflate:
    def test_no_piece_is_larger_than_a_step(self) -> None:
        pieces = list(Inflate("gzip").feed(gzip.compress(b"a" * 5_000_000)))
        assert max(map(len, pieces)) == 64 * 1024
        assert b"".join(pieces) == b"a" * 5_000_000

    @pytest.mark.parametrize("size", [1, 2, 3, 17, 1000])
    def test_where_the_wire_cuts_its_pieces_does_not_matter(self, size: int) -> None:
        packed = gzip.compress(RSS * 9) + gzip.compress(b"") + gzip.compress(RSS) + b"\0\0\0"
        inflate = Inflate("gzip")
        pieces = [
            piece for at in range(0, len(packed), size) for piece in inflate.feed(packed[at : at + size])
        ]
        inflate.finish()
        assert b"".join(pieces) == RSS * 10

    def test_a_stream_that_stops_in_a_header_is_truncated(self) -> None:
        inflate = Inflate("gzip")
        assert list(inflate.feed(b"\x1f")) == []
        with pytest.raises(FetchError, match="truncated"):
            inflate.finish()


class TestTime:
    @pytest.mark.slow
    def test_a_drip_ends_at_the_deadline(self, server: FeedServer, tmp_path: Path) -> None:
        started = time.monotonic()
        outcome = ask(server, Answer(body=RSS * 999, drip=(1, 0.02)), tmp_path, deadline=1)
        assert time.monotonic() - started < PROMPT
        assert failure(outcome, "timeout", tmp_path).answered
        assert "1 s" in outcome.message

    def test_a_host_that_never_answers(self, server: FeedServer, tmp_path: Path) -> None:
        outcome = failure(ask(server, Answer(delay=30), tmp_path, deadline=0.2), "timeout", tmp_path)
        assert (outcome.answered, outcome.accepted) == (False, True)
        assert outcome.status is None
        assert outcome.fetch_ms is not None
        assert 150 < outcome.fetch_ms < PROMPT * 1000

    @pytest.mark.slow
    def test_the_deadline_holds_for_all_hops_together(self, server: FeedServer, tmp_path: Path) -> None:
        for number in range(5):
            hop = Answer(status=302, headers={"Location": f"/{number + 1}"}, delay=0.15)
            server.route(HOST, f"/{number}", hop)
        outcome = fetch(feed(server.url(HOST, "/0")), tmp_path, deadline=0.4)
        failure(outcome, "timeout", tmp_path)
        assert len(server.requests) <= 3

    def test_waiting_for_the_host_does_not_count(self, server: FeedServer, tmp_path: Path) -> None:
        url = server.route(HOST, "/feed", Answer(body=RSS))
        pace = InstantPace()
        pace.ended[HOST, 0] = pace.time
        assert isinstance(fetch(feed(url), tmp_path, pace=pace, host_delay=60.0, deadline=5), Document)
        assert pace.slept == [60.0]

    def test_a_host_that_does_not_take_the_connection(self, tmp_path: Path) -> None:
        """A listener with a full queue: SYNs go unanswered."""
        with socket.socket() as listener:
            listener.bind((HOST, 0))
            listener.listen(0)
            fillers = []
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
                fillers.append(filler)
            url = f"http://{HOST}:{listener.getsockname()[1]}/feed"
            outcome = failure(fetch(feed(url), tmp_path, connect_timeout=0.2), "timeout", tmp_path)
            assert "0.2 s" in outcome.message
            assert not outcome.accepted
            for filler in fillers:
                filler.close()


class TestHosts:
    def test_no_one_listens(self, server: FeedServer, tmp_path: Path) -> None:
        outcome = failure(fetch(feed(server.url("127.0.0.88", "/feed")), tmp_path), "connect", tmp_path)
        assert "connection refused" in outcome.message
        assert not outcome.answered

    def test_a_name_that_does_not_resolve(self, tmp_path: Path) -> None:
        outcome = failure(fetch(feed("http://nothing.invalid/feed"), tmp_path), "dns", tmp_path)
        assert "nothing.invalid" in outcome.message

    @pytest.mark.parametrize(
        ("code", "says"), [(socket.EAI_NONAME, "does not resolve"), (socket.EAI_AGAIN, "DNS")]
    )
    def test_the_sentences_for_a_wrong_name_and_a_silent_name_server_differ(
        self, code: int, says: str
    ) -> None:
        trouble = request_error(socket.gaierror(code, "x"), "a.example", connect_timeout=1)
        assert trouble.kind == "dns"
        assert says in trouble.message

    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (UnicodeError("label too long"), "bad_url"),
            (httpcore.UnsupportedProtocol("x"), "bad_url"),
            (httpcore.ProxyError("407 Proxy Authentication Required"), "connect"),
            (httpcore.ReadTimeout("x"), "connect"),
            (OSError(113, "No route to host"), "connect"),
            (ExceptionGroup("x", [OSError(101, "Network is unreachable")]), "connect"),
            (KeyError("a fault of the library"), "connect"),
        ],
    )
    def test_whatever_the_library_raises_is_a_kind(self, error: Exception, kind: str) -> None:
        trouble = request_error(error, "a.example", connect_timeout=1)
        assert trouble.kind == kind
        assert "a.example" in trouble.message

    def test_a_name_server_that_hangs_holds_the_round_no_longer_than_a_connection(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answered = threading.Event()
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(PATIENCE) and [])
        started = time.monotonic()
        failure(fetch(feed("http://hangs.example/"), tmp_path, connect_timeout=0.2), "dns", tmp_path)
        assert time.monotonic() - started < PROMPT
        answered.set()

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"", "closed the connection"),
            (b"HTTP/1.1 200 OK\r\nX-A: b\r\n", "closed the connection"),
            (b"SSH-2.0-OpenSSH_9.6\r\n\r\n", "not HTTP"),
            (b"HTTP/1.1 abc\r\n\r\n", "not HTTP"),
            (b"\n\n" * 99, "not HTTP"),
        ],
    )
    def test_what_does_not_speak_http(
        self, raw: bytes, says: str, server: FeedServer, tmp_path: Path
    ) -> None:
        outcome = failure(ask(server, Answer(raw=raw), tmp_path), "connect", tmp_path)
        assert not outcome.answered
        assert says in outcome.message

    def test_a_head_without_end(self, server: FeedServer, tmp_path: Path) -> None:
        raw = b"HTTP/1.1 200 OK\r\n" + b"X-A: b\r\n" * 100_000
        failure(ask(server, Answer(raw=raw), tmp_path), "too_large", tmp_path)

    def test_a_reset(self, tmp_path: Path) -> None:
        with served_once(None) as address:
            failure(fetch(feed(f"http://{address}/feed"), tmp_path), "connect", tmp_path)

    @pytest.mark.parametrize(
        "url",
        [
            "ftp://127.0.0.2/feed",
            "file:///etc/passwd",
            "feed://127.0.0.2/feed",
            "http:///feed",
            "http:127.0.0.2/feed",
            "127.0.0.2/feed",
            "//127.0.0.2/feed",
            "http://127.0.0.2:99999/feed",
            "http://127.0.0.2:0/feed",
            "http://127.0.0.2:x/feed",
            "http://[::1/feed",
            "http://a\\b/feed",
            "http://a b/feed",
            "http://\x00/feed",
            f"http://{'a' * 70}.example/feed",
            "http://xn--/feed",
            "http://\u2488com/feed",
            "http://a..example/feed",
            "feed",
        ],
    )
    def test_what_is_no_url_to_request(self, url: str, tmp_path: Path) -> None:
        outcome = failure(fetch(feed(url), tmp_path), "bad_url", tmp_path)
        assert not outcome.answered
