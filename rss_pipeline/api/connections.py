"""The server's side of one connection, with limits that uvicorn does not have.

httptools takes a head of any size; uvicorn waits as long as the other side likes for the end of a head, for
the rest of a body that was refused, and for a client that reads nothing. What a whole request may be is in
app.py.
"""

import asyncio
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rss_pipeline.api.problems import MEDIA_TYPE, ApiError

CONNECTIONS = 512
"""Open ones. From then on the longest idle one is closed for a new one."""
HEAD_BYTES = 40_000
HEAD_SECONDS = 10.0
REST_SECONDS = 5.0
"""Time for a client to send the rest of what is answered already: one that is cut off while it sends does not
see the answer."""
STALL_SECONDS = 60.0
"""Time in which a client reads nothing of its answer."""


class Connection(HttpToolsProtocol):
    """A connection, from its first byte to its end."""

    most = CONNECTIONS
    head_seconds = HEAD_SECONDS
    rest_seconds = REST_SECONDS
    stall_seconds = STALL_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = 0
        self._framing_bytes = 0
        """Bytes since the last ones of the body."""
        self._is_in_head = True
        self._is_refused = False
        self._since = self.loop.time()
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.most and not self._close_an_idle_one():
            self._refuse(ApiError("too_busy", "Too many connections at once.", retry_after=2))
        else:
            self._expect(self.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._stop_stall()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self._is_refused and not self.transport.is_closing():
            if not self._is_in_head:
                self._framing_bytes += len(data)
                super().data_received(data)
                if self._framing_bytes > HEAD_BYTES and not self._is_in_head:
                    # httptools keeps a trailer as long as it comes.
                    self._refuse(ApiError("head_too_large", f"More than {HEAD_BYTES:,} bytes are no body."))
                return
            if self._deadline is None:
                self._expect(self.head_seconds)
            # The parser keeps all of a head, so that no more than it may have is handed on.
            room = HEAD_BYTES - self._head_bytes
            piece, data = data[:room], data[room:]
            self._head_bytes += len(piece)
            super().data_received(piece)
            if self._is_in_head and self._head_bytes >= HEAD_BYTES:
                self._refuse(
                    ApiError("head_too_large", f"The head of the request has more than {HEAD_BYTES:,} bytes.")
                )

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        super().on_body(body)

    def on_message_begin(self) -> None:
        # Here as well: what follows a request in one packet is not seen by data_received.
        self._expect(self.head_seconds)
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._framing_bytes = 0
        self._expect(None)
        super().on_headers_complete()
        # What comes behind a chunked body is a trailer, which no proxy has looked at (RFC 9110 6.5.1).
        self.headers = []

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._is_in_head = True
        self._head_bytes = 0
        self._since = self.loop.time()
        self._expect(None)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.loop.time()
        if not self._is_in_head:
            self._expect(self.rest_seconds)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """The answer to what is no HTTP, or of a kind that httptools cannot read."""
        self._refuse(ApiError("malformed_request", "This is no HTTP request."))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stop_stall()
        self._stall = self.loop.call_later(self.stall_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stall()

    def timeout_keep_alive_handler(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _stop_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    def _expect(self, seconds: float | None) -> None:
        """Give the other side so many seconds from now; None for no limit here."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._is_late)

    def _is_late(self) -> None:
        self._deadline = None
        if self._is_refused or not self._is_in_head or not self._head_bytes:
            self.transport.abort()
        else:
            self._refuse(ApiError("request_too_slow", "The head of the request did not arrive in time."))

    def _is_at_work(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_an_idle_one(self) -> bool:
        """Close the connection that has been without a request at work for longest; False if all have one."""
        idle = [
            other
            for other in self.connections
            if isinstance(other, Connection) and other is not self and not other._is_at_work()
        ]
        if not idle:
            return False
        min(idle, key=lambda other: other._since).transport.abort()
        return True

    def _refuse(self, error: ApiError) -> None:
        """Answer with a problem, take nothing more, and close."""
        self._is_refused = True
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            return
        if self._is_at_work():
            # The bytes of another answer are on their way.
            self.transport.close()
            return
        body = orjson.dumps(error.problem)
        headers = {
            **error.headers,
            "content-type": MEDIA_TYPE,
            "content-length": str(len(body)),
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
            "connection": "close",
        }
        lines = [b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in headers.items()]
        self.transport.write(b"".join([STATUS_LINE[error.status], *lines, b"\r\n", body]))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._expect(self.rest_seconds)
