"""A client of HTTP/1.1 on loopback that costs little itself: one connection, one request at a time.

It reads only answers with a Content-Length, in whole.
"""

import asyncio
import time
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it is sent."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""

    def sent_to(self, port: int) -> bytes:
        """Its bytes."""
        lines = [f"{self.method} {self.path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.method != "GET":
            lines.append(f"Content-Length: {len(self.body)}")
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Status and body of an answer, and the seconds from the request's first byte to the answer's last."""

    status: int
    body: bytes
    seconds: float


class Client:
    """One connection."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._port = port
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> Self:
        """A connection to this port."""
        return cls(port, *await asyncio.open_connection("127.0.0.1", port))

    async def send(self, request: Request) -> Answer:
        """The answer to a request."""
        begun = time.perf_counter()
        self._writer.write(request.sent_to(self._port))
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head.split(" ", 2)[1])
        _, found, rest = head.partition("\r\ncontent-length:")
        if not found and status not in (204, 304):
            raise ValueError(f"{request.path}: an answer without Content-Length: {head}")
        body = await self._reader.readexactly(int(rest.split("\r\n", 1)[0])) if found else b""
        return Answer(status=status, body=body, seconds=time.perf_counter() - begun)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        await self._writer.wait_closed()
