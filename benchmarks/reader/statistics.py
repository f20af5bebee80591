"""What a view of the statistics costs: `python -m benchmarks.reader.statistics`.

Time with SQLite, of 1,000 feeds with 100,000 items of 3.5 KB in 90 days, all of one user; and rows read in D1
(its own `meta.rows_read`, local workerd), of 100 feeds with 20 items a day each.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.cloudflare_cost import Counting
from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.statistics.service import read_activity, zone_named
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.schema import migrate
from rss_pipeline.storage.subscriptions.chosen import ALL, Scope
from rss_pipeline_tests.reader.accounts.signed_in import add_user, begin
from rss_pipeline_tests.support.services.cloudflare import local_cloudflare

NOW = datetime(2026, 11, 22, 19, tzinfo=UTC)
DAYS, ROUNDS = 90, 7
_SERIES = "WITH RECURSIVE n(n) AS (SELECT ? UNION ALL SELECT n + 1 FROM n WHERE n + 1 < ?)"
_CHUNK = 20_000


def clock() -> datetime:
    return NOW


def fill(database: Database, *, feeds: int, items: int, paragraphs: int) -> Caller:
    """A user who subscribes to all feeds; their items came evenly, and each feed has its days of visits."""
    user = add_user(database, "ann", clock=clock)
    days = [NOW - timedelta(days=back) for back in range(28)]
    visits = json.dumps({f"{day:%d}": [f"{day:%Y-%m-%d}", 4, 19, 1] for day in days})
    database.query(
        f"""{_SERIES} INSERT INTO feeds (id, url, title, host, next_fetch_at, created_at, listed, visit_days)
        SELECT printf('f%04d', n), printf('https://f%04d.example/', n), printf('Feed %d', n),
          printf('f%04d.example', n), ?, ?, 1, ? FROM n""",
        [0, feeds, instant(NOW), instant(NOW), visits],
        name="fill",
    )
    database.query(
        "INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at) SELECT ?, id, 0, ? FROM feeds",
        [user, instant(NOW)],
        name="fill",
    )
    begins, step = int((NOW - timedelta(days=DAYS)).timestamp()), DAYS * 86_400 / items
    at = f"strftime('%Y-%m-%dT%H:%M:%SZ', {begins} + CAST(n * {step} AS INTEGER) {{}}, 'unixepoch')"
    for start in range(0, items, _CHUNK):
        database.query(
            f"""{_SERIES} INSERT INTO items (id, feed_id, guid, link, title, pub_date, content_html,
              created_at, guid_source, pub_date_source, arrived)
            SELECT printf('%032x', n), printf('f%04d', n * 7919 % {feeds}), n, 'https://example.org/' || n,
              'Item ' || n, {at.format("- 900")}, hex(zeroblob({paragraphs})), {at.format("")}, 'guid',
              'feed', {begins}000000 + CAST(n * {step} * 1000000 AS INTEGER) FROM n""",
            [start, min(start + _CHUNK, items)],
            name="fill",
        )
    return Caller(begin(database, user, clock=clock), database, clock)


def views(caller: Caller) -> dict[str, Callable[[], object]]:
    def view(span: int, scope: Scope = ALL, weeks: int = 4) -> Callable[[], object]:
        return lambda: read_activity(
            caller,
            span=span,
            zone=zone_named("Europe/Berlin"),
            now=NOW,
            weeks_of_hours=weeks,
            are_counted=isinstance(caller.database, SqliteDatabase) or scope is not ALL,
            scope=scope,
        )

    return {
        "all feeds, 30 days": view(30),
        "all feeds, 90 days": view(90),
        "all feeds, a year": view(365),
        "one feed, 90 days": view(90, Scope(feed_id="f0001"), 12),
    }


def main() -> None:
    """Fill both stores, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder, "rss.sqlite"))
        migrate(database)
        caller = fill(database, feeds=1_000, items=100_000, paragraphs=1_750)
        for name, view in views(caller).items():
            took, busy = [], []
            for _ in range(ROUNDS):
                begun, worked = time.perf_counter(), time.process_time()
                view()
                took.append(1000 * (time.perf_counter() - begun))
                busy.append(1000 * (time.process_time() - worked))
            print(
                f"SQLite, {name:20} p50 {statistics.median(took):6.0f} ms"
                f"  processor {statistics.median(busy):6.0f} ms"
            )
        database.close()
    with local_cloudflare() as cloudflare:
        d1 = Counting(cloudflare.url, cloudflare.token, answer_seconds=120)
        migrate(d1)
        caller = fill(d1, feeds=100, items=100 * 20 * DAYS, paragraphs=20)
        for name, view in views(caller).items():
            Counting.counts.clear()
            view()
            print(
                f"D1, {name:24} {Counting.counts['rows_read']:9,} rows read,"
                f" {Counting.counts['requests']} requests, {Counting.counts['milliseconds']} ms"
            )
        d1.close()


if __name__ == "__main__":
    main()
