"""Connections that limit the bytes of a response on the wire, including heads and chunk framing, and that
leave malformed header lines out.

h11 limits one head and one line, but not the number of interim responses (1xx) before the final one, nor
the framing around chunks of one byte; and it would read a line with many blanks as often as there are blanks.
The decoded bytes of a body are counted in `body.py`.
"""

import re
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

import h11
import httpcore

from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import Head

# The same lines as with h11's own patterns, of 0.16, in time by their length: with those, a trailer of 60,000
# blanks and a NUL holds all requests of a round for 10 seconds.
h11._readers.header_field_re = re.compile(
    rb"\A(?P<field_name>[-!#$%&'*+.^_`|~0-9a-zA-Z]++):[ \t]*+"
    rb"(?P<field_value>(?:[^\x00\s]++(?:[ \t]++[^\x00\s]++)*+)?+)[ \t]*+"
)
h11._readers.chunk_header_re = re.compile(
    rb"\A(?P<chunk_size>[0-9A-Fa-f]{1,20})(?:(?P<chunk_ext>;.*)|[ \t]*+)\r\n"
)


class _Chunks(h11._readers.ChunkedReader):
    """h11's reader of chunks, for which the lines behind the last chunk are read and ignored: a malformed one
    is no fault of a body that is complete."""

    def __call__(self, buf: Any) -> Any:
        if not self._reading_trailer:
            return super().__call__(buf)
        return None if buf.maybe_extract_lines() is None else h11.EndOfMessage()


_body_readers = h11._readers.READERS[h11.SEND_BODY]
assert isinstance(_body_readers, dict)
_body_readers["chunked"] = _Chunks

MAX_HEAD_BYTES = 256 * 1024
"""All heads of one response together. The rest of it is left for framing."""


class MeteredStream(httpcore.AsyncNetworkStream):
    """A connection with a limit on the bytes of each response, whose heads reach h11 whole and wellformed.

    A response begins after a write.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream, *, is_tls: bool = False) -> None:
        self._stream = stream
        self._is_tls = is_tls
        self._answer_begins()

    def _answer_begins(self) -> None:
        self._left = self._most = MAX_HEAD_BYTES
        self._what = "The response's head"
        self._came = 0
        self._head: bytearray | None = bytearray()
        """The head that is being read; None after the final one, and where there is no HTTP."""
        self._searched = 0
        self._heads_bytes = 0
        self._end: int | None = None

    @property
    def is_read_out(self) -> bool:
        """True if the last byte of the response has been read, and no byte after it."""
        return self._came == self._end

    def body_follows(self, length: int | None, *, most: int) -> None:
        """Allow `most` more bytes, once the head has been read; `length` is the body's, None if unknown."""
        if length is not None:
            self._end = self._heads_bytes + length
        self._left += most
        self._most = most
        self._what = "The response"

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read from the connection; of a head, all of it. Raises `FetchError`: too_large above the limit, or
        connect for a head that does not say where the body ends."""
        while True:
            data = await self._stream.read(max_bytes, timeout)
            self._left -= len(data)
            self._came += len(data)
            if self._left < 0:
                raise FetchError(
                    "too_large",
                    f"{self._what} is more than {self._most:,} bytes; at most {self._most:,} are read.",
                )
            ready = data if self._head is None else self._of_heads(data)
            # Nothing would be the end of the connection.
            if ready or not data:
                return ready

    def _of_heads(self, data: bytes) -> bytes:
        """The heads that `data` completes, and the bytes after the final one."""
        self._head = head = self._head or bytearray()
        head += data
        ready = bytearray()
        while data and _HTTP.startswith(bytes(head[: len(_HTTP)])):
            end = _HEAD_END.search(head, self._searched)
            if end is None:
                self._searched = max(0, len(head) - 2)
                return bytes(ready)
            one = bytes(head[: end.end()])
            del head[: end.end()]
            self._heads_bytes += len(one)
            self._searched = 0
            ready += wellformed_head(one)
            if _INTERIM.match(one) is None:
                break
        self._head = None
        return bytes(ready + head)

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
        stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        return MeteredStream(stream, is_tls=True)

    def get_extra_info(self, info: str) -> Any:
        # httpcore asks at each connection, and anyio reads all that it knows of one for each answer.
        return None if info == "ssl_object" and not self._is_tls else self._stream.get_extra_info(info)


def meter_body(connection: object, status: int, head: Head, *, most: int) -> MeteredStream | None:
    """The connection of a response with a read head, from which now at most `most` more bytes are read."""
    if not isinstance(connection, MeteredStream):
        return None
    length = head.list("content-length") or ""
    has_length = length.isdecimal() and len(length) < 20 and head.list("transfer-encoding") is None
    bodiless = status in {204, 304}
    connection.body_follows(int(length) if has_length and not bodiless else None, most=most)
    return connection


_HTTP = b"HTTP/"
_HEAD_END = re.compile(rb"\n\r?\n")
_INTERIM = re.compile(rb"HTTP/[0-9.]+\s+1")
"""1xx: another head follows."""


class MeteredBackend(httpcore.AsyncNetworkBackend):
    """Wraps each connection of another backend in a `MeteredStream`."""

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend

    async def connect_tcp(self, *args: Any, **options: Any) -> httpcore.AsyncNetworkStream:
        return MeteredStream(await self._backend.connect_tcp(*args, **options))


# Browsers, curl and requests leave out a line that is no header; h11 refuses the whole response. A malformed
# line that may concern the length or the coding of the body is not left out: where it does not say what it
# seems to say, the body would be cut at the wrong place (request smuggling, RFC 9112 11.2).

_NAME = re.compile(rb"[-!#$%&'*+.^_`|~0-9A-Za-z]+")
_NOT_IN_A_VALUE = re.compile(rb"[\x00\r\v\f]")
_WELLFORMED = re.compile(rb"\A[^\n]*+\n(?:[-!#$%&'*+.^_`|~0-9A-Za-z]++:[^\x00\r\v\f\n]*+\r?\n)*+\r?\n")
"""A head with nothing to leave out, and no folded line: almost each."""
_NOT_A_LETTER = re.compile(rb"[^a-z]+")
_FRAMING = {
    b"contentlength": "Content-Length",
    b"transferencoding": "Transfer-Encoding",
    b"contentencoding": "Content-Encoding",
}
"""Names by their letters alone: `Content Length` and a name in quotes count as well."""


def wellformed_head(head: bytes) -> bytes:
    """A head, from its status line to its blank line, without the header lines that are malformed.

    Blanks before the colon are removed (RFC 9112 5.1). A folded line (RFC 9112 5.2) belongs to the line
    before it. Raises `FetchError` if a malformed line may concern the length or the coding of the body.
    """
    if _WELLFORMED.fullmatch(head) is not None:
        return head
    status, *lines, last, end = head.split(b"\n")
    kept = [status]
    for first, *folded in _fields(lines):
        name, colon, value = first.partition(b":")
        if _is_wellformed(name, colon, value, *folded):
            kept += [first, *folded]
            continue
        _refuse_framing([first, *folded])
        name = name.rstrip(b" \t")
        if _is_wellformed(name, colon, value, *folded):
            kept += [name + colon + value, *folded]
    return head if kept == [status, *lines] else b"\n".join([*kept, last, end])


def _fields(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Each header line with the folded lines after it."""
    field: list[bytes] = []
    for line in lines:
        if field and not line.startswith((b" ", b"\t")):
            yield field
            field = []
        field.append(line)
    if field:
        yield field


def _is_wellformed(name: bytes, colon: bytes, *values: bytes) -> bool:
    return (
        bool(colon)
        and _NAME.fullmatch(name) is not None
        and not any(_NOT_IN_A_VALUE.search(value.removesuffix(b"\r")) for value in values)
    )


def _refuse_framing(field: Sequence[bytes]) -> None:
    """Raise `FetchError` for a malformed line that a server or a cache may take for one about the body."""
    for line in field:
        text = line.removesuffix(b"\r")
        # Behind a control character another line may begin, for whoever takes it for a line break.
        name = text if _NOT_IN_A_VALUE.search(text) else text.partition(b":")[0]
        letters = _NOT_A_LETTER.sub(b"", name.lower())
        for framing, known in _FRAMING.items():
            if framing in letters:
                raise FetchError(
                    "connect",
                    f"The server sent a malformed header line about its body ({known}), so that nobody can "
                    "tell where the body ends or how it is coded; the publisher has to fix it.",
                )
