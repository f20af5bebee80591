"""The reader beside FreshRSS in one run: `python -m benchmarks.reader.peers --freshrss FOLDER`.

FOLDER is a clone of https://github.com/FreshRSS/FreshRSS; nothing is written into it. It needs `php` 8.1 with
the extensions of `EXTENSIONS` (Debian: php-cli php-sqlite3 php-mbstring php-xml php-curl php-gmp php-zip).
Both get the same: one user, 100 feeds of 100 items of 4.8 KB, of which half are unread. Then both answer the
same requests of the Google Reader API in turns, so that a busy machine slows both. FreshRSS has SQLite and
PHP's own server with OPcache, ours is `rss-pipeline reader`. A ratio is ours to theirs, of medians; the tenth
percentiles (p10) say more on a busy machine.
"""

import argparse
import json
import os
import platform
import re
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from benchmarks.processes import environment, rss_pipeline
from benchmarks.run import Verdict
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.pipeline.accounts.app_passwords import create_for
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import migrate

FEEDS, ITEMS, READ = 100, 100, 50
"""Feeds, items of each, and how many of them, the oldest, are read."""
EXTENSIONS = ("ctype", "curl", "dom", "gmp", "json", "mbstring", "pdo_sqlite", "xml", "zip")
FIRST = 1_770_000_000_000_000
"""The number of the first item; the others follow a thousand apart, feeds in turns."""

_USER, _PASSWORD = "ann", "a password of the benchmark"
_USER_ID = f"{1:032x}"
_PARAGRAPH = (
    "<p>A sentence with <b>some</b> <a href='https://example.org/page'>links</a> &amp; marks, as people write"
    " it in their pages. It has another one behind it, which has no picture and is a little longer.</p>"
)
_PARAGRAPHS = 23
_AT = "2026-02-18T08:30:00Z"
_CALLS = "/reader/api/0/"
_READING_LIST = "user/-/state/com.google/reading-list"
_READ = "user/-/state/com.google/read"
_START_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    number: int
    feed: int
    title: str
    html: str
    is_read: bool


def items() -> Iterator[Item]:
    """All items, the oldest first."""
    for number in range(FEEDS * ITEMS):
        nth, feed = divmod(number, FEEDS)
        yield Item(
            number=FIRST + number * 1000,
            feed=feed,
            title=f"Item {number}",
            html=f"<h1>{number}</h1>" + _PARAGRAPH * _PARAGRAPHS,
            is_read=nth < READ,
        )


@dataclass(slots=True, kw_only=True)
class Peer:
    """A server of the Google Reader API with the session of its user."""

    name: str
    port: int
    prefix: str
    feed_ids: Sequence[str]
    headers: tuple[str, ...] = ()
    token: str = ""
    _socket: socket.socket | None = None

    def log_in(self, password: str) -> None:
        """Begin the session of all further requests."""
        lines = self.send("POST", "/accounts/ClientLogin", Email=_USER, Passwd=password)[1].decode()
        auth = next(line[5:] for line in lines.splitlines() if line.startswith("Auth="))
        self.headers = (f"Authorization: GoogleLogin auth={auth}",)
        self.token = self.send("GET", f"{_CALLS}token")[1].decode().strip()

    def send(self, method: str, path: str, **fields: object) -> tuple[float, bytes]:
        """Seconds and body of the answer. PHP's server ends each connection, and a new one counts."""
        text = urlencode(fields, doseq=True)
        target, body = (f"{path}?{text}", b"") if method == "GET" else (path, text.encode())
        lines = [f"{method} {self.prefix}{target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *self.headers]
        if method == "POST":
            lines += ["Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(body)}"]
        request = "\r\n".join([*lines, "", ""]).encode() + body
        begun = time.perf_counter()
        head, read = self._answer(request)
        took = time.perf_counter() - begun
        if b" 200 " not in head.partition(b"\r\n")[0]:
            raise SystemExit(f"{self.name}: {method} {path}: {head!r} {read[:300]!r}")
        return took, read

    def _answer(self, request: bytes) -> tuple[bytes, bytes]:
        """Head and body; the least that a client can do, since its time counts for both."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=60)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.sendall(request)
        found, head = b"", b""
        while not head:
            found += self._received()
            head, _, _ = found.partition(b"\r\n\r\n") if b"\r\n\r\n" in found else (b"", b"", b"")
        body = bytearray(found[len(head) + 4 :])
        length = re.search(rb"\r\ncontent-length: ([0-9]+)", head, re.IGNORECASE)
        while length is None or len(body) < int(length[1]):
            piece = self._received()
            if not piece:
                break
            body += piece
        if length is None or b"\r\nconnection: close" in head.lower():
            self._socket.close()
            self._socket = None
        return head, bytes(body)

    def _received(self) -> bytes:
        assert self._socket is not None
        return self._socket.recv(1 << 20)

    def call(self, name: str, **fields: object) -> tuple[float, bytes]:
        return self.send("GET", _CALLS + name, output="json", **fields)

    def edit(self, name: str, **fields: object) -> tuple[float, bytes]:
        return self.send("POST", _CALLS + name, T=self.token, **fields)


Ask = Callable[[Peer, int], tuple[float, int]]
"""The request of one round: its seconds, and how many feeds, ids or items its answer has."""


def _feed_list(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("subscription/list")
    return took, len(json.loads(read)["subscriptions"])


def _unread_count(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("unread-count")
    return took, int(json.loads(read)["max"])


def _unread_ids(peer: Peer, _: int) -> tuple[float, int]:
    took, read = peer.call("stream/items/ids", s=_READING_LIST, xt=_READ, n=1_000)
    return took, len(json.loads(read)["itemRefs"])


def _contents_of(peer: Peer, first: int) -> tuple[float, int]:
    numbers = [FIRST + (first + n) * 1000 for n in range(100)]
    took, read = peer.edit("stream/items/contents", i=numbers)
    return took, len(json.loads(read)["items"])


def _contents(peer: Peer, _: int) -> tuple[float, int]:
    return _contents_of(peer, 0)


def _new_contents(peer: Peer, round: int) -> tuple[float, int]:
    # Each round has items of its own, and none of `_contents`.
    return _contents_of(peer, 100 * (1 + round))


def _mark_item(peer: Peer, round: int) -> tuple[float, int]:
    took, read = peer.edit("edit-tag", i=FIRST + (FEEDS * ITEMS - 1 - round) * 1000, a=_READ)
    return took, len(read.strip())


def _mark_feed(peer: Peer, round: int) -> tuple[float, int]:
    took, read = peer.edit("mark-all-as-read", s=f"feed/{peer.feed_ids[round % FEEDS]}")
    return took, len(read.strip())


COMPARED: tuple[tuple[str, Ask, int, float], ...] = (
    ("list of 100 feeds", _feed_list, 100, 0.35),
    ("unread counts of 100 feeds", _unread_count, FEEDS * (ITEMS - READ), 0.25),
    ("ids of 1,000 unread items", _unread_ids, 1_000, 0.5),
    ("contents of 100 items", _contents, 100, 0.5),
    ("contents of 100 items that nobody has read", _new_contents, 100, float("inf")),
    ("an item marked read", _mark_item, 2, 1.0),
    ("a feed marked read", _mark_feed, 2, 1.0),
)
"""Name, request, what its answer must count, and the most that ours may take of FreshRSS's time. What our
server makes of an item when it is read for the first time, FreshRSS makes when it collects it: no goal."""


def _php() -> str:
    php = shutil.which("php")
    if php is None:
        raise SystemExit(
            "There is no `php` on this machine, so FreshRSS cannot be run: install PHP 8.1 or newer."
        )
    loaded = subprocess.run([php, "-m"], capture_output=True, text=True, check=True).stdout.lower().split()
    missing = [name for name in EXTENSIONS if name not in loaded]
    if missing:
        raise SystemExit(f"PHP lacks extensions that FreshRSS needs: {', '.join(missing)}.")
    return php


def _checked(folder: Path) -> Path:
    if not (folder / "p" / "api" / "greader.php").is_file():
        raise SystemExit(
            f"{folder} is no FreshRSS: clone https://github.com/FreshRSS/FreshRSS and name its folder."
        )
    return folder.resolve()


@contextmanager
def _freshrss(source: Path, folder: Path, port: int) -> Iterator[Peer]:
    php, data = _php(), folder / "freshrss"
    data.mkdir()
    env = environment(DATA_PATH=str(data))

    def cli(script: str, *options: str) -> None:
        command = [php, str(source / "cli" / script), *options]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"FreshRSS: {script} ended with {done.returncode}:\n{done.stdout}{done.stderr}")

    cli("prepare.php")
    cli("do-install.php", "--default-user", _USER, "--auth-type", "form", "--db-type", "sqlite",
        "--api-enabled", "--base-url", f"http://127.0.0.1:{port}")  # fmt: skip
    cli("create-user.php", "--user", _USER, "--password", _PASSWORD, "--api-password", _PASSWORD)
    _fill_freshrss(data / "users" / _USER / "db.sqlite")
    options = ["-d", "opcache.enable=1", "-d", "display_errors=stderr"]
    command = [php, *options, "-S", f"127.0.0.1:{port}", "-t", str(source / "p")]
    with (folder / "freshrss.log").open("wb") as log, _ended(command, env, folder, log.fileno()):
        peer = Peer(
            name="FreshRSS",
            port=port,
            prefix="/api/greader.php",
            feed_ids=[str(n + 1) for n in range(FEEDS)],
        )
        _until_it_listens(port)
        peer.log_in(_PASSWORD)
        yield peer


def _fill_freshrss(path: Path) -> None:
    """As FreshRSS stores what it has collected: HTML that is sanitized, and counts beside each feed."""
    with closing(sqlite3.connect(path)) as database, database:
        # What a new user begins with.
        database.execute("DELETE FROM feed")
        database.execute("DELETE FROM category WHERE id > 1")
        database.executemany(
            "INSERT INTO category (id, name) VALUES (?, ?)", [(n + 2, f"Folder {n}") for n in range(10)]
        )
        database.executemany(
            """INSERT INTO feed (id, url, category, name, website, lastUpdate, cache_nbEntries,
              cache_nbUnreads) VALUES (?, ?, ?, ?, ?, ?, ?, ?)""",
            [
                (n + 1, _url(n), n % 10 + 2, f"Feed {n}", _url(n), FIRST // 10**6, ITEMS, ITEMS - READ)
                for n in range(FEEDS)
            ],
        )
        database.executemany(
            """INSERT INTO entry (id, guid, title, author, content, link, date, lastSeen, hash, is_read,
              is_favorite, id_feed, tags) VALUES (?, ?, ?, '', ?, ?, ?, ?, '', ?, 0, ?, '')""",
            [
                (one.number, str(one.number), one.title, one.html, _url(one.feed) + str(one.number),
                 one.number // 10**6, one.number // 10**6, int(one.is_read), one.feed + 1)
                for one in items()
            ],
        )  # fmt: skip


@contextmanager
def _ours(folder: Path, port: int) -> Iterator[Peer]:
    ours = {
        "RSS_PIPELINE_HOME": str(folder / "home"),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "RSS_READER_PORT": str(port),
    }
    (folder / "home").mkdir()
    (folder / "feeds.yaml").write_text("feeds: []\n", "utf-8")
    settings = Settings.from_environ(ours, cwd=folder)
    with closing(connect(settings)) as database:
        migrate(database)
        _fill_ours(database)
        password = create_for(database, _USER_ID, "phone", now=utc_now()).secret
        command, env = [rss_pipeline(), "reader"], environment(**ours)
        with (folder / "reader.log").open("wb") as log, _ended(command, env, folder, log.fileno()):
            feed_ids = [_id(n) for n in range(FEEDS)]
            peer = Peer(name="ours", port=port, prefix="/greader", feed_ids=feed_ids)
            _until_it_listens(port)
            peer.log_in(password)
            yield peer


def _fill_ours(database: Database) -> None:
    read_up_to = FIRST + (READ * FEEDS - 1) * 1000
    database.query(
        "INSERT INTO users (id, name, password_hash, created_at) VALUES (?, ?, 'x', ?)",
        [_USER_ID, _USER, _AT],
    )
    for n in range(FEEDS):
        database.query(
            """INSERT INTO feeds (id, url, link, title, host, next_fetch_at, created_at, listed)
            VALUES (?, ?, ?, ?, ?, '2100-01-01T00:00:00Z', ?, 0)""",
            [_id(n), _url(n), _url(n), f"Feed {n}", f"{_id(n)}.example", _AT],
        )
        database.query(
            """INSERT INTO subscriptions (user_id, feed_id, read_up_to, folder, added_at)
            VALUES (?, ?, ?, ?, ?)""",
            [_USER_ID, _id(n), read_up_to, f"Folder {n % 10}", _AT],
        )
    rows = [
        {"id": f"{one.number:032x}", "feed": _id(one.feed), "guid": str(one.number), "title": one.title,
         "link": _url(one.feed) + str(one.number), "html": one.html, "arrived": one.number}
        for one in items()
    ]  # fmt: skip
    for start in range(0, len(rows), 200):
        database.query(
            """INSERT INTO items (id, feed_id, guid, link, title, pub_date, content_html, created_at,
              guid_source, pub_date_source, arrived)
            SELECT value ->> 'id', value ->> 'feed', value ->> 'guid', value ->> 'link', value ->> 'title', ?,
              value ->> 'html', ?, 'guid', 'feed', value ->> 'arrived' FROM json_each(?)""",
            [_AT, _AT, json.dumps(rows[start : start + 200])],
        )


def _id(feed: int) -> str:
    return f"f{feed:04}"


def _url(feed: int) -> str:
    return f"https://{_id(feed)}.example/"


@contextmanager
def _ended(command: Sequence[str], env: dict[str, str], folder: Path, log: int) -> Iterator[None]:
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _until_it_listens(port: int) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise SystemExit(f"nothing listens at port {port}")


def compare(theirs: Peer, ours: Peer, *, rounds: int) -> list[Verdict]:
    """The ratios of medians, each request by both in turns."""
    verdicts = []
    print(f"{'ms':<46}{'FreshRSS p10':>14}{'p50':>8}{'ours p10':>12}{'p50':>8}{'p10 ratio':>12}")
    for name, ask, expected, goal in COMPARED:
        took: dict[str, list[float]] = {theirs.name: [], ours.name: []}
        if ask is not _new_contents:
            for peer in (theirs, ours):
                ask(peer, rounds)
        for round in range(rounds):
            for peer in (theirs, ours) if round % 2 else (ours, theirs):
                seconds, count = ask(peer, round)
                if count != expected:
                    raise SystemExit(f"{peer.name}, {name}: {count} and not {expected}")
                took[peer.name].append(1000 * seconds)
        their, our = (statistics.median(took[peer.name]) for peer in (theirs, ours))
        their_least, our_least = (
            sorted(took[peer.name])[len(took[peer.name]) // 10] for peer in (theirs, ours)
        )
        print(
            f"{name:<46}{their_least:>14.2f}{their:>8.2f}{our_least:>12.2f}{our:>8.2f}"
            f"{our_least / their_least:>12.2f}",
            flush=True,
        )
        verdicts.append(Verdict(name=name, value=our / their, goal=goal))
    return verdicts


def main() -> None:
    """Measure and print; a missed goal is only said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--freshrss", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=40, help="at most 90: each reads 100 new items")
    parser.add_argument("--port", type=int, default=3911, help="and the next one")
    arguments = parser.parse_args()
    source = _checked(arguments.freshrss)
    _php()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="rss-bench-") as name:
        folder = Path(name)
        with (
            _freshrss(source, folder, arguments.port) as theirs,
            _ours(folder, arguments.port + 1) as ours,
        ):
            verdicts = compare(theirs, ours, rounds=arguments.rounds)
    print("\nours / FreshRSS")
    for one in verdicts:
        goal = (
            "" if one.goal == float("inf") else f"   goal {one.goal:g}: {'met' if one.is_met else 'MISSED'}"
        )
        print(f"{one.name:<46}{one.value:>8.2f}{goal}")
    print(f"load {os.getloadavg()[0]:.1f} at the end", file=sys.stderr)


if __name__ == "__main__":
    main()
