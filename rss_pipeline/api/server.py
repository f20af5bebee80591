"""The reader's server: uvicorn in this process, on the address and port of the settings."""

import asyncio
import errno
import gc
import logging
import os
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address

import uvicorn
from starlette.concurrency import run_in_threadpool

from rss_pipeline.api.app import create_app
from rss_pipeline.api.asgi import ASGIApp, Message
from rss_pipeline.api.connections import Connection
from rss_pipeline.api.google_reader.addresses import PREFIX
from rss_pipeline.api.hosts import EVERY_ADDRESS, own_url
from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.reader.first_user import code_of_first_user
from rss_pipeline.reader.stores import open_stores
from rss_pipeline.settings import Settings

KEEP_ALIVE_SECONDS = 75
"""Longer than a reverse proxy keeps a connection: it would send a request into one that closes just then."""
STOP_SECONDS = 10
"""Time for the requests at work when the server is stopped."""

SWITCH_SECONDS = 0.0005
"""Time after which a thread lets another run, in this process. A body is made in 0.5 ms, and then its thread
waits for one that computes: with the interpreter's 5 ms, a hundred bodies wait for half a second."""


def serve(settings: Settings, *, say: Callable[[str], None]) -> None:
    """Serve until this process gets SIGINT or SIGTERM; `say` gets the lines for whoever started it.

    Raises:
        SettingsError: the port is in use, or this machine does not have the address.
        DatabaseUnavailable: the database cannot be reached, or its schema is not this code's.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s reader %(levelname)s %(message)s")
    logging.getLogger("rss_pipeline.api").setLevel(logging.INFO)
    sys.setswitchinterval(SWITCH_SECONDS)
    with open_stores(settings, is_starting=True) as stores:
        reader = server(create_app(stores))
        reader.config.load()
        asyncio.run(_tried(reader.config.loaded_app))
        # What is there now stays: to look through it for garbage takes as long as an answer.
        gc.collect()
        gc.freeze()
        # Last: a client that is let in waits for nothing but its answer.
        with listening(settings.reader_address, settings.reader_port) as listener:
            say(f"The reader is at {own_url(settings)}")
            code = code_of_first_user(stores.database)
            if code is not None:
                say(f"There is no user yet. {_first_user(settings)}")
                again = "`rss-pipeline user code` prints it again"
                say(f"From elsewhere the page asks for the code {code}; {again}")
            # uvicorn raises a signal again after it has stopped.
            with suppress(KeyboardInterrupt):
                reader.run(sockets=[listener])


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


def server(app: ASGIApp) -> uvicorn.Server:
    """A server that is not started, with the limits of connections.py."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Connection,
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
