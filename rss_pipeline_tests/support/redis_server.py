"""A Redis of our own: a real server in a temporary folder, without the system's service.

It listens on a port of 127.0.0.1, and wants a password. It ends with this process, also where that is
killed, and keeps nothing.

    with local_redis() as redis:
        redis.url(3)
"""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from rss_pipeline_tests.support.up import free_port
from rss_pipeline_tests.support.waiting import soon

START_SECONDS = 30
PASSWORD = "sEcReT-bRoKeR"
DATABASES = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServer:
    """A running server."""

    port: int

    def url(self, database: int = 0) -> str:
        """Of one of its databases, each empty at first."""
        return f"redis://:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    @contextlib.contextmanager
    def client(self, database: int = 0) -> Iterator[Redis]:
        with contextlib.closing(Redis.from_url(self.url(database))) as client:
            yield client


def program() -> str | None:
    """The path of `redis-server`; None where there is none."""
    return shutil.which("redis-server")


@contextlib.contextmanager
def local_redis(port: int | None = None) -> Iterator[RedisServer]:
    """Start one, and end it.

    Raises:
        RuntimeError: there is no redis-server, or it did not start; the text says what it said.
    """
    found = program()
    if found is None:
        raise RuntimeError("no redis-server on this machine: install the package redis-server")
    folder = Path(tempfile.mkdtemp(prefix="rss-redis-"))
    try:
        yield from _running(found, folder, port or free_port())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _running(found: str, folder: Path, port: int) -> Iterator[RedisServer]:
    options = {
        "bind": "127.0.0.1",
        "port": str(port),
        "requirepass": PASSWORD,
        "dir": str(folder),
        "save": "",
        "appendonly": "no",
        "databases": str(DATABASES),
    }
    log = folder / "log"
    # Standard input stays open: should this process be killed, its end closes, and that ends the server.
    watched = '"$@" </dev/null & server=$!; read -r _; kill -KILL $server; wait $server'
    arguments = [found, *(part for name, value in options.items() for part in (f"--{name}", value))]
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["sh", "-c", watched, "sh", *arguments], stdin=subprocess.PIPE, stdout=said, stderr=said
        )
    try:
        running = RedisServer(port=port)
        _wait(running, log)
        yield running
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(START_SECONDS)


def _wait(running: RedisServer, log: Path) -> None:
    def answers() -> bool:
        try:
            with running.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    try:
        soon(answers, seconds=START_SECONDS)
    except AssertionError:
        raise RuntimeError(f"no local Redis: {log.read_text(errors='replace')[-2_000:]}") from None
