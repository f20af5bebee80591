"""Header lines that are none: left out as browsers do, but for those that say where the body ends."""

import re
from pathlib import Path

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rss_pipeline.collector.fetch.image_round import fetch_images, image_policy
from rss_pipeline.collector.fetch.image_visit import ImageRequest, KeptImage
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.metered_stream import wellformed_head
from rss_pipeline.collector.models.outcome import Document
from rss_pipeline_tests.collector.fetch.rounds import LOOPBACK, RSS, InstantPace, now
from rss_pipeline_tests.collector.http.exchange import HOST, ask, failure
from rss_pipeline_tests.support import pictures
from rss_pipeline_tests.support.server import Answer, FeedServer

MALFORMED = [
    b"get-ban/forum.php: userdata not support",
    b"X Powered By: PHP",
    b"Warning: Cannot modify header information\x00",
    b"Warning message without a colon",
    b"<br />",
    b": no name",
    b"X-Gr\xfc\xdfe: name beyond ASCII",
    b"X-A: line break of an old Mac\rin it",
    b" folded without a line before it",
    b"no colon\r\n and folded",
    b'"X-Quoted": a',
    b"Set-Cookie: a=b\x00c",
]
FRAMING = [
    b"Content-Length : 3",
    b"Content-Length\t: 3",
    b"Content Length: 3",
    b"content-length 3",
    b'"Content-Length": 3',
    b"\xa0Content-Length: 3",
    b"Content-Length\x00: 3",
    b"Content-Length: 3\x00",
    b"X-A: b\rContent-Length: 3",
    b" Content-Length: 3",
    b"no colon\r\n Content-Length: 3",
    b"Transfer-Encoding : chunked",
    b"Transfer Encoding: chunked",
    b"X A\x0b: b\x0bTransfer-Encoding: chunked",
    b"Content-Encoding : gzip",
]


def answer(line: bytes, body: bytes = RSS) -> Answer:
    head = b"HTTP/1.1 200 OK\r\n" + line + b'\r\nContent-Length: %d\r\nETag: "1"\r\n\r\n' % len(body)
    return Answer(raw=head + body, drip=(17, 0))


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_header_line_is_left_out(line: bytes, server: FeedServer, tmp_path: Path) -> None:
    outcome = ask(server, answer(line), tmp_path)
    assert isinstance(outcome, Document)
    assert outcome.path.read_bytes() == RSS
    assert outcome.response.etag == '"1"'


def test_an_image_beside_a_malformed_header_line_is_downloaded(server: FeedServer, tmp_path: Path) -> None:
    url = server.route(HOST, "/a.png", answer(MALFORMED[0], pictures.PNG))
    [outcome] = fetch_images(
        [ImageRequest(id="i", url=url, private=LOOPBACK)],
        policy=image_policy(user_agent="t (t@example.org)"),
        spool=tmp_path,
        keep=lambda _, image: image.body,
        clock=now,
        pace=InstantPace(),
    )
    assert outcome == KeptImage(pictures.PNG)


@pytest.mark.parametrize("line", FRAMING)
def test_a_malformed_line_about_the_body_refuses_the_answer(
    line: bytes, server: FeedServer, tmp_path: Path
) -> None:
    outcome = failure(ask(server, answer(line), tmp_path), "connect", tmp_path)
    assert "malformed header line about its body" in outcome.message


@pytest.mark.parametrize(
    "line",
    [
        *(b"Content-Length: " + length for length in (b"3, 4", b"-3", b"+3", b"x", b"")),
        b"Transfer-Encoding: gzip, chunked",
    ],
)
def test_a_body_with_an_end_that_is_not_known_refuses_the_answer(
    line: bytes, server: FeedServer, tmp_path: Path
) -> None:
    outcome = failure(ask(server, answer(line), tmp_path), "connect", tmp_path)
    assert f"not HTTP: its {line.partition(b':')[0].decode()} is" in outcome.message


def test_a_blank_before_the_colon_hides_no_header(server: FeedServer, tmp_path: Path) -> None:
    moved = Answer(raw=b"HTTP/1.1 302 Found\r\nLocation : /b\r\nContent-Length: 0\r\n\r\n")
    server.route(HOST, "/b", Answer(body=RSS))
    assert isinstance(ask(server, moved, tmp_path), Document)


def test_interim_answers_may_have_malformed_lines_too(server: FeedServer, tmp_path: Path) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nno colon\r\n\r\n"
    raw = early * 3 + b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n" + RSS
    outcome = ask(server, Answer(raw=raw, drip=(5, 0)), tmp_path)
    assert isinstance(outcome, Document)
    assert outcome.path.read_bytes() == RSS


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=30),
            st.sampled_from([*MALFORMED, *FRAMING, b"A: b", b"A:b\r\n c", b"Content-Length: 3"]),
        ),
        max_size=6,
    )
)
def test_whatever_a_head_holds_h11_reads_what_is_left_or_it_is_refused(lines: list[bytes]) -> None:
    lines = [line for line in lines if b"\n" not in line.replace(b"\r\n", b"") and line.strip(b"\r\n")]
    head = b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"", b""])
    try:
        clean = wellformed_head(head)
    except FetchError:
        return
    assert wellformed_head(clean) == clean
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    client.receive_data(clean)
    refusal = ""
    try:
        assert isinstance(client.next_event(), h11.Response)
    except h11.RemoteProtocolError as error:
        refusal = str(error)
    assert not re.search("header line|continuation line", refusal)
