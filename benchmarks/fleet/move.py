"""An installation moves to a fleet and back: `python -m benchmarks.fleet.move`, some ten minutes.

One machine collects feeds into SQLite and a folder; a user reads, stars and unsubscribes. `rss-pipeline copy`
moves it to Postgres and S3, where workers go on, and at last back into a new home. After each move all rows
and the names of all objects are compared, and all feeds are visited: with the validators that they had, each
answers 304. It exits with 1 where anything differs.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.fleet.machines import DUE, START_SECONDS
from benchmarks.fleet.publishers import Plan, Publishers, publishing
from benchmarks.fleet.run import Reader
from rss_pipeline.features.copy.service import copied_keys, open_side
from rss_pipeline.features.copy.sql import TABLES
from rss_pipeline_tests.soak.machines import Fleet, fleet
from rss_pipeline_tests.support.services.postgres import local_postgres
from rss_pipeline_tests.support.services.redis_server import local_redis
from rss_pipeline_tests.support.services.s3_server import rclone, s3_server
from rss_pipeline_tests.support.up import PROGRAM, Up, free_port, kill_session
from rss_pipeline_tests.support.waiting import soon

WORKERS = 3
_PAGE_ROWS = 5_000
_IN_TOPIC = 20
_ELSEWHERE = ("DATABASE_URL", "RSS_BROKER_URL", "RSS_SHARDS", "S3_")
_BY_VISITS = {"feeds", "hosts", "sequences", "users"}
"""Tables that change where nothing new is found: a user's states are backed up, too."""

Rows = dict[str, list[dict[str, Any]]]


class Move:
    """The stores as they were, what is compared with them, and what differed."""

    def __init__(self, machines: Fleet, publishers: Publishers, *, seconds: float) -> None:
        self.machines = machines
        self.publishers = publishers
        self.seconds = seconds
        self.differences: list[str] = []
        self._seen = 0

    @property
    def fleets(self) -> dict[str, str]:
        """The environment of the main machine."""
        return self.machines.variables("main")

    @property
    def alone(self) -> dict[str, str]:
        """That of one machine, in the same home."""
        return {name: text for name, text in self.fleets.items() if not name.startswith(_ELSEWHERE)}

    def contents(self, side: str, environ: Mapping[str, str]) -> tuple[Rows, set[str]]:
        """All rows, and the names of all objects but those of topics, which each place publishes itself."""
        with open_side(environ, side, cwd=self.machines.folder) as found:
            rows: Rows = {}
            for table, key in TABLES.items():
                rows[table] = []
                order = f"SELECT * FROM {table} ORDER BY {', '.join(key)} LIMIT {_PAGE_ROWS} OFFSET "
                while page := found.database.query(f"{order}{len(rows[table])}").rows:
                    rows[table] += page
            names = {each.key for each in copied_keys(found.objects)}
        return rows, {name for name in names if not name.startswith("topics/")}

    def copy(self, source: str, target: str, environ: Mapping[str, str]) -> None:
        """The command, and a comparison of both sides."""
        before = self.contents(source, self.fleets)
        began = time.monotonic()
        command = [PROGRAM, "copy", "--from", source, "--to", target]
        subprocess.run(command, env=dict(environ), check=True, stdout=subprocess.DEVNULL)
        after = self.contents(target, environ)
        rows, objects = sum(map(len, before[0].values())), len(before[1])
        seconds = time.monotonic() - began
        print(f"{source} to {target}: {rows} rows, {objects} objects, {seconds:.0f} s", flush=True)
        self.compare(f"{source} to {target}", before[0], after[0])
        if before[1] != after[1]:
            self.differences.append(f"{source} to {target}: {len(before[1] ^ after[1])} objects")

    def compare(self, what: str, before: Rows, after: Rows, *, but: set[str] | None = None) -> None:
        """Note the tables that differ."""
        for table in TABLES:
            if table not in (but or set()) and before[table] != after[table]:
                pairs = zip(before[table], after[table], strict=False)
                differ = [(one, other) for one, other in pairs if one != other]
                more = len(after[table]) - len(before[table])
                found = f"{len(differ)} rows differ, {more:+} rows; {differ[:1]}"
                self.differences.append(f"{what}: {table}: {found}")

    def visited(self, rows: Callable[[str], list[tuple[Any, ...]]]) -> list[int]:
        """Wait until all feeds were visited since the last call; the versions of the answers, 0 for 304."""
        feeds = self.publishers.plan.feeds
        until = time.monotonic() + self.seconds
        while True:
            asked = self.publishers.asked(self._seen)
            claimed = rows("SELECT 1 FROM feeds WHERE lease_token IS NOT NULL LIMIT 1")
            if len({each.feed for each in asked}) == feeds and not claimed:
                break
            if time.monotonic() > until:
                raise TimeoutError(f"{len({each.feed for each in asked})} of {feeds} feeds")
            time.sleep(1)
        self._seen += len(asked)
        return [each.version for each in asked]

    def expect_unchanged(self, where: str, versions: list[int]) -> None:
        print(f"{where}: {versions.count(0)} of {len(versions)} answers were 304", flush=True)
        if any(versions):
            self.differences.append(f"{where}: {len(versions) - versions.count(0)} answers were documents")


def reads(api: Reader) -> None:
    """Read, star and unsubscribe some of all."""
    dice = random.Random(1)
    items = [each["id"] for each in api.ask("/items?limit=100")["items"]]
    for state in ("is_read", "is_starred"):
        api.ask("/items/mark", {"ids": dice.sample(items, 30), state: True})
    newest = api.ask("/feeds/f000007/items?limit=1")["items"][0]
    api.ask("/feeds/f000007/mark-read", {"up_to": newest["cursor"]})


def pages(api: Reader, cursor: int | str | None = None) -> tuple[Any, list[str]]:
    """The cursor behind a page of items, and the ids of the page behind `cursor`."""
    found = api.ask("/items?limit=100" + ("" if cursor is None else f"&cursor={cursor}"))
    return found["next_cursor"], [each["id"] for each in found["items"]]


def topic_ids(text: bytes) -> set[bytes]:
    return set(re.findall(rb"<id>([^<]+)</id>", text))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--feeds", type=int, default=1_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=15.0, help="a round of visits may take so long")
    given = parser.parse_args()
    program = rclone()
    if program is None:
        sys.exit("rclone is missing: `make dev`")
    plan = Plan(feeds=given.feeds, hosts=given.hosts, response=0.0)
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="rss-move-")))
        folder.chmod(0o755)
        s3 = ends.enter_context(s3_server(program, folder)).settings()
        publishers = ends.enter_context(publishing(plan))
        publishers.register(folder / "feeds.yaml")
        with (folder / "feeds.yaml").open("a") as file:
            of = ", ".join(f"f{number:06}" for number in range(_IN_TOPIC))
            file.write(f"topics:\n  some: {{public: true, of: [{of}]}}\n")
        machines = ends.enter_context(
            fleet(
                folder,
                ends.enter_context(local_postgres()),
                ends.enter_context(local_redis()).url(),
                RSS_SHARDS="3",
                RSS_HOST_DELAY_SECONDS="0.2",
                S3_ENDPOINT_URL=s3.endpoint_url,
                S3_BUCKET=s3.bucket,
                S3_ACCESS_KEY_ID=s3.access_key_id,
                S3_SECRET_ACCESS_KEY=s3.secret_access_key,
            )
        )
        move = Move(machines, publishers, seconds=60 * given.minutes)
        walk(move)
    for sentence in move.differences:
        print(f"DIFFERS: {sentence}")
    if move.differences:
        sys.exit(1)
    print("Nothing differs.")


def walk(move: Move) -> None:
    machines, home = move.machines, move.machines.home("main")
    alone = _up(machines, home.parent, move.alone)
    move.visited(alone.rows)
    api = Reader(alone)
    api.add_user()
    reads(api)
    cursor, _ = pages(api)
    behind = pages(api, cursor)
    topic = home / "objects" / "topics" / "some.atom"
    soon(topic.exists)
    entries = topic_ids(topic.read_bytes())
    _end(alone.process)
    move.copy("embedded", "postgres", move.fleets)
    before, _ = move.contents("postgres", move.fleets)

    machines.rows(f"UPDATE feeds SET next_fetch_at = '{DUE}' RETURNING 1")
    up = machines.start_main()
    soon(up.answers, seconds=START_SECONDS)
    for number in range(WORKERS):
        name = f"worker{number}"
        machines.of_machine[name] = {"RSS_FEEDS_FILE": str(machines.folder / "none.yaml")}
        machines.start_worker(name)
    move.expect_unchanged(f"{WORKERS} workers", move.visited(machines.rows))
    after, _ = move.contents("postgres", move.fleets)
    move.compare("after visits of workers", before, after, but=_BY_VISITS)
    api = Reader(up)
    api.log_in()
    if pages(api, cursor) != behind:
        move.differences.append("other items behind the cursor")
    with open_side(move.fleets, "postgres", cwd=machines.folder) as side:
        soon(lambda: side.objects.get("topics/some.atom") is not None)
        published = side.objects.get("topics/some.atom")
    if published is None or topic_ids(published[0]) != entries:
        move.differences.append("the topic has other entries")
    move.publishers.publish()
    machines.rows(f"UPDATE feeds SET next_fetch_at = '{DUE}' RETURNING 1")
    versions = move.visited(machines.rows)
    print(f"{len(versions) - versions.count(0)} new documents were collected by the workers")
    unread = _unread(up)
    for each in (*[worker.process for worker in machines.workers.values()], up.process):
        _end(each)

    for path in (*home.glob("rss.sqlite*"), home / "objects"):
        path.rename(path.with_name(f"moved-{path.name}"))
    move.copy("postgres", "embedded", move.fleets)
    again = _up(machines, home.parent, move.alone)
    soon(again.answers, seconds=START_SECONDS)
    subprocess.run([PROGRAM, "poll", "--all"], env=move.alone, check=True, stdout=subprocess.DEVNULL)
    move.expect_unchanged("at home again", move.visited(again.rows))
    if _unread(again) != unread:
        move.differences.append("other items are unread at home again")
    print(f"{sum(unread.values())} unread items of {len(unread)} feeds")
    _end(again.process)


def _up(machines: Fleet, folder: Path, environ: Mapping[str, str]) -> Up:
    up = Up(folder, free_port(), **environ)
    machines.mains.append(up)  # Ended with the fleet, if not before.
    soon(lambda: up.process.poll() is not None or up.answers(), seconds=START_SECONDS)
    return up


def _unread(up: Up) -> dict[str, int]:
    api = Reader(up)
    api.log_in()
    return {each["id"]: each["unread"] for each in api.ask("/feeds")["feeds"]}


def _end(process: "subprocess.Popen[bytes]") -> None:
    """As a person does."""
    process.terminate()
    try:
        process.wait(120)
    finally:
        kill_session(process)


if __name__ == "__main__":
    main()
