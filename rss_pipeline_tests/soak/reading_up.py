"""An installation that users read while parts of it are killed: its feeds, what is killed of it, and the
comparison at the end.

The users are those of reading_clients.py. No test is in here.
"""

import os
import random
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import dagster as dg
import psutil
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.orchestration.instance.dead_runs import born, last_sign
from rss_pipeline.storage.subscriptions.subscriptions import FRESH_ITEMS
from rss_pipeline_tests.soak.reading_clients import Client
from rss_pipeline_tests.support.dagster_pipeline import open_folder
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.up import Up, is_part, members
from rss_pipeline_tests.support.waiting import PATIENCE, soon

USERS = ("ann", "bob", "cleo")
PASSWORD = "correct horse battery staple"
FEEDS = [f"read-{n}" for n in range(8)]
VISIT_SECONDS = 0.3
_PARTS = {"run": ["run", "refresh"]}
WITH_ALL = ("services", "services")
"""The process with which all of `up` starts anew when it ends."""
KINDS = (*5 * ("reader",), *4 * ("run",), "daemon", *WITH_ALL)


class Publishers:
    """Feeds that bring an item now and then, and never more than are unread for a new subscriber."""

    def __init__(self, server: FeedServer, chance: random.Random) -> None:
        self.guids: dict[str, list[str]] = {id: ["0"] for id in FEEDS}
        self.has_news = False
        self._chance = chance
        self.urls = {
            id: server.route(f"127.0.2.{n}", "/feed", lambda _, id=id: self._answer(id))
            for n, id in enumerate(FEEDS, start=2)
        }

    def entries(self) -> list[dict[str, str]]:
        """Their entries in feeds.yaml."""
        return [{"id": id, "url": url} for id, url in self.urls.items()]

    def _answer(self, id: str) -> Answer:
        guids = self.guids[id]
        if self.has_news and len(guids) < FRESH_ITEMS and self._chance.random() < 0.5:
            guids.append(str(len(guids)))
        return Answer(body=rss(*guids), etag=f'"{len(guids)}"', delay=VISIT_SECONDS)


class Killed:
    """The installation, and what is killed of it."""

    def __init__(self, up: Up, instance: dg.DagsterInstance) -> None:
        self.up = up
        self.url = f"http://127.0.0.1:{up.reader_port}"
        self.kills: Counter[str] = Counter()
        self.last_at = 0.0
        """The instant at which the last one was killed."""
        self._instance = instance

    def answers(self) -> bool:
        """True if the reader answers."""
        with suppress(OSError), urllib.request.urlopen(f"{self.url}/api/about", timeout=PATIENCE) as answer:
            return bool(answer.status == 200)
        return False

    def kill(self, kind: str) -> bool:
        """False where there is none of this kind just now."""
        assert self.up.process.poll() is None, "up ended"
        with suppress(psutil.NoSuchProcess):
            for process in self.processes(kind):
                process.send_signal(signal.SIGKILL)
                self.note(kind)
                return True
        return False

    def note(self, kind: str) -> None:
        """One of this kind was killed just now."""
        self.kills[kind] += 1
        self.last_at = time.monotonic()

    def processes(self, kind: str) -> list[psutil.Process]:
        """The processes of this kind that run now."""
        found = []
        for process in members(self.up.process.pid):
            # One that ended meanwhile.
            with suppress(psutil.NoSuchProcess):
                is_one = any(is_part(process, part) for part in _PARTS.get(kind, [kind]))
                found += [process] if is_one else []
        return [*found, *(self._workers() if kind == "run" else ())]

    def _workers(self) -> Iterator[psutil.Process]:
        for run in self._instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            sign = last_sign(self._instance, run.run_id)
            if sign is not None and born(sign.pid) is not None:
                yield psutil.Process(sign.pid)


def allowed(port: int) -> dict[str, str]:
    """The environment in which users may subscribe to feeds of this port on loopback."""
    return {"ALLOW_NETWORKS": "127.0.0.0/8", "ALLOW_PORTS": str(port)}


@contextmanager
def users_of(up: Up, publishers: Publishers) -> Iterator[tuple[Killed, list[Client]]]:
    """Three users at work, and news for them. All feeds have been visited."""
    with ExitStack() as stack:
        killed = Killed(up, stack.enter_context(open_folder(up.home / "dagster")))
        soon(killed.answers)
        clients = []
        for seed, name in enumerate(USERS):
            # In this process: one of its own takes a second to start, and this is no test of the command.
            command = ["user", "add", name, "--password-stdin"]
            done = CliRunner().invoke(main, command, input=PASSWORD, env=up.environment)
            assert done.exit_code == 0, done.output
            clients.append(Client(killed.url, name, PASSWORD, publishers.urls, seed))
            stack.callback(clients[-1].close)
        publishers.has_news = True
        for client in clients:
            client.start()
        yield killed, clients


def users_go_on(clients: Sequence[Client], *, actions: int = 5) -> None:
    """Wait until each user has done so much more."""
    begun = [client.done for client in clients]

    def have_done() -> bool:
        for client in clients:
            client.check()
        return all(client.done > n + actions for client, n in zip(clients, begun, strict=True))

    soon(have_done)


def nothing_is_lost(killed: Killed, clients: list[Client], publishers: Publishers) -> None:
    """Let the users stop, wait for their requests, and compare what is there with what they know."""
    for client in clients:
        client.stop()
    queued = {id for client in clients for id in client.queued}

    def are_done() -> bool:
        for client in clients:
            client.look_at_tasks()
        return not any(client.tasks for client in clients)

    soon(are_done, seconds=120)
    waited = time.monotonic() - killed.last_at
    open_ones = killed.up.rows("SELECT id, state FROM refresh_requests WHERE state <> 'done'")
    assert open_ones == [], "nobody waits for these"
    known = {id for (id,) in killed.up.rows("SELECT id FROM refresh_requests")}
    assert queued - known == set(), "lost"
    publishers.has_news = False
    last = killed.up.command("poll", "--all", "--json")
    if b'"crashed"' in last.stdout:
        # A feed that was killed three times while it was visited is left alone for once.
        last = killed.up.command("poll", "--all", "--json")
    assert last.returncode == 0, last.stdout.decode() + last.stderr.decode()
    stored = sorted(killed.up.rows("SELECT feed_id, guid FROM items WHERE feed_id LIKE 'read-%'"))
    assert stored == sorted((id, guid) for id, guids in publishers.guids.items() for guid in guids)
    for client in clients:
        client.look_at_everything(nothing_comes=True)
        client.look_at_sessions()
        rows = killed.up.rows(
            f"SELECT count(*) FROM sessions JOIN users ON users.id = user_id WHERE name = '{client.name}'"
        )
        assert rows[0][0] <= client.logins, "a session that nobody began"
    ended = sorted(seconds for client in clients for seconds in client.ended)
    print(  # noqa: T201 - the figures of the test, with -s
        f"killed {dict(killed.kills)}; {sum(client.done for client in clients)} actions,"
        f" {sum(client.repeated for client in clients)} requests repeated;"
        f" {len(ended)} tasks, half within {ended[len(ended) // 2]:.1f} s, the last in {ended[-1]:.1f} s,"
        f" all done {waited:.1f} s after the last kill; {len(stored)} items;"
        f" load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors"
    )
