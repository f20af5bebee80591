"""Input of a stranger is refused within its limit, by a real server, and slows no one else."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from rss_pipeline.api.answers import Answers
from rss_pipeline.api.app import BODY_BYTES, LARGER_BODIES, Limits
from rss_pipeline.api.hosts import OwnHosts, own_hosts
from rss_pipeline.api.server import HEAD_BYTES
from rss_pipeline_tests.support.reader import HOST, Reader, Served, reader_settings, served
from rss_pipeline_tests.support.waiting import PATIENCE, PROMPT, soon

GET = f"GET /api/about HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
JSON_TYPE = "Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The whole reader, with its own limits: one for all that is sent to it."""
    with (
        Reader.on(reader_settings(tmp_path_factory.mktemp("reader") / "home")) as reader,
        served(reader.app) as found,
    ):
        yield found.port


def post(body: bytes = b"", *, length: int | None = None, path: str = "/api/about", extra: str = "") -> bytes:
    size = len(body) if length is None else length
    return f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {size}\r\n{extra}\r\n".encode() + body


def exchange(port: int, sent: bytes, *, end: bool = False) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the first answer to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return answer_of(connection)


def answer_of(connection: socket.socket) -> tuple[int, dict[str, Any]]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    while len(body) < int(headers["content-length"]):
        body += received(connection)
    return int(lines[0].split()[1]), json.loads(body)


def received(connection: socket.socket) -> bytes:
    data = connection.recv(65_536)
    assert data, "closed without an answer"
    return data


def is_closed(connection: socket.socket) -> bool:
    try:
        while connection.recv(65_536):
            pass
    except ConnectionResetError:
        pass
    return True


@pytest.mark.parametrize(
    ("sent", "status", "kind"),
    [
        (post(length=20_000_000), 413, "body_too_large"),
        (post(b"x" * (BODY_BYTES + 1)), 413, "body_too_large"),
        (post(b"x" * BODY_BYTES), 405, "method_not_allowed"),
        (post(b"&".join(b"i=%d" % n for n in range(100_000))), 413, "body_too_large"),
        (post(b"x", extra="Content-Encoding: gzip\r\n"), 415, "unsupported_media_type"),
        (GET.replace(b"\r\n\r\n", b"\r\nCookie: " + b"x" * 50_000 + b"\r\n\r\n"), 431, "head_too_large"),
        (GET.replace(b"\r\n\r\n", b"\r\n" + b"x: y\r\n" * 8_000 + b"\r\n"), 431, "head_too_large"),
        (GET.replace(b"/api/", b"/api/" + b"x" * 10_000), 414, "address_too_long"),
        (GET.replace(b"about", b"%ff"), 400, "malformed_request"),
        (GET.replace(b"about", b"\xff"), 400, "malformed_request"),
        (GET.replace(b"about", b"about%00"), 400, "malformed_request"),
        (GET.replace(b"/api/", b"/api/../api/"), 404, "not_found"),
        (GET.replace(b"/api/", b"//api/"), 404, "not_found"),
        (GET.replace(b"/api/", b"/api/%2e%2e/api/"), 404, "not_found"),
        (GET.replace(b"/api/", b"http://127.0.0.1:3001/api/nothing/"), 404, "not_found"),
        (GET.replace(HOST.encode(), b"evil.example"), 421, "wrong_host"),
        (GET.replace(b"\r\n\r\n", b"\r\nHost: evil.example\r\n\r\n"), 421, "wrong_host"),
        (b"GET /api/about HTTP/1.0\r\n\r\n", 421, "wrong_host"),
        (GET.replace(b"\r\n\r\n", b"\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"), 200, None),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed_request"),
        (b"GET /api/about\r\n\r\n", 421, "wrong_host"),
        (post(b"", extra="Content-Length: 5\r\n"), 400, "malformed_request"),
        (post(b"", extra="Transfer-Encoding: chunked\r\n"), 400, "malformed_request"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_too_much_or_no_http_is_answered_with_a_problem(
    port: int, sent: bytes, status: int, kind: str | None
) -> None:
    assert exchange(port, sent)[0] == status
    assert exchange(port, sent)[1].get("kind") == kind
    assert exchange(port, GET)[0] == 200


def test_a_body_of_20_megabytes_is_refused_and_its_sender_sees_the_answer(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(post(b"x" * 1_000_000, length=20_000_000))
        status, problem = answer_of(connection)
        assert (status, problem["kind"]) == (413, "body_too_large")
        connection.sendall(b"x" * 19_000_000)
        # All of it was taken and thrown away: the connection goes on.
        connection.sendall(GET)
        assert answer_of(connection)[0] == 200


def test_a_chunked_body_without_end_is_refused_at_its_limit(port: int) -> None:
    head = f"POST /api/about HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    assert exchange(port, head + chunk * 20)[0] == 413


def test_what_comes_behind_a_body_is_no_header(port: int, tmp_path: Any) -> None:
    """A proxy in front passes trailers on as they are: none may name a host, a client or a login."""
    heads: list[list[bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Request(scope, receive).body()
        heads.append([name for name, _ in scope["headers"]])
        await JSONResponse({})(scope, receive, send)

    head = f"POST /api/about HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    trailers = b"0\r\nHost: evil.example\r\nAuthorization: Bearer x\r\nX-Forwarded-For: 1.2.3.4\r\n\r\n"
    with served(app) as found, socket.create_connection(("127.0.0.1", found.port), PATIENCE) as connection:
        connection.sendall(head + b"1\r\nx\r\n" + trailers)
        assert answer_of(connection)[0] == 200
        # The next request has its own headers again.
        connection.sendall(GET)
        assert answer_of(connection)[0] == 200
    assert heads == [[b"host", b"transfer-encoding"], [b"host"]]
    assert exchange(port, head + b"1\r\nx\r\n" + trailers)[0] == 405
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection, suppress(ConnectionError):
        connection.sendall(head + b"0\r\nX-Long: " + b"x" * 2_000_000)
        assert is_closed(connection), "one without an end is not kept"


@contextmanager
def small(
    tmp_path: Any, change: Callable[[Any], object] = lambda _: None, **limits: Any
) -> Iterator[tuple[Served, threading.Event]]:
    """A server of small limits, and what the address /waits waits for."""
    may_go = threading.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        size = len(await request.body())
        answer: Response = JSONResponse({"size": size})
        if request.url.path == "/waits":
            while not may_go.is_set():
                await asyncio.sleep(0.01)
        if request.url.path == "/endless":
            answer = Response(b"x" * 50_000_000)
        await answer(scope, receive, send)

    async def sender(scope: Scope) -> str | None:
        return Request(scope).headers.get("user")

    limited = Limits(app, **{"larger_bodies": {"/large": 200_000}, "sender": sender, **limits})
    hosts = OwnHosts(limited, own=own_hosts(reader_settings(tmp_path)))
    with served(Answers(hosts), change=change) as found:
        yield found, may_go
        may_go.set()


def large(size: int, *, length: int | None = None, path: str = "/large", user: str = "ada") -> bytes:
    return post(b"x" * size, length=length, path=path, extra=f"User: {user}\r\n")


def test_an_address_may_take_more(tmp_path: Any) -> None:
    with small(tmp_path) as (found, _):
        assert exchange(found.port, large(150_000)) == (200, {"size": 150_000})
        assert exchange(found.port, large(150_000, path="/small"))[0] == 413
        assert exchange(found.port, large(250_000))[0] == 413


@pytest.mark.slow
def test_a_body_that_never_comes_ends_and_holds_no_place(tmp_path: Any) -> None:
    with small(tmp_path, body_seconds=1.0, at_work=1) as (found, _), ExitStack() as stack:
        slow = [
            stack.enter_context(socket.create_connection(("127.0.0.1", found.port), PATIENCE))
            for _ in range(5)
        ]
        for connection in slow:
            connection.sendall(post(b"x", length=100))
        assert exchange(found.port, post(b"x")) == (200, {"size": 1}), "while the others wait"
        for connection in slow:
            status, problem = answer_of(connection)
            assert (status, problem["kind"]) == (408, "request_too_slow")


@pytest.mark.slow
def test_large_bodies_have_one_limit_together_and_give_their_room_back(tmp_path: Any) -> None:
    with small(tmp_path, all_bodies_bytes=800_000) as (found, _):
        with socket.create_connection(("127.0.0.1", found.port), PATIENCE) as waiting:
            waiting.sendall(large(180_000, length=190_000))
            deadline = time.monotonic() + PROMPT
            while exchange(found.port, large(150_000))[0] != 503:
                assert time.monotonic() < deadline
            # A user has a share: of others, and of strangers, whatever is small comes through.
            assert exchange(found.port, large(150_000, user="ben"))[0] == 200
            assert exchange(found.port, post(b"x" * BODY_BYTES, path="/large"))[0] == 200
            waiting.sendall(b"x" * 10_000)
            assert answer_of(waiting) == (200, {"size": 190_000})
        assert exchange(found.port, large(150_000))[0] == 200


@pytest.mark.slow
def test_strangers_send_no_large_body_and_keep_no_one_from_logging_in(port: int, tmp_path: Any) -> None:
    """Each is refused at its head, or once it is larger than a login: nothing of it is kept."""
    for path in LARGER_BODIES:
        asked = post(b"", length=900_000, path=path, extra="Authorization: Bearer nobody\r\n")
        status = head_of(port, asked)
        assert status == (303 if path.startswith("/settings/") else 401), path
    token = post(b"", length=900_000, path="/greader/reader/api/0/edit-tag")
    forged = token.replace(b"\r\n\r\n", b"\r\nAuthorization: GoogleLogin auth=x/y\r\n\r\n")
    assert head_of(port, forged) == 401
    path = "/greader/reader/api/0/edit-tag"
    chunked = f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert exchange(port, chunked + b"1A000\r\n" + b"x" * 0x1A000)[0] == 401
    with small(tmp_path, all_bodies_bytes=100_000) as (found, _), ExitStack() as stack:
        for _ in range(20):
            link = stack.enter_context(socket.create_connection(("127.0.0.1", found.port), PATIENCE))
            link.sendall(post(b"x" * 60_000, length=63_000, path="/large"))
        assert exchange(found.port, post(b"x" * 60_000, path="/large"))[0] == 200


def head_of(port: int, sent: bytes) -> int:
    """The status of the answer to a request of which the head alone was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(sent)
        return int(received(connection).split()[1])


@pytest.mark.slow
def test_requests_beyond_those_at_work_wait_and_are_refused_with_retry_after(tmp_path: Any) -> None:
    with small(tmp_path, at_work=2, wait_seconds=0.5) as (found, may_go), ExitStack() as stack:
        busy = [
            stack.enter_context(socket.create_connection(("127.0.0.1", found.port), PATIENCE))
            for _ in range(2)
        ]
        for connection in busy:
            connection.sendall(GET.replace(b"/api/about", b"/waits"))
        deadline = time.monotonic() + PROMPT
        while (answer := exchange(found.port, GET))[0] == 200:
            assert time.monotonic() < deadline
        assert (answer[0], answer[1]["kind"], answer[1]["retry_after"]) == (503, "too_busy", 2)
        may_go.set()
        assert [answer_of(connection)[0] for connection in busy] == [200, 200]
        assert exchange(found.port, GET)[0] == 200


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", b"GET /api/ab", GET[:-2], GET + b"\r\n\r\nGET /ap"], ids=repr)
def test_a_head_that_never_ends_is_closed(tmp_path: Any, sent: bytes) -> None:
    def change(protocol: Any) -> None:
        protocol.head_seconds = protocol.rest_seconds = 0.3

    with small(tmp_path, change) as (found, _):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", found.port), PATIENCE) as connection:
            connection.sendall(sent)
            assert is_closed(connection)
        assert time.monotonic() - began < PROMPT, "uvicorn keeps an idle connection for longer"


@pytest.mark.slow
def test_the_rest_of_a_refused_body_may_not_take_for_ever(tmp_path: Any) -> None:
    def change(protocol: Any) -> None:
        protocol.rest_seconds = 0.5

    with (
        small(tmp_path, change) as (found, _),
        socket.create_connection(("127.0.0.1", found.port), PATIENCE) as connection,
    ):
        connection.sendall(post(length=20_000_000))
        assert answer_of(connection)[0] == 413
        soon(lambda: not found.connections, seconds=PROMPT)


@pytest.mark.slow
def test_a_client_that_reads_nothing_is_cut_off(tmp_path: Any) -> None:
    def change(protocol: Any) -> None:
        protocol.stall_seconds = 0.5

    with (
        small(tmp_path, change, at_work=1) as (found, _),
        socket.create_connection(("127.0.0.1", found.port), PATIENCE) as connection,
    ):
        connection.sendall(GET.replace(b"/api/about", b"/endless"))
        received(connection)
        assert exchange(found.port, GET)[0] == 200, "meanwhile the others are served"
        soon(lambda: not found.connections, seconds=PROMPT)


@pytest.mark.slow
def test_a_crowd_of_connections_keeps_no_one_out(tmp_path: Any) -> None:
    def change(protocol: Any) -> None:
        protocol.most = 5

    with small(tmp_path, change) as (found, may_go), ExitStack() as stack:
        crowd = [
            stack.enter_context(socket.create_connection(("127.0.0.1", found.port), PATIENCE))
            for _ in range(5)
        ]
        for connection in crowd:
            connection.sendall(b"GET /slo")
        for _ in range(10):
            assert exchange(found.port, GET)[0] == 200
        busy = [
            stack.enter_context(socket.create_connection(("127.0.0.1", found.port), PATIENCE))
            for _ in range(5)
        ]
        for connection in busy:
            connection.sendall(GET.replace(b"/api/about", b"/waits"))
        deadline = time.monotonic() + PROMPT
        while (answer := exchange(found.port, GET))[0] == 200:
            assert time.monotonic() < deadline
        assert (answer[0], answer[1]["kind"]) == (503, "too_busy")
        may_go.set()
        assert [answer_of(connection)[0] for connection in busy] == [200] * 5


def test_many_requests_of_one_connection_are_each_measured_alone(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        padded = GET.replace(b"\r\n\r\n", b"\r\nX-Pad: " + b"x" * (HEAD_BYTES // 2) + b"\r\n\r\n")
        for _ in range(5):
            connection.sendall(padded)
            assert answer_of(connection)[0] == 200
