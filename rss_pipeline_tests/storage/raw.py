"""A server on loopback that answers every request with given bytes, and remembers the requests.

For what no real Worker or bucket says on demand. Not a mock: requests go over a socket.

    with RawServer(answer(503, b"overloaded")) as server:
        D1Database(server.url, "token")
        ...
        assert len(server.requests) == 1
"""

import socketserver
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request: its first line, its headers by lower-case names, its body, its connection from 1."""

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answers = bytes | Callable[[Asked], bytes]


def answer(status: int, body: bytes, content_type: str = "application/json", **headers: str) -> bytes:
    """A whole answer; `_` in a header's name is a hyphen."""
    lines = [f"HTTP/1.1 {status} -", f"Content-Type: {content_type}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class RawServer:
    """Answers with `answers`, bytes or a function of the request; no bytes at all end the connection."""

    def __init__(self, answers: Answers) -> None:
        self.requests: list[Asked] = []
        self._answers = answers
        self._connections = 0
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                outer._connections += 1
                number = outer._connections
                while head := self.rfile.readline():
                    headers = {}
                    while line := self.rfile.readline().strip().decode("latin-1"):
                        name, _, value = line.partition(":")
                        headers[name.lower()] = value.strip()
                    body = self.rfile.read(int(headers.get("content-length", 0)))
                    asked = Asked(
                        line=head.decode("latin-1").strip(), headers=headers, body=body, connection=number
                    )
                    outer.requests.append(asked)
                    given = outer._answers if isinstance(outer._answers, bytes) else outer._answers(asked)
                    self.wfile.write(given)
                    if not given or b"Content-Length" not in given or b"Connection: close" in given:
                        return

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        # Not server_close: it waits for connections that a client keeps open.
        self._server.socket.close()
