"""A line on loopback to a server, which can be cut for a while: connections break, new ones are refused.

A cut at one byte of one transaction is support/services/cut_network.py's.
"""

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Line:
    """A port of 127.0.0.1 that leads to another one."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._is_cut = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def cut(self, seconds: float | None = None) -> None:
        """Cut it, and restore it after so many seconds."""
        with self._lock:
            self._is_cut = True
            broken, self._open = self._open, set()
        for end in broken:
            _close(end)
        if seconds is not None:
            mend = threading.Timer(seconds, self.mend)
            mend.daemon = True
            mend.start()

    def mend(self) -> None:
        """Let connections through again."""
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        try:
            far = socket.create_connection(("127.0.0.1", self._to))
        except OSError:
            _close(near)
            return
        with self._lock:
            if self._is_cut:
                _close(near)
                _close(far)
                return
            self._open |= {near, far}
        for one, other in ((near, far), (far, near)):
            threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(2**16):
                target.sendall(data)
        with self._lock:
            self._open -= {source, target}
        _close(source)
        _close(target)


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
