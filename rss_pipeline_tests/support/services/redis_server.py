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
_TLS = Path(__file__).parents[1] / "tls"
AUTHORITY = _TLS / "authority.pem"
_TLS_ADDRESS = "127.0.0.2"
"""One that the certificate has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisServer:
    """A running server."""

    port: int
    has_tls: bool = False

    def url(self, database: int = 0) -> str:
        """The URL of one of its databases, each empty at first."""
        where = f"rediss://:{PASSWORD}@{_TLS_ADDRESS}" if self.has_tls else f"redis://:{PASSWORD}@127.0.0.1"
        return f"{where}:{self.port}/{database}"

    @contextlib.contextmanager
    def client(self, database: int = 0) -> Iterator[Redis]:
        tls = {"ssl_ca_certs": str(AUTHORITY)} if self.has_tls else {}
        with contextlib.closing(Redis.from_url(self.url(database), **tls)) as client:
            yield client


def program() -> str | None:
    """The path of `redis-server`; None where there is none."""
    return shutil.which("redis-server")


@contextlib.contextmanager
def local_redis(port: int | None = None, *, tls: bool = False) -> Iterator[RedisServer]:
    """Start one, and end it. With `tls` it speaks nothing else.

    Raises:
        RuntimeError: there is no redis-server, or it did not start; the text says what it said.
    """
    found = program()
    if found is None:
        raise RuntimeError("no redis-server on this machine: install the package redis-server")
    folder = Path(tempfile.mkdtemp(prefix="rss-redis-"))
    try:
        yield from _running(found, folder, RedisServer(port=port or free_port(), has_tls=tls))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _running(found: str, folder: Path, running: RedisServer) -> Iterator[RedisServer]:
    port = str(running.port)
    tls = {
        "bind": _TLS_ADDRESS,
        "port": "0",
        "tls-port": port,
        "tls-cert-file": str(_TLS / "good.pem"),
        "tls-key-file": str(_TLS / "good.pem"),
        "tls-ca-cert-file": str(AUTHORITY),
        "tls-auth-clients": "no",
    }
    options = {
        **(tls if running.has_tls else {"bind": "127.0.0.1", "port": port}),
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
