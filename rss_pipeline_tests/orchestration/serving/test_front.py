"""The socket of a server at rest: who starts the server, and who does not. Those of a running `up` are tested
in cli/up/test_killed_parts.py."""

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rss_pipeline.orchestration.serving.forked import Forked
from rss_pipeline.orchestration.serving.front import Front
from rss_pipeline.web import healthz
from rss_pipeline.web.on_demand import HEAD_SECONDS
from rss_pipeline_tests.support.waiting import PATIENCE

ASKED = b"GET /healthz HTTP/1.1\r\nHost: somebody.example\r\n\r\n"


class Seconds:
    """A clock of seconds that a test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def front() -> Iterator[Front]:
    with socket.create_server(("127.0.0.1", 0)) as door:
        found = Front(door, clock=Seconds())
        healthz.note([])
        yield found
        found.hand_over()
        healthz.note([], now=0)


def client(front: Front, stack: ExitStack, said: bytes = b"") -> socket.socket:
    found = stack.enter_context(socket.create_connection(front.listener.getsockname(), timeout=PATIENCE))
    if said:
        found.sendall(said)
    return found


def wants_server(front: Front) -> bool:
    """One look at what is ready, as the loop of `up` makes; True if there is somebody for the server."""
    ready, _, _ = select.select([front.listener, *front.clients], [], [], PATIENCE)
    assert ready, "nobody came"
    return any(front.wants_server(each) for each in ready)


@pytest.mark.parametrize(
    ("missing", "age", "status", "body"),
    [
        ([], 0, b"200 OK", b'{"ok": true, "missing": []}'),
        (["Dagster's daemon"], 0, b"503 Service Unavailable", b"Dagster's daemon"),
        ([], healthz.STALE_SECONDS + 1, b"503 Service Unavailable", b"the process that starts all others"),
    ],
)
def test_a_health_check_has_an_answer_and_starts_nothing(
    front: Front, missing: list[str], age: float, status: bytes, body: bytes
) -> None:
    healthz.note(missing, now=time.monotonic() - age)
    with ExitStack() as stack:
        for said in (ASKED, ASKED.replace(b"GET", b"HEAD")):
            one = client(front, stack, said)
            assert not wants_server(front)
            assert not wants_server(front)
            head, _, found = b"".join(iter(lambda one=one: one.recv(1_000), b"")).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 " + status)
            assert (body in found) == said.startswith(b"GET")
    assert (front.clients, Forked.listeners) == ({}, [])


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
        b"GET /healthz/more HTTP/1.1\r\n\r\n",
        b"POST /healthz HTTP/1.1\r\n\r\n",
        b"GET /heal",
        ASKED[:-4] + b"\r\nX: " + b"x" * 9_000 + b"\r\n\r\n",
    ],
)
def test_whoever_says_anything_else_is_handed_over_with_what_was_said(front: Front, said: bytes) -> None:
    with ExitStack() as stack:
        client(front, stack, said)
        assert not wants_server(front)
        assert wants_server(front)
        [one] = front.clients
        with socket.socket(fileno=socket.dup(one.fileno())) as forked:
            front.hand_over()
            assert forked.recv(10_000) == said


def test_a_client_that_says_nothing_starts_nothing_and_is_let_go(front: Front) -> None:
    clock = Seconds()
    front = Front(front.listener, clock=clock)
    with ExitStack() as stack:
        silent, gone, broken = (client(front, stack) for _ in range(3))
        for _ in range(3):
            assert not wants_server(front)
        assert len(front.clients) == len(Forked.listeners) == 3
        # Its connection is reset.
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for each in (gone, broken):
            each.close()
            assert not wants_server(front)
        clock.now += HEAD_SECONDS
        front.let_go_silent()
        assert len(front.clients) == 1
        clock.now += 1
        front.let_go_silent()
        assert silent.recv(10) == b""
    assert (front.clients, Forked.listeners) == ({}, [])


def test_where_many_say_nothing_the_server_is_started_which_has_limits_of_its_own(front: Front) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            client(front, stack)
            if wants_server(front):
                break
        assert 30 < len(front.clients) < 40
