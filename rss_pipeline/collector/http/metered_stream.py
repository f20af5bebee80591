"""Connections that limit the bytes of a response on the wire, including heads and chunk framing.

h11 limits one head and one line, but not the number of interim responses (1xx) before the final one, nor
the framing around chunks of one byte. The decoded bytes of a body are counted in `body.py`.
"""

import re
import ssl
from typing import Any

import httpcore

from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.httpx_without_cli import httpx

MAX_HEAD_BYTES = 256 * 1024
"""All heads of one response together; h11 accepts 100 KB for one. The rest of it is left for framing."""


class MeteredStream(httpcore.AsyncNetworkStream):
    """A connection with a limit on the bytes of each response. A response begins after a write."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._answer_begins()

    def _answer_begins(self) -> None:
        self._left = self._most = MAX_HEAD_BYTES
        self._what = "The response's head"
        self._start: bytearray | None = bytearray()
        self._came = 0
        self._end: int | None = None

    @property
    def is_read_out(self) -> bool:
        """True if the last byte of the response has been read, and no byte after it."""
        return self._came == self._end

    def body_follows(self, length: int | None, *, most: int) -> None:
        """Allow `most` more bytes, once the head has been read; `length` is the body's, None if unknown."""
        if length is not None and self._start is not None:
            self._end = _heads_length(self._start) + length
        self._start = None
        self._left += most
        self._most = most
        self._what = "The response"

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read from the connection. Raises `FetchError` (too_large) above the limit."""
        data = await self._stream.read(max_bytes, timeout)
        self._left -= len(data)
        self._came += len(data)
        if self._start is not None:
            self._start += data
        if self._left < 0:
            raise FetchError(
                "too_large",
                f"{self._what} is more than {self._most:,} bytes; at most {self._most:,} are read.",
            )
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._answer_begins()
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return MeteredStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def meter_body(response: httpx.Response, *, most: int) -> MeteredStream | None:
    """The connection of a response with a read head, from which now at most `most` more bytes are read."""
    connection = response.extensions.get("network_stream")
    if not isinstance(connection, MeteredStream):
        return None
    length = response.headers.get("content-length", "")
    has_length = length.isdecimal() and len(length) < 20 and "transfer-encoding" not in response.headers
    bodiless = response.status_code in {204, 304}
    connection.body_follows(int(length) if has_length and not bodiless else None, most=most)
    return connection


_HEAD = re.compile(rb"(?s:.*?)\n\r?\n")


def _heads_length(start: bytearray) -> int:
    """Bytes of the final head and the interim ones (1xx) before it."""
    end = 0
    while (head := _HEAD.match(start, end)) is not None:
        interim = re.match(rb"HTTP/[0-9.]+\s+1", start[end : end + 20])
        end = head.end()
        if interim is None:
            break
    return end


class MeteredBackend(httpcore.AsyncNetworkBackend):
    """Wraps each connection of another backend in a `MeteredStream`."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return MeteredStream(await self._backend.connect_tcp(*args, **options))
