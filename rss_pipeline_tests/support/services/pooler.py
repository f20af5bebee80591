"""A pooler in transaction mode before a Postgres, as PgBouncer by `pool_mode = transaction`.

Each transaction of a client goes to the session that has rested longest, so that nothing which outlives one
is there for the next.

Not a mock: statements go over sockets to the real server. Like PgBouncer it gives each client another process
id than that of a session, and refuses a connection that sets `options`.

    with TransactionPooler(postgres, "some", sessions=3) as pooler:
        PostgresDatabase(postgres.tcp_url("some", port=pooler.port), where="...")
"""

import queue
import select
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

from rss_pipeline_tests.support.services.postgres import USER, Postgres

_NO_TLS = (80_877_103, 80_877_104)
"""Requests for TLS and for GSSAPI, which are answered with N."""
_PROCESS = 7
"""The process id that each client gets."""


class TransactionPooler:
    """A port of 127.0.0.1 that leads to so many sessions of one database."""

    def __init__(self, postgres: Postgres, database: str, *, sessions: int) -> None:
        self._address = str(postgres.folder / f".s.PGSQL.{postgres.port}")
        self._database = database
        self._parameters = b""
        self._resting: queue.Queue[socket.socket] = queue.Queue()
        for _ in range(sessions):
            self._resting.put(self._session())
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.transactions = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        while not self._resting.empty():
            self._resting.get().close()

    def _session(self) -> socket.socket:
        """A session of the server, by its socket and so without a password."""
        session = socket.socket(socket.AF_UNIX)
        session.connect(self._address)
        asked = b"user\0%s\0database\0%s\0\0" % (USER.encode(), self._database.encode())
        session.sendall(struct.pack("!ii", 8 + len(asked), 196_608) + asked)
        parameters = b""
        for kind, message in _messages(session):
            parameters += message if kind == b"S" else b""
            if kind == b"Z":
                break
        self._parameters = parameters
        return session

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, suppress(OSError):
            code, asked = 0, b""
            while code in (0, *_NO_TLS):
                length, code = struct.unpack("!ii", _exactly(client, 8))
                asked = _exactly(client, length - 8)
                if code in _NO_TLS:
                    client.sendall(b"N")
            if b"\0options\0" in b"\0" + asked:
                said = b"SFATAL\0C08P01\0Munsupported startup parameter: options\0\0"
                client.sendall(b"E" + struct.pack("!i", 4 + len(said)) + said)
                return
            welcome = b"R" + struct.pack("!ii", 8, 0) + self._parameters
            client.sendall(welcome + b"K" + struct.pack("!iii", 12, _PROCESS, 1) + b"Z\0\0\0\5I")
            while first := client.recv(1, socket.MSG_PEEK):
                if first == b"X":
                    return
                session = self._resting.get()
                try:
                    self._transaction(client, session)
                except OSError:
                    # The session is within the transaction of a client that left.
                    session.close()
                    session = self._session()
                    raise
                finally:
                    self._resting.put(session)

    def _transaction(self, client: socket.socket, session: socket.socket) -> None:
        """Forward both ways until the server is ready, outside of a transaction."""
        self.transactions += 1
        unanswered = 0
        while True:
            for readable in select.select([client, session], [], [])[0]:
                kind, message = next(_messages(readable))
                if readable is client and kind == b"X":
                    raise ConnectionAbortedError
                (session if readable is client else client).sendall(message)
                if readable is client:
                    unanswered += kind in (b"S", b"Q")
                elif kind == b"Z":
                    unanswered -= 1
                    if not unanswered and message.endswith(b"I"):
                        return


def _messages(readable: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """Kinds of messages and the whole of them, as they come."""
    while True:
        head = _exactly(readable, 5)
        yield head[:1], head + _exactly(readable, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(readable: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        some = readable.recv(count - len(found))
        if not some:
            raise ConnectionResetError
        found += some
    return found
