"""What an answer costs on the wire: every byte is counted, of heads and of chunks' framing too.

No HTTP here: h11 bounds one head and one line, but not how many interim answers (1xx) come before the final
one, nor how much framing stands around a chunk of one byte. The body's own bytes are counted in `body.py`.
"""

import re
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore
import httpx

from rss_pipeline.collector.http.errors import FetchError

MAX_HEAD_BYTES = 256 * 1024
"""Of all heads of one answer together; h11 takes 100 KB for one. What is left of it is the framing's."""


class MeteredStream(httpcore.AsyncNetworkStream):
    """A connection that is read so far and no further. An answer begins where a request was written."""

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._answer_begins()

    def _answer_begins(self) -> None:
        self._left = self._most = MAX_HEAD_BYTES
        self._what = "The head of the answer"
        self._start: bytearray | None = bytearray()
        self._came = 0
        self._end: int | None = None

    @property
    def is_read_out(self) -> bool:
        """The answer has come to its last byte, and nothing has come behind it."""
        return self._came == self._end

    def body_follows(self, length: int | None, *, most: int) -> None:
        """The head has come, and says how long the body is, or does not: `most` bytes more may be read."""
        if length is not None and self._start is not None:
            self._end = _heads_length(self._start) + length
        self._start = None
        self._left += most
        self._most = most
        self._what = "The answer"

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Raises `FetchError` (too_large) where more has come than may."""
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
    """The connection that an answer whose head has come is read from; `most` bytes more of it may be read."""
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
    """Of the final head and the interim ones (1xx) before it."""
    end = 0
    while (head := _HEAD.match(start, end)) is not None:
        interim = re.match(rb"HTTP/[0-9.]+\s+1", start[end : end + 20])
        end = head.end()
        if interim is None:
            break
    return end


class MeteredBackend(httpcore.AsyncNetworkBackend):
    """Makes every connection of another backend a metered one."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return MeteredStream(
            await self._backend.connect_tcp(
                host, port, timeout=timeout, local_address=local_address, socket_options=socket_options
            )
        )
