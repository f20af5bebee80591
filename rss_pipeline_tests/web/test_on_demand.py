"""A server without clients ends; one that comes while it ends has its answer."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from websockets.sync.client import connect

from rss_pipeline.web.healthz import Healthz
from rss_pipeline.web.on_demand import begins_with, end, ends_when_idle
from rss_pipeline_tests.support.waiting import PATIENCE, soon

REQUEST = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"


async def served(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
        return
    if scope["path"] == "/slow":
        # The request, and then the end of its connection.
        await receive()
        await receive()
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


app = Healthz(served)


class Seconds:
    """A clock of seconds that a test moves."""

    now = 0.0
    looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return self.now

    def after_looks(self) -> None:
        """Wait until the server has looked at this clock, as it does each second."""
        before = self.looks
        soon(lambda: self.looks > before + 1)


@contextmanager
def serving(
    door: socket.socket,
    clock: Callable[[], float],
    seconds: Callable[[], float] = lambda: 60.0,
    clients: Sequence[socket.socket] = (),
) -> Iterator[threading.Thread]:
    """A server at a copy of this socket, as a fork has one."""
    config = uvicorn.Config(app, lifespan="off", log_level="error", timeout_keep_alive=int(PATIENCE))
    server = uvicorn.Server(config)
    ends_when_idle(server, seconds, clock=clock, unused=lambda: app.answered)
    begins_with(server, clients)
    thread = threading.Thread(target=lambda: server.run(sockets=[door.dup()]))
    thread.start()
    try:
        yield thread
    finally:
        server.should_exit = True
        thread.join()


def answered(port: int, path: str = "/") -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=PATIENCE)) as connection:
        connection.request("GET", path)
        return connection.getresponse().status


def has_ended(thread: threading.Thread, clock: Seconds) -> bool:
    """True after its end; a minute passes before each look."""
    clock.now += 61
    return not thread.is_alive()


def test_it_ends_when_no_one_is_connected_and_who_comes_then_waits_for_the_next() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        clock = Seconds()
        with serving(door, clock) as thread:
            assert answered(port) == 200
            soon(lambda: has_ended(thread, clock))
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
            client.sendall(REQUEST)
            with serving(door, Seconds()):
                assert client.recv(100).startswith(b"HTTP/1.1 200")


def test_a_health_check_does_not_keep_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        clock = Seconds()
        with serving(door, clock) as thread:
            assert answered(port) == answered(port, "/healthz") == 200

            def ends() -> bool:
                clock.now += 20
                with suppress(OSError):
                    answered(port, "/healthz")
                return not thread.is_alive()

            door.close()
            soon(ends)


def test_who_was_let_in_before_it_began_has_an_answer() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        socket.create_connection(door.getsockname(), timeout=PATIENCE) as client,
    ):
        client.sendall(REQUEST)
        accepted, _ = door.accept()
        with serving(door, Seconds(), clients=[accepted]):
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            assert answered(door.getsockname()[1]) == 200


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n", REQUEST + b"GET"])
def test_a_client_that_sends_no_whole_request_does_not_keep_it(said: bytes) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as door,
        socket.create_connection(door.getsockname(), timeout=PATIENCE) as client,
    ):
        clock = Seconds()
        client.sendall(said)
        with serving(door, clock) as thread:
            # It was let in before.
            assert answered(door.getsockname()[1]) == 200
            soon(lambda: has_ended(thread, clock))


@pytest.mark.parametrize("kind", ["request", "websocket"])
def test_a_page_that_is_open_keeps_it(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        clock = Seconds()
        with serving(door, clock) as thread:
            assert answered(port) == 200
            with (
                connect(f"ws://127.0.0.1:{port}/", open_timeout=PATIENCE)
                if kind == "websocket"
                else socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
            ) as client:
                if isinstance(client, socket.socket):
                    client.sendall(REQUEST.replace(b"/", b"/slow", 1))
                assert answered(port) == 200
                clock.after_looks()
                clock.now += 300
                clock.after_looks()
                assert thread.is_alive()
                assert answered(port) == 200
            soon(lambda: has_ended(thread, clock))


def test_one_that_is_renewed_ends_as_soon_as_no_one_is_connected() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        left, clock = [60.0], Seconds()
        with serving(door, clock, lambda: left[-1]) as thread:
            with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
                assert answered(port) == 200
                left.append(0.0)
                clock.after_looks()
                assert answered(port) == 200
                client.sendall(REQUEST)
                assert client.recv(100).startswith(b"HTTP/1.1 200")
            soon(lambda: not thread.is_alive())


def test_who_is_let_in_while_it_ends_has_an_answer() -> None:
    """The connection is there, its request comes later: it was reset when the server just ended."""
    with socket.create_server(("127.0.0.1", 0)) as door, closing(door.dup()) as copy:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error"))
        is_ending = threading.Event()

        async def look() -> None:
            if server.server_state.connections:
                is_ending.set()
                await end(server)

        server.config.callback_notify, server.config.timeout_notify = look, 0
        thread = threading.Thread(target=lambda: server.run(sockets=[copy]))
        with socket.create_connection(door.getsockname(), timeout=PATIENCE) as client:
            thread.start()
            assert is_ending.wait(PATIENCE)
            client.sendall(REQUEST)
            assert client.recv(100).startswith(b"HTTP/1.1 200")
        thread.join(PATIENCE)
        assert not thread.is_alive()
