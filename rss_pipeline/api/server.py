"""The reader's server: uvicorn in this process, on the address and port of the settings."""

import asyncio
import errno
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import orjson
import uvicorn
from starlette.concurrency import run_in_threadpool
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rss_pipeline.api.app import create_app
from rss_pipeline.api.asgi import ASGIApp, Message
from rss_pipeline.api.google_reader.routes import PREFIX
from rss_pipeline.api.hosts import EVERY_ADDRESS, own_url
from rss_pipeline.api.problems import MEDIA_TYPE, ApiError
from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.reader.first_user import code_of_first_user
from rss_pipeline.reader.stores import open_stores
from rss_pipeline.settings import Settings
from rss_pipeline.web.healthz import Healthz
from rss_pipeline.web.on_demand import HEAD_SECONDS, begins_with, ends_when_idle

KEEP_ALIVE_SECONDS = 75
"""Longer than a reverse proxy keeps a connection: it would send a request into one that closes just then."""
STOP_SECONDS = 10
"""Time for the requests at work when the server is stopped."""

SWITCH_SECONDS = 0.0005
"""Time after which a thread lets another run, in this process. A body is made in 0.5 ms, and then its thread
waits for one that computes: with the interpreter's 5 ms, a hundred bodies wait for half a second."""


def serve(
    settings: Settings,
    *,
    say: Callable[[str], None],
    listener: socket.socket | None = None,
    clients: Sequence[socket.socket] = (),
    idle_seconds: Callable[[], float] | None = None,
) -> None:
    """Serve until this process gets SIGINT or SIGTERM, or was idle for so long; `say` gets the lines for
    whoever started it. A `listener` is open already, and so are connections of its first `clients`.

    Raises:
        SettingsError: the port is in use, or this machine does not have the address.
        DatabaseUnavailable: the database cannot be reached, or its schema is not this code's.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    with open_stores(settings, is_starting=True) as stores:
        # Behind it: where a store cannot be used, a person reads the sentence, and no statement before it.
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s reader %(levelname)s %(message)s")
        logging.getLogger("rss_pipeline.api").setLevel(logging.INFO)
        app = create_app(stores)
        healthz = Healthz(app)
        reader = server(healthz, ended=app.state.google_reader.keep)
        begins_with(reader, clients)
        if idle_seconds is not None:
            ends_when_idle(reader, idle_seconds, unused=lambda: healthz.answered)
        reader.config.load()
        asyncio.run(_tried(reader.config.loaded_app))
        # What is there now stays: to look through it for garbage takes as long as an answer.
        gc.collect()
        gc.freeze()
        # Last: a client that is let in waits for nothing but its answer.
        with listener or listening(settings.reader_address, settings.reader_port) as door:
            say(f"The reader is at {own_url(settings)}")
            code = code_of_first_user(stores.database)
            if code is not None:
                say(f"There is no user yet. {_first_user(settings)}")
                again = "`rss-pipeline user code` prints it again"
                say(f"From elsewhere the page asks for the code {code}; {again}")
            # uvicorn raises a signal again after it has stopped.
            with suppress(KeyboardInterrupt):
                reader.run(sockets=[door])


async def _tried(app: ASGIApp) -> None:
    """Answer one request and start one thread: what is made and imported for the first of them takes longer
    than the answer to a client."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(_: Message) -> None:
        """The answer is for no client."""

    head = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET"}
    address = {"scheme": "http", "path": PREFIX, "raw_path": PREFIX.encode(), "root_path": ""}
    await app({**head, **address, "query_string": b"", "headers": [], "client": None}, receive, send)
    await run_in_threadpool(int)


class _Server(uvicorn.Server):
    ended: Callable[[], None]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Behind it, uvicorn raises the signal that it was ended by.
        await super().shutdown(sockets)
        self.ended()


def server(app: ASGIApp, *, ended: Callable[[], None] = lambda: None) -> uvicorn.Server:
    """A server that is not started, with the limits of this module; `ended` is called when it has answered
    its last client."""
    found = _Server(
        uvicorn.Config(
            app,
            http=ClientConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            # An address may hold a token: T= and Auth= of Google Reader's clients.
            access_log=False,
            server_header=False,
            # hosts.py decides which X-Forwarded-* count; uvicorn trusts everybody on this machine.
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    )
    found.ended = ended
    return found


def listening(address: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        return socket.create_server((address, port), backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            sentence = f"this machine does not have the address {address}: correct it, or remove it"
            raise SettingsError(SettingMistake(("RSS_READER_ADDRESS",), sentence)) from error
        reason = os.strerror(error.errno or 0)
        sentence = f"port {port} is in use ({reason}): stop the program that uses it, or set another port"
        raise SettingsError(SettingMistake(("RSS_READER_PORT",), sentence)) from error


def _first_user(settings: Settings) -> str:
    command = "`rss-pipeline user add NAME --subscribe`"
    if settings.reader_address != EVERY_ADDRESS and not ip_address(settings.reader_address).is_loopback:
        # It does not listen on the loopback interface.
        return f"Add one: {command}"
    return f"Open {own_url(settings)}/ in a browser on this machine, or add one: {command}"


# The server's side of one connection, with limits that uvicorn does not have.
#
# httptools takes a head of any size; uvicorn waits as long as the other side likes for the end of a head, for
# the rest of a body that was refused, and for a client that reads nothing. What a whole request may be is in
# app.py.

CONNECTIONS = 512
"""Open ones. From then on the longest idle one is closed for a new one."""
HEAD_BYTES = 40_000
REST_SECONDS = 5.0
"""Time for a client to send the rest of what is answered already: one that is cut off while it sends does not
see the answer."""
STALL_SECONDS = 60.0
"""Time in which a client reads nothing of its answer."""


class ClientConnection(HttpToolsProtocol):
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
            if isinstance(other, ClientConnection) and other is not self and not other._is_at_work()
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
