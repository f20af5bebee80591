"""The socket of a server at rest: who asks whether `up` is healthy has an answer here, and all others are
handed to the server that is started for them, with what they have sent.

A client that has sent nothing starts no server: browsers connect ahead, and scanners connect to everything.
"""

import socket
import time
from collections.abc import Callable
from contextlib import suppress

from rss_pipeline.orchestration.serving.forked import Forked
from rss_pipeline.web import healthz
from rss_pipeline.web.on_demand import HEAD_SECONDS

_MOST_SILENT = 32
"""With more, the server is started and takes them all: this process would reach its limit of open files."""
_HEAD_BYTES = 8_192


class Front:
    """A listening socket, and the clients that have sent nothing so far. `hands_over` is False where the
    server is a program of its own, which takes no open connection: all are left in the socket for it."""

    def __init__(
        self,
        listener: socket.socket,
        *,
        hands_over: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.listener = listener
        self.clients: dict[socket.socket, float] = {}
        """With the time at which each is let go."""
        self._hands_over = hands_over
        self._clock = clock

    def wants_server(self, ready: socket.socket) -> bool:
        """Look at what is ready: the listening socket, or a client. True if there is somebody for the
        server."""
        if not self._hands_over:
            return True
        if ready is self.listener:
            self._accept()
            return len(self.clients) > _MOST_SILENT
        try:
            head = ready.recv(_HEAD_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            head = b""
        if head and not healthz.is_asked(head):
            return True
        with suppress(OSError):
            if head:
                ready.sendall(healthz.answer(ready.recv(_HEAD_BYTES)))
        self._let_go(ready)
        return False

    def _accept(self) -> None:
        # A client that has gone meanwhile would be waited for.
        self.listener.setblocking(False)
        with suppress(OSError):
            client, _ = self.listener.accept()
            client.setblocking(False)
            Forked.listeners.append(client)
            self.clients[client] = self._clock() + HEAD_SECONDS

    def let_go_silent(self) -> None:
        """Close the connections of clients whose time is over."""
        for client in [each for each, until in self.clients.items() if self._clock() > until]:
            self._let_go(client)

    def hand_over(self) -> None:
        """Close this process's part of all connections: the server that was forked has them."""
        for client in [*self.clients]:
            self._let_go(client)

    def _let_go(self, client: socket.socket) -> None:
        del self.clients[client]
        Forked.listeners.remove(client)
        client.close()
