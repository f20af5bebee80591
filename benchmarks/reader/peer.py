"""FreshRSS and `rss-pipeline reader` as servers of the Google Reader API, filled, started and ended again.

What they are filled with and what is measured is peers.py's and never_read.py's. FreshRSS is a clone of
https://github.com/FreshRSS/FreshRSS, into which nothing is written. It needs `php` 8.1 with the extensions of
`EXTENSIONS`, and has SQLite and PHP's own server with OPcache.
"""

import re
import shutil
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.processes import environment, rss_pipeline
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.app_passwords import create_for
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import migrate

EXTENSIONS = ("ctype", "curl", "dom", "gmp", "json", "mbstring", "pdo_sqlite", "xml", "zip")
USER = "ann"
USER_ID = f"{1:032x}"
CALLS = "/reader/api/0/"
_PASSWORD = "a password of the benchmark"
_START_SECONDS = 60.0


@dataclass(slots=True, kw_only=True)
class Peer:
    """A server of the Google Reader API with the session of its user."""

    name: str
    port: int
    prefix: str
    headers: tuple[str, ...] = ()
    token: str = ""
    _socket: socket.socket | None = None

    def log_in(self, password: str) -> None:
        """Begin the session of all further requests. It outlives the server's process."""
        lines = self.send("POST", "/accounts/ClientLogin", Email=USER, Passwd=password)[1].decode()
        auth = next(line[5:] for line in lines.splitlines() if line.startswith("Auth="))
        self.headers = (f"Authorization: GoogleLogin auth={auth}",)
        self.token = self.send("GET", f"{CALLS}token")[1].decode().strip()

    def send(self, method: str, path: str, **fields: object) -> tuple[float, bytes]:
        """Seconds to the answer's last byte, and its body. PHP's server ends each connection, and a new
        one counts."""
        text = urlencode(fields, doseq=True)
        target, body = (f"{path}?{text}", b"") if method == "GET" else (path, text.encode())
        lines = [f"{method} {self.prefix}{target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *self.headers]
        if method == "POST":
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        begun = time.perf_counter()
        head, received, is_chunked = self._answer(request)
        took = time.perf_counter() - begun
        read = b"".join(_chunks(received)) if is_chunked else bytes(received)
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise SystemExit(f"{self.name}: {method} {path}: {head!r} {read[:300]!r}")
        return took, read

    def call(self, name: str, **fields: object) -> tuple[float, bytes]:
        return self.send("GET", CALLS + name, output="json", **fields)

    def edit(self, name: str, **fields: object) -> tuple[float, bytes]:
        return self.send("POST", CALLS + name, T=self.token, **fields)

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _answer(self, request: bytes) -> tuple[bytes, bytearray, bool]:
        """Head and body, and True if the body is chunked; the least that a client can do, since its time
        counts for both."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        found, head = b"", b""
        while not head:
            found += self._received()
            head, _, _ = found.partition(b"\r\n\r\n") if b"\r\n\r\n" in found else (b"", b"", b"")
        lowered = head.lower()
        body = bytearray(found[len(head) + 4 :])
        length = re.search(rb"\r\ncontent-length: ([0-9]+)", lowered)
        is_chunked = b"\r\ntransfer-encoding: chunked" in lowered
        while (
            not body.endswith(b"\r\n0\r\n\r\n")
            if is_chunked
            else length is None or len(body) < int(length[1])
        ):
            piece = self._received()
            if not piece:
                break
            body += piece
        if b"\r\nconnection: close" in lowered or (length is None and not is_chunked):
            self.close()
        return head, body, is_chunked

    def _received(self) -> bytes:
        assert self._socket is not None
        return self._socket.recv(1 << 20)


def _chunks(body: bytearray) -> Iterator[bytes]:
    """The pieces of a body that is sent so (RFC 9112 7.1)."""
    at = 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        if not size:
            return
        yield bytes(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server with its data, and the session that its user has once it was started."""

    peer: Peer
    password: str
    command: Sequence[str]
    env: Mapping[str, str]
    folder: Path

    @contextmanager
    def started(self) -> Iterator[Peer]:
        """A process of its own until the end of the block, without any request; the first of all logs in."""
        with (self.folder / f"{self.peer.name}.log").open("ab") as log:
            process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.env, stdout=log.fileno(), stderr=log.fileno()
            )
            try:
                _until_it_listens(self.peer.port)
                if not self.peer.token:
                    self.peer.log_in(self.password)
                yield self.peer
            finally:
                self.peer.close()
                process.terminate()
                process.wait()


def freshrss(source: Path, folder: Path, port: int, fill: Callable[[sqlite3.Connection], None]) -> Server:
    """FreshRSS with a new user; `fill` is called for the user's database, which has no feeds."""
    executable, data = php(), folder / "freshrss"
    data.mkdir(parents=True)
    env = environment(DATA_PATH=str(data))

    def cli(script: str, *options: str) -> None:
        command = [executable, str(source / "cli" / script), *options]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"FreshRSS: {script} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    cli("prepare.php")
    cli("do-install.php", "--default-user", USER, "--auth-type", "form", "--db-type", "sqlite",
        "--api-enabled", "--base-url", f"http://127.0.0.1:{port}")  # fmt: skip
    cli("create-user.php", "--user", USER, "--password", _PASSWORD, "--api-password", _PASSWORD)
    with closing(sqlite3.connect(data / "users" / USER / "db.sqlite")) as database, database:
        # What a new user begins with.
        database.execute("DELETE FROM feed")
        database.execute("DELETE FROM category WHERE id > 1")
        fill(database)
    options = ["-d", "opcache.enable=1", "-d", "display_errors=stderr"]
    return Server(
        peer=Peer(name="FreshRSS", port=port, prefix="/api/greader.php"),
        password=_PASSWORD,
        command=[executable, *options, "-S", f"127.0.0.1:{port}", "-t", str(source / "p")],
        env=env,
        folder=folder,
    )


def ours(
    folder: Path, port: int, fill: Callable[[Database], None], settings: Mapping[str, str] | None = None
) -> Server:
    """Ours with a user; `fill` is called for the database. `settings` are further ones."""
    named = {
        "RSS_PIPELINE_HOME": str(folder / "home"),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "RSS_READER_PORT": str(port),
        **(settings or {}),
    }
    (folder / "home").mkdir(parents=True)
    (folder / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    with closing(connect(Settings.from_environ(named, cwd=folder))) as database:
        migrate(database)
        database.query(
            "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, 'x', ?)",
            [USER_ID, USER, "2026-02-18T08:30:00Z"],
        )
        fill(database)
        password = create_for(database, USER_ID, "phone", now=utc_now()).secret
    return Server(
        peer=Peer(name="ours", port=port, prefix="/greader"),
        password=password,
        command=[rss_pipeline(), "reader"],
        env=environment(**named),
        folder=folder,
    )


def php() -> str:
    """The path of `php`. Ends the program where it, or an extension, is missing."""
    found = shutil.which("php")
    if found is None:
        raise SystemExit(
            "There is no `php` on this machine, so FreshRSS cannot be run: install PHP 8.1 or newer."
        )
    loaded = subprocess.run([found, "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
    missing = [name for name in EXTENSIONS if name not in loaded]
    if missing:
        raise SystemExit(f"PHP lacks extensions that FreshRSS needs: {', '.join(missing)}.")
    return found


def checked(folder: Path) -> Path:
    """The folder of a clone of FreshRSS. Ends the program for another one."""
    if not (folder / "p" / "api" / "greader.php").is_file():
        raise SystemExit(
            f"{folder} is no FreshRSS: clone https://github.com/FreshRSS/FreshRSS and name its folder."
        )
    return folder.resolve()


def _until_it_listens(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens at port {port}")
