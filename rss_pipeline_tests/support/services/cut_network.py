"""A network on loopback between us and Postgres that is cut, or goes silent, where a test wants it.

Not a mock: all bytes go over sockets to the real server, up to the cut.

    with CutNetwork(postgres.port) as network:
        network.cut(Cut(at=b"guid-7", after_answer=True))
        PostgresDatabase(postgres.tcp_url("some", port=network.port), where="...")
"""

import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

_COMMITTED = b"COMMIT\0"
"""Bytes of the server's answer that a transaction is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """The next connection that sends `at` is cut there: before it, or after the server has committed."""

    at: bytes
    after_commit: bool = False
    """True: the server gets all, and its answer is lost."""
    is_silent: bool = False
    """True: the connection stays open, and nothing goes through any more."""


class CutNetwork:
    """A port of 127.0.0.1 that leads to another one."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.cuts = 0
        """So often it was cut."""
        self._next: Cut | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def cut(self, cut: Cut) -> None:
        """Cut one connection, once."""
        self._next = cut

    def _taken(self, data: bytes) -> Cut | None:
        with self._lock:
            found = self._next
            if found is None or found.at not in data:
                return None
            self._next = None
            self.cuts += 1
            return found

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                _Wire(self, near, socket.create_connection(("127.0.0.1", self._to)))


class _Wire:
    """One connection, and the one behind it."""

    def __init__(self, network: CutNetwork, near: socket.socket, far: socket.socket) -> None:
        self._network = network
        self._near, self._far = near, far
        self._cut: Cut | None = None
        for carry in (self._there, self._back):
            threading.Thread(target=carry, daemon=True).start()

    def _there(self) -> None:
        with suppress(OSError):
            while data := self._near.recv(2**20):
                found = self._network._taken(data)
                if found is None:
                    if self._cut is None or self._cut.after_commit:
                        self._far.sendall(data)
                    continue
                self._cut = found
                if found.after_commit:
                    self._far.sendall(data)
                else:
                    self._far.sendall(data[: data.index(found.at)])
                    if not found.is_silent:
                        break
        self._end()

    def _back(self) -> None:
        with suppress(OSError):
            while data := self._far.recv(2**20):
                if self._cut is None:
                    self._near.sendall(data)
                elif _COMMITTED in data and not self._cut.is_silent:
                    break
        if self._cut is None or not self._cut.is_silent:
            self._end()

    def _end(self) -> None:
        for end in (self._near, self._far):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
