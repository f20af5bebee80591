"""The reader on real stores, for tests: as an ASGI application on one event loop, or served by uvicorn.

No test is in here.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI

from rss_pipeline.api.app import create_app
from rss_pipeline.api.asgi import ASGIApp
from rss_pipeline.api.server import listening, server
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts import users as accounts
from rss_pipeline.reader.accounts.callers import SessionKey
from rss_pipeline.reader.accounts.tokens import sign_jwt
from rss_pipeline.reader.stores import Stores, open_stores
from rss_pipeline.settings import Settings
from rss_pipeline_tests.reader.accounts.signed_in import add_user, begin
from rss_pipeline_tests.support.databases import migrated
from rss_pipeline_tests.support.waiting import PATIENCE, soon

T = TypeVar("T")

HOST = "127.0.0.1:3001"
URL = f"http://{HOST}"
SECRET = "a secret of the tests, of thirty-two bytes and more"


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


class _OnLoop(httpx.BaseTransport):
    """Requests to an ASGI application, from tests without an event loop."""

    def __init__(self, app: ASGIApp, loop: Loop, address: str) -> None:
        self._transport = httpx.ASGITransport(app=app, client=(address, 50_000), raise_app_exceptions=False)
        self._loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._loop.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        answer = await self._transport.handle_async_request(request)
        # As it came: the client takes gzip apart itself.
        body = b"".join([chunk async for chunk in answer.stream])
        return httpx.Response(answer.status_code, headers=answer.headers, content=body)


@dataclass(frozen=True, slots=True)
class User:
    """A user with a session."""

    id: str
    key: SessionKey
    token: str
    client: httpx.Client
    """Sends the token."""


class Time:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = utc_now().replace(microsecond=0)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **span: float) -> None:
        self.now += timedelta(**span)


class Reader:
    """The application on the stores of a folder (or of these settings), its clock, and clients of it."""

    def __init__(self, stores: Stores, loop: Loop) -> None:
        self.stores = stores
        self.database = stores.database
        self.settings = stores.settings
        self.clock = Time()
        # Requests on the loop have no sender that could be looked at.
        self.app: FastAPI = create_app(stores, clock=self.clock, is_passed_on=lambda _: False)
        self.loop = loop

    @contextmanager
    def served(self) -> Iterator[httpx.Client]:
        """A client of the same application behind a real server."""
        with served(self.app) as found, httpx.Client(base_url=f"http://127.0.0.1:{found.port}") as client:
            client.headers["Host"] = HOST
            yield client

    def user(self, name: str, *, password: str | None = None) -> "User":
        """A new user with a session and a client that sends its token.

        Without a password no one can log in as this user by one, and no time goes into its hash.
        """
        if password is None:
            id = add_user(self.database, name, clock=self.clock)
        else:
            accounts.add_user(self.database, name=name, password=password, clock=self.clock)
            id = accounts.find_user(self.database, name)
        return self.signed_in(id)

    def signed_in(self, user_id: str) -> "User":
        """Another session of a user, with a token that is new by the clock of now."""
        key = begin(self.database, user_id, clock=self.clock)
        token, _ = sign_jwt(self.stores.secret, user_id=user_id, session_id=key.session_id, now=self.clock())
        return User(user_id, key, token, self.client(authorization=f"Bearer {token}"))

    def client(self, *, address: str = "127.0.0.1", **headers: str) -> httpx.Client:
        """A client at this address, no one's yet, with headers of its own (`user_agent="x"`)."""
        return httpx.Client(
            transport=_OnLoop(self.app, self.loop, address),
            base_url=URL,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    @classmethod
    @contextmanager
    def on(cls, settings: Settings) -> Iterator[Self]:
        """A reader on the stores of these settings."""
        loop = Loop()
        try:
            if not settings.pays_by_row and not settings.database_path.exists():
                migrated(settings.database_path).close()
            with open_stores(replace(settings, reader_secret=settings.reader_secret or SECRET)) as stores:
                yield cls(stores, loop)
        finally:
            loop.close()


def reader_settings(home: Path, **changes: Any) -> Settings:
    """Settings of a home in this folder, with the defaults of everything else."""
    settings = Settings.from_environ({"RSS_PIPELINE_HOME": str(home)}, cwd=home)
    return replace(settings, reader_secret=SECRET, **changes)


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs."""

    port: int
    running: uvicorn.Server

    @property
    def connections(self) -> int:
        return len(self.running.server_state.connections)


@contextmanager
def served(
    app: ASGIApp, *, port: int = 0, change: Callable[[Any], object] = lambda _: None
) -> Iterator[Served]:
    """Serve an application as `rss-pipeline reader` does, on a free port of the loopback interface, or on
    this one, which the application's settings then have to know: clients send it as Host.

    `change` may set other limits on the class of connections.
    """
    with listening("127.0.0.1", port) as listener:
        running = server(app)
        protocol = type("Connection", (running.config.http,), {})  # type: ignore[arg-type]
        change(protocol)
        running.config.http = protocol
        thread = threading.Thread(target=lambda: running.run(sockets=[listener]), daemon=True)
        thread.start()
        try:
            soon(lambda: running.started)
            yield Served(listener.getsockname()[1], running)
        finally:
            running.should_exit = running.force_exit = True
            thread.join(PATIENCE)
