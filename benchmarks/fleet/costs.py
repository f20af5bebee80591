"""The costs of a simulated fleet, measured: processor time of a visit, of reading feeds.yaml, of Postgres.

The figures are of processor time, which a busy machine changes less than others; those that the simulation
uses are in rss_pipeline_tests/simulation/costs.py. It needs a Postgres on this machine.
`python -m benchmarks.fleet.costs`
"""

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import psutil

from benchmarks.documents import made_up_feeds
from benchmarks.feeds_file import write_feeds_file
from benchmarks.processes import environment, rss_pipeline
from benchmarks.server import serving
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.pipeline.registry.sync import sync_registry
from rss_pipeline.settings import Settings
from rss_pipeline.storage import schema
from rss_pipeline.storage.backends.postgres.database import PostgresDatabase
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.feeds import closings
from rss_pipeline.storage.feeds.claims import Claim
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.simulation.costs import Costs
from rss_pipeline_tests.storage.values import (
    HOUR,
    NOW,
    claim,
    ending,
    item,
    later,
    register,
    response,
    spec,
    store,
)
from rss_pipeline_tests.support.services.postgres import local_postgres

_FEW, _MANY = 100, 500
_REGISTERED = 10_000
_ROWS = 4_000


def polls() -> Iterator[tuple[str, float, float]]:
    """Seconds of the processor for a visit that is answered 304, and for one with 30 new items."""
    costs, seconds = Costs(), {}
    for feeds in (_FEW, _MANY):
        with (
            serving(partial(made_up_feeds, feeds)) as server,
            tempfile.TemporaryDirectory(prefix="rss-costs-") as folder,
        ):
            home = Path(folder)
            write_feeds_file(home / "feeds.yaml", server.feeds)
            env = environment(
                RSS_PIPELINE_HOME=str(home / "home"),
                RSS_FEEDS_FILE=str(home / "feeds.yaml"),
                RSS_HOST_DELAY_SECONDS="0",
            )
            for what in ("first", "unchanged"):
                command = [rss_pipeline(), "poll", "--json", *(["--all"] if what == "unchanged" else [])]
                before = _children()
                subprocess.run(command, cwd=home, env=env, check=True, capture_output=True)
                seconds[what, feeds] = _children() - before
    unchanged, first = (
        (seconds[what, _MANY] - seconds[what, _FEW]) / (_MANY - _FEW) for what in ("unchanged", "first")
    )
    yield "fetch_cpu", unchanged, costs.fetch_cpu
    yield "document_cpu, of 30 items that are all new", first - unchanged, costs.document_cpu


def registry() -> Iterator[tuple[str, float, float]]:
    """Seconds of the processor for a feed of feeds.yaml in a run that finds nothing changed."""
    with tempfile.TemporaryDirectory(prefix="rss-costs-") as folder:
        home = Path(folder)
        lines = (f"  - url: https://host-{n // 10}.example.org/{n}.xml\n" for n in range(_REGISTERED))
        (home / "feeds.yaml").write_text("feeds:\n" + "".join(lines))
        settings = Settings.from_environ({"RSS_PIPELINE_HOME": folder}, cwd=home)
        database = SqliteDatabase(home / "rss.sqlite")
        migrate(database)
        seconds = []
        for _ in range(2):
            began = time.process_time()
            sync_registry(database, settings, now=datetime.now(UTC))
            seconds.append((time.process_time() - began) / _REGISTERED)
            # A file that changed in the last two seconds is read again.
            os.utime(home / "feeds.yaml", (0, 0))
        database.close()
        yield "registry_feed", seconds[1], Costs().registry_feed


def postgres() -> Iterator[tuple[str, float, float]]:
    """Seconds of the server's processor for a claim, an unchanged visit and a document."""
    costs = Costs()
    with local_postgres() as server:
        server.create("costs")
        database = PostgresDatabase(server.url("costs"), where="costs")
        schema.migrate(database)
        register(database, *(spec(f"f{n:06}", host=f"h{n}.example") for n in range(_ROWS)))
        server.execute("costs", "ANALYZE")
        claimed, closed = 0.0, 0.0
        rounds, of_a_claim = 4, 500
        for number in range(rounds):
            now = NOW + number * timedelta(seconds=1)
            found: list[Claim] = []
            claimed += _server(
                lambda now=now, found=found: found.append(claim(database, limit=of_a_claim, now=now))
            )
            [lease] = found
            visits = [
                closings.UnchangedVisit(
                    feed=feed,
                    token=lease.token,
                    outcome=NotModified(response=response(etag=f'"{feed.id}"')),
                    ending=ending(feed, later(NOW + 5 * HOUR)),
                )
                for feed in lease.feeds
            ]
            closed += _server(lambda visits=visits: closings.close_unchanged(database, visits, now=NOW))
        yield "claim_lock", claimed / rounds, costs.claim_lock
        yield "close_lock", closed / rounds / of_a_claim, costs.close_lock

        def documents(first: int) -> Callable[[], None]:
            lease = claim(database, limit=200, now=NOW + timedelta(hours=first + 1))
            items = [item(str(number)) for number in range(first, first + 20)]

            def all_of_them() -> None:
                for feed in lease.feeds:
                    store(database, feed, lease.token, items)

            return all_of_them

        documents(0)()
        database.query(
            "UPDATE feeds SET next_fetch_at = ? WHERE last_body_at IS NOT NULL", ["2000-01-01T00:00:00Z"]
        )
        yield "store_lock", _server(documents(2)) / 200, costs.store_lock
        database.close()


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _server(work: Callable[[], object]) -> float:
    """Seconds that the server's processes for the database `costs` take for it."""

    def used() -> float:
        times = (
            process.info["cpu_times"]
            for process in psutil.process_iter(["cmdline", "cpu_times"])
            if " ".join(process.info["cmdline"] or []).startswith("postgres:")
            and " costs " in " ".join(process.info["cmdline"] or []) + " "
        )
        return sum(each.user + each.system for each in times)

    before = used()
    work()
    return used() - before


def main() -> None:
    print(f"{'':<44}{'measured ms':>12}{'simulated ms':>14}")
    for measure in (registry, postgres, polls):
        for name, measured, simulated in measure():
            print(f"{name:<44}{measured * 1000:>12.3f}{simulated * 1000:>14.3f}", flush=True)


if __name__ == "__main__":
    main()
