"""The speed of the reader's APIs, as clients see it: `make bench`, or `python -m benchmarks.reader.api`.

`rss-pipeline reader` as its own process on loopback, on a SQLite database of 1,000 users, 1,000 feeds and
100,000 items (store.py). First one client alone, then many at once, then one beside a poll of all
feeds, with the first view of the page; last the pages of a user of 3,000 feeds. CPU is that of the reader's
process. On a busy machine only the least times say something: both columns are medians of the best round.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import psutil

from benchmarks.documents import made_up_feeds
from benchmarks.processes import environment, rss_pipeline
from benchmarks.reader.http_client import Client, Request
from benchmarks.reader.pages import (
    FIRST_VIEW,
    browser_session,
    many_feeds,
    p95,
    page_request,
    page_seconds,
    subscribe_to_many,
)
from benchmarks.reader.store import FEEDS, feed_id, fill, user_id
from benchmarks.run import Verdict
from benchmarks.server import serving
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.app_passwords import create_for
from rss_pipeline.reader.accounts.users import change_password
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.subscriptions import item_states as states
from rss_pipeline.storage.subscriptions.chosen import Scope, Shown

_API = "/greader/reader/api/0/"
_UNREAD = {"s": "user/-/state/com.google/reading-list", "xt": "user/-/state/com.google/read"}
_PASSWORD = "a password of the benchmark"
_GZIP = ("Accept-Encoding", "gzip")
_FORM = ("Content-Type", "application/x-www-form-urlencoded")


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user of the reader with what its clients send."""

    id: str
    password: str
    """The app password."""
    json: tuple[str, str]
    """The header of the JSON API."""
    google: tuple[str, str]
    """The header of the Google Reader API."""
    feeds: tuple[str, ...]
    numbers: tuple[int, ...]
    """100 unread items, by the ids that Google Reader clients have."""

    def get(self, path: str) -> Request:
        """A request to the JSON API."""
        return Request(method="GET", path=f"/api/{path}", headers=(self.json, _GZIP))

    def call(self, name: str, **params: object) -> Request:
        """A request to the Google Reader API."""
        return Request(method="GET", path=f"{_API}{name}?{urlencode(params)}", headers=(self.google, _GZIP))

    @property
    def feed_list(self) -> Request:
        return self.get("feeds")

    @property
    def unread_ids(self) -> Request:
        return self.call("stream/items/ids", n=1_000, **_UNREAD)

    @property
    def unread_count(self) -> Request:
        return self.call("unread-count", output="json")

    @property
    def contents(self) -> Request:
        body = urlencode([("i", str(number)) for number in self.numbers]).encode()
        headers = (self.google, _GZIP, _FORM)
        return Request(method="POST", path=f"{_API}stream/items/contents", headers=headers, body=body)

    @property
    def page(self) -> Request:
        return self.get(f"feeds/{self.feeds[0]}/items?limit=50")

    def mark_read(self, feed: str) -> Request:
        """A feed is marked read as far as it goes."""
        body = json.dumps({"up_to": 2**52}).encode()
        headers = (self.json, ("Content-Type", "application/json"))
        return Request(method="POST", path=f"/api/feeds/{feed}/mark-read", headers=headers, body=body)

    @property
    def mix(self) -> tuple[Request, ...]:
        """What clients send while nobody writes."""
        return (self.feed_list, self.unread_ids, self.contents, self.page, self.unread_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Milliseconds of one request."""

    p50: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Alone:
    """Measures requests of one client."""

    client: Client
    process: psutil.Process
    rounds: int

    async def cost(self, requests: Sequence[Request], *, times: int = 1) -> Cost:
        """The medians of the requests, in the best round."""
        costs = []
        for _ in range(self.rounds if times > 1 else 1):
            took, spent = list[float](), list[float]()
            for request in (one for _ in range(times) for one in requests):
                before = _cpu(self.process)
                took.append(await _seconds(self.client, request))
                spent.append(_cpu(self.process) - before)
            costs.append(Cost(p50=1000 * statistics.median(took), cpu=1000 * statistics.median(spent)))
        return Cost(p50=min(one.p50 for one in costs), cpu=min(one.cpu for one in costs))


def _cpu(process: psutil.Process) -> float:
    """Seconds of all threads until now: on Linux in nanoseconds, elsewhere in hundredths of a second."""
    tasks = Path(f"/proc/{process.pid}/task")
    if not tasks.exists():
        used = process.cpu_times()
        return float(used.user + used.system)
    return sum(int(task.joinpath("schedstat").read_text().split()[0]) for task in tasks.iterdir()) / 1e9


async def _seconds(client: Client, request: Request) -> float:
    answer = await client.send(request)
    if answer.status != 200:
        raise SystemExit(f"{request.method} {request.path}: {answer.status} {answer.body[:500]!r}")
    return answer.seconds


@contextmanager
def _reader(env: dict[str, str], folder: Path) -> Iterator[psutil.Process]:
    process = subprocess.Popen(
        [rss_pipeline(), "reader"], cwd=folder, env=env, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        if "The reader is at" not in process.stdout.readline():
            raise SystemExit("the reader did not start")
        yield psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait()


async def _users(database: Database, client: Client, count: int) -> list[User]:
    found = []
    for number in range(count):
        name = user_id(number)
        change_password(database, name=name, password=_PASSWORD, revoke_apps=False)
        app = create_for(database, name, "phone", now=utc_now()).secret
        answer = await client.send(_login(name))
        if answer.status != 200:
            raise SystemExit(f"login: {answer.status} {answer.body!r}")
        token = json.loads(answer.body)["token"]
        lines = (await client.send(_client_login(name, app))).body.decode().splitlines()
        auth = next(line for line in lines if line.startswith("Auth="))[5:]
        feeds = database.query("SELECT feed_id FROM subscriptions WHERE user_id = ?", [name]).rows
        google = ("Authorization", f"GoogleLogin auth={auth}")
        user = User(
            id=name,
            password=app,
            json=("Authorization", f"Bearer {token}"),
            google=google,
            feeds=tuple(row["feed_id"] for row in feeds),
            numbers=(),
        )
        ids = json.loads((await client.send(replace(user.unread_ids, headers=(google,)))).body)
        numbers = tuple(int(each["id"]) for each in ids["itemRefs"][:100])
        found.append(replace(user, numbers=numbers))
    return found


def _login(name: str) -> Request:
    body = json.dumps({"name": name, "password": _PASSWORD}).encode()
    return Request(
        method="POST", path="/api/auth/login", headers=(("Content-Type", "application/json"),), body=body
    )


def _client_login(name: str, password: str) -> Request:
    body = urlencode({"Email": name, "Passwd": password}).encode()
    return Request(method="POST", path="/greader/accounts/ClientLogin", headers=(_FORM,), body=body)


async def _alone(alone: Alone, user: User, other: User, database: Database, *, apart: User) -> list[Verdict]:
    """`apart` logs in again and again, which ends the oldest sessions."""

    def said(name: str, cost: Cost) -> Cost:
        print(f"{name:44} p50 {cost.p50:7.2f} ms   CPU {cost.cpu:7.2f} ms", flush=True)
        return cost

    feeds = said("feed list of 100 subscriptions", await alone.cost([user.feed_list], times=100))
    ids = said("unread ids, n=1,000", await alone.cost([user.unread_ids], times=100))
    counts = said("unread-count of 100 feeds", await alone.cost([user.unread_count], times=100))
    pages = [other.get(f"feeds/{feed}/items?limit=50") for feed in other.feeds]
    uncached = said("page of 50 items, uncached", await alone.cost(pages))
    cached = said("page of 50 items, cached", await alone.cost([user.page], times=200))
    said("contents of 100 items, first time", await alone.cost([user.contents]))
    contents = said("contents of 100 items", await alone.cost([user.contents], times=60))
    said("mark-read of a feed", await alone.cost([user.mark_read(feed) for feed in user.feeds[50:]]))
    said("login", await alone.cost([_login(apart.id)], times=5))
    said("login of an app", await alone.cost([_client_login(apart.id, apart.password)], times=20))
    mark = _milliseconds_to_mark(database, other)
    print(f"{'mark-read of a feed, in the database':44} p50 {mark:7.2f} ms", flush=True)
    return [
        Verdict(name="feed list of 100 subscriptions (ms)", value=feeds.p50, goal=5),
        Verdict(name="mark-read of a feed in the database (ms)", value=mark, goal=2),
        Verdict(name="page of 50 items cached, CPU (ms)", value=cached.cpu, goal=1),
        Verdict(name="page of 50 items, CPU cached / uncached", value=cached.cpu / uncached.cpu, goal=0.4),
        Verdict(name="unread ids, n=1,000 (ms)", value=ids.p50, goal=10),
        Verdict(name="contents of 100 items (ms)", value=contents.p50, goal=5),
        Verdict(name="unread-count of 100 feeds (ms)", value=counts.p50, goal=10),
    ]


def _milliseconds_to_mark(database: Database, user: User) -> float:
    took = []
    for feed in user.feeds:
        statements = states.mark_shown(user.id, Shown(scope=Scope(feed_id=feed), up_to=2**52))
        begun = time.perf_counter()
        database.batch(statements)
        took.append(1000 * (time.perf_counter() - begun))
    return statistics.median(took)


async def _at_once(port: int, users: Sequence[User], *, times: int, when: str) -> Verdict:
    """Each client sends the next request as soon as it has an answer."""

    async def work(user: User) -> list[float]:
        client = await Client.to(port)
        took = [await _seconds(client, one) for _ in range(times) for one in user.mix]
        await client.close()
        return took

    took = sorted(one for each in await asyncio.gather(*map(work, users)) for one in each)
    p50, p99 = took[len(took) // 2], took[int(len(took) * 0.99)]
    print(f"{len(users)} clients at once, {when}: p50 {1000 * p50:.1f} ms, p99 {1000 * p99:.1f} ms")
    return Verdict(name=f"{len(users)} clients at once, {when}, p99 / p50", value=p99 / p50, goal=10)


async def _beside_poll(
    client: Client, user: User, page: Request, start: Callable[[], subprocess.Popen[str]]
) -> list[Verdict]:
    """The mix and the first view in a browser alone, then for as long as the poll works."""

    async def round() -> list[float]:
        return [await _seconds(client, one) for one in user.mix]

    before = [one for _ in range(60) for one in await round()]
    pages_before = [await page_seconds(client, page) for _ in range(60)]
    poll, during, pages = start(), list[float](), list[float]()
    while poll.poll() is None:
        during += await round()
        pages.append(await page_seconds(client, page))
    if poll.returncode != 0:
        raise SystemExit(f"the poll ended with {poll.returncode}")
    alone, beside = statistics.median(before), statistics.median(during)
    print(f"beside a poll of {FEEDS} feeds: p50 {1000 * beside:.1f} ms, alone {1000 * alone:.1f} ms")
    view = 1000 * p95(pages)
    print(f"first view of 100 feeds, p95: {view:.1f} ms, alone {1000 * p95(pages_before):.1f} ms")
    return [
        Verdict(name="p50 beside a poll of 1,000 feeds / alone", value=beside / alone, goal=2),
        Verdict(name="first view beside a poll, p95 (ms)", value=view, goal=150),
    ]


async def _measure(arguments: argparse.Namespace, folder: Path, urls: Sequence[str]) -> list[Verdict]:
    home = folder / "home"
    home.mkdir()
    lines = [
        f"  - {{url: {url}, id: {feed_id(n)}, allow_private: true, shared: true}}\n"
        for n, url in enumerate(urls)
    ]
    (folder / "feeds.yaml").write_text("feeds:\n" + "".join(lines), "utf-8")
    ours = {
        "RSS_PIPELINE_HOME": str(home),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "RSS_HOST_DELAY_SECONDS": "0",
        "RSS_READER_PORT": str(arguments.port),
    }
    env = environment(**ours)
    settings = Settings.from_environ(ours, cwd=folder)
    with closing(connect(settings)) as database:
        migrate(database)
        begun = time.perf_counter()
        fill(database, urls)
        print(f"filled in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        with _reader(env, folder) as process:
            client = await Client.to(arguments.port)
            *users, apart = await _users(database, client, arguments.clients + 1)
            await client.close()
        # All ask at once for bodies that nobody has read, in a process that nobody has asked for anything.
        with _reader(env, folder):
            verdicts = [await _at_once(arguments.port, users, times=10, when="first")]
        with _reader(env, folder) as process:
            client = await Client.to(arguments.port)
            alone = Alone(client, process, arguments.rounds)
            verdicts += await _alone(alone, users[0], users[1], database, apart=apart)
            verdicts.append(await _at_once(arguments.port, users, times=10, when="then"))

            def poll() -> subprocess.Popen[str]:
                command = [rss_pipeline(), "poll", "--all", "--json"]
                return subprocess.Popen(
                    command, cwd=folder, env=env, stdout=subprocess.DEVNULL, text=True, encoding="utf-8"
                )

            def cookie(user: User) -> str:
                return browser_session(database, settings, name=user.id, password=_PASSWORD)

            if not arguments.skip_poll:
                page = page_request(cookie(users[0]), FIRST_VIEW)
                verdicts += await _beside_poll(client, users[0], page, poll)
            subscribe_to_many(database, apart.id)
            verdicts += await many_feeds(client, cookie(apart))
    return verdicts


def _lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    for one in verdicts:
        met = "met" if one.is_met else "MISSED"
        yield f"{one.name:<48}{one.value:>8.2f}   goal {one.goal:g}: {met}"


def main() -> None:
    """Measure and print; a missed goal is only said."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--port", type=int, default=3901)
    parser.add_argument("--skip-poll", action="store_true")
    arguments = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    with (
        serving(partial(made_up_feeds, FEEDS)) as server,
        tempfile.TemporaryDirectory(prefix="rss-bench-") as folder,
    ):
        verdicts = asyncio.run(_measure(arguments, Path(folder), [feed.url for feed in server.feeds]))
    print("", *_lines(verdicts), sep="\n")


if __name__ == "__main__":
    main()
