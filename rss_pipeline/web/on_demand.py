"""A web server that ends when nobody has been connected for a time, and whose socket stays open meanwhile.

The process that forked it keeps the socket: a client that comes later waits there until the next server is
forked (orchestration/serving/kept.py). It is refused nothing, and no answer is cut off.
"""

import asyncio
import math
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Its import brings click, which nothing here needs.
    import uvicorn

HEAD_SECONDS = 10.0
"""Time for a client to send the head of a request, to the reader and to a server at rest."""
IDLE_SECONDS = 300.0
"""A page that looks for news each minute keeps its server; an app that comes each quarter of an hour does
not."""
RENEW = signal.SIGUSR1
"""A signal to a server that is to make room for another one: it ends as soon as nobody is connected."""


def idle_seconds(is_needed: bool) -> float:
    """The time without a connection after which a server ends; for ever where it is needed without one."""
    return math.inf if is_needed else IDLE_SECONDS


def ends_when_idle(
    server: "uvicorn.Server",
    seconds: Callable[[], float],
    *,
    clock: Callable[[], float] = time.monotonic,
    unused: Callable[[], int] = lambda: 0,
) -> None:
    """Let a server that is not started end by itself after so many seconds without a request or an open
    websocket. `unused` is the number of requests that are no use of it.

    A client that sends no whole request does not keep it: uvicorn waits for the rest for ever. Where nobody
    else is connected, the end comes when the time of a connection at rest is over.
    """
    state = server.server_state
    used_at, requests = clock(), 0

    async def look() -> None:
        nonlocal used_at, requests
        used = state.total_requests - unused()
        if state.tasks or used != requests:
            used_at, requests = clock(), used
            return
        rest = server.config.timeout_keep_alive + HEAD_SECONDS if state.connections else 0.0
        if clock() - used_at >= max(seconds(), rest):
            await end(server, clock=clock)

    server.config.callback_notify = look
    server.config.timeout_notify = 0


def begins_with(server: "uvicorn.Server", clients: Sequence[socket.socket]) -> None:
    """Let a server that is not started serve these clients, too, who were let in before it was there."""
    startup = server.startup

    async def let_in(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets=sockets)
        # As uvicorn does for each client of its own.
        kind: Any = server.config.http_protocol_class
        protocol = partial(
            kind, config=server.config, server_state=server.server_state, app_state=server.lifespan.state
        )
        for client in clients:
            # One has gone meanwhile.
            with suppress(OSError):
                await asyncio.get_running_loop().connect_accepted_socket(protocol, client)

    if clients:
        server.startup = let_in  # type: ignore[method-assign]


async def end(server: "uvicorn.Server", *, clock: Callable[[], float] = time.monotonic) -> None:
    """Let in no client any more, answer those who were let in just before, and end the server."""
    for each in server.servers:
        each.close()
    await asyncio.sleep(0)
    until = clock() + HEAD_SECONDS
    while any(
        _is_at_work(each) or (_is_new(each) and clock() < until) for each in server.server_state.connections
    ):
        await asyncio.sleep(0.05)
    server.should_exit = True


# A websocket is none of uvicorn's HTTP connections any more, and has no cycle: it opens again elsewhere.


def _is_at_work(connection: Any) -> bool:
    cycle = getattr(connection, "cycle", None)
    return cycle is not None and not cycle.response_complete


def _is_new(connection: Any) -> bool:
    """True for one whose first request has not come."""
    return getattr(connection, "cycle", False) is None
