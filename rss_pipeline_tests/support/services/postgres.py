"""A Postgres of our own: a real cluster in a temporary folder, without the system's service.

Its programs are the system's: on PATH, or where Debian's package `postgresql` has them. It listens on a
socket in its folder and on a port of 127.0.0.1. Where we are root, it runs as another user, for Postgres
refuses root. It ends with this process, also where that is killed. What is on its disk need not outlive a
power cut, so nothing is synced.

    with local_postgres() as postgres:
        PostgresDatabase(postgres.url("some"), where="...")
"""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from rss_pipeline_tests.support.waiting import soon

START_SECONDS = 60
USER = "rss"
PASSWORD = "sEcReT-pAsSwOrD"
"""The address of connections by TCP."""

_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "150",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "20s",
    "timezone": "Asia/Tokyo",
    "logging_collector": "off",
}
"""The time zone is one that shows where a statement forgets UTC."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Postgres:
    """A running cluster."""

    folder: Path
    port: int

    def url(self, database: str) -> str:
        """By the socket, which needs no password."""
        return f"postgresql://{USER}@/{database}?host={quote(str(self.folder), safe='')}&port={self.port}"

    def tcp_url(self, database: str, *, password: str = PASSWORD, port: int | None = None) -> str:
        """By TCP on loopback."""
        return f"postgresql://{USER}:{password}@127.0.0.1:{port or self.port}/{database}"

    def execute(self, database: str, sql: str) -> None:
        """Statements of Postgres's own dialect, each in a transaction of its own."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            for statement in sql.split(";\n"):
                connection.execute(statement.encode())

    def create(self, database: str) -> None:
        """A database with nothing in it. Texts are sorted by a language's rules, as on most servers."""
        self.execute(
            "postgres",
            f"CREATE DATABASE \"{database}\" TEMPLATE template0 ENCODING 'UTF8'"
            " LOCALE_PROVIDER icu ICU_LOCALE 'en-US' LOCALE 'C.UTF-8'",
        )


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`; None where there is none."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).parent] if on_path else []
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(versions, key=lambda folder: float(folder.parent.name), reverse=True)
    return next((folder for folder in found if (folder / "postgres").exists()), None)


@contextlib.contextmanager
def local_postgres(**settings: str) -> Iterator[Postgres]:
    """Start one, and end it. `settings` are some of postgresql.conf, in place of ours.

    Raises:
        RuntimeError: there is no Postgres, or it did not start; the text says what it said.
    """
    found = programs()
    if found is None:
        raise RuntimeError("no Postgres on this machine: install the package postgresql")
    # Short: the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="rss-pg-"))
    try:
        yield from _running(found, folder, {**_SETTINGS, **settings})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _running(found: Path, folder: Path, settings: dict[str, str]) -> Iterator[Postgres]:
    user = _owner(folder)
    data, password, log = folder / "data", folder / "password", folder / "log"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    initdb = [found / "initdb", "-D", data, "-U", USER, "--pwfile", password, "--no-sync", "-E", "UTF8"]
    subprocess.run(
        [*map(str, initdb), "--locale=C", "--auth-local=trust", "--auth-host=scram-sha-256"],
        check=True,
        capture_output=True,
        user=user,
        cwd=folder,
        timeout=START_SECONDS,
    )
    port = _free_port()
    options = [f"-c{name}={value}" for name, value in settings.items()]
    postgres = [found / "postgres", "-D", data, "-k", folder, "-h", "127.0.0.1", "-p", port, *options]
    # Standard input stays open: should this process be killed, its end closes, and that ends the server.
    watched = '"$@" & server=$!; read -r _; kill -INT $server; wait $server'
    with log.open("wb") as said:
        process = subprocess.Popen(
            ["sh", "-c", watched, "sh", *map(str, postgres)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            user=user,
            cwd=folder,
        )
    try:
        running = Postgres(folder=folder, port=port)
        _wait(running, log)
        yield running
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(START_SECONDS)


def _owner(folder: Path) -> str | None:
    """The user that the server runs as, who owns `folder`; None for this one."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    user = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, user)
    return user


def _wait(running: Postgres, log: Path) -> None:
    def answers() -> bool:
        try:
            psycopg.connect(running.url("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True

    try:
        soon(answers, seconds=START_SECONDS)
    except AssertionError:
        raise RuntimeError(f"no local Postgres: {log.read_text(errors='replace')[-2_000:]}") from None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
