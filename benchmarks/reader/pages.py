"""The reader's page in benchmarks: a browser's session, and a user of 3,000 feeds."""

import statistics

from benchmarks.reader.http_client import Client, Request
from benchmarks.run import Verdict
from rss_pipeline.api.auth import COOKIE
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.reader.accounts.login import LoginRefused, log_in
from rss_pipeline.reader.accounts.tokens import reader_secret
from rss_pipeline.settings import Settings
from rss_pipeline.storage.database import Database

FIRST_VIEW = "/unread"
"""`/` leads here."""
FEED_LIST = "/feeds"
MANY_FEEDS = 3_000
_AT = "2026-02-18T08:30:00Z"


def page_request(cookie: str, path: str) -> Request:
    """What a browser sends to open a page."""
    headers = (("Cookie", f"{COOKIE}={cookie}"), ("Accept-Encoding", "gzip"), ("Sec-Fetch-Mode", "navigate"))
    return Request(method="GET", path=path, headers=headers)


def browser_session(database: Database, settings: Settings, *, name: str, password: str) -> str:
    """The cookie of a new session."""
    found = log_in(
        database,
        reader_secret(settings),
        name=name,
        password=password,
        address="127.0.0.1",
        client="benchmark",
        clock=utc_now,
    )
    if isinstance(found, LoginRefused) or found.renewal is None:
        raise SystemExit(f"login of a browser: {found}")
    return found.renewal


def subscribe_to_many(database: Database, user: str) -> None:
    """Give a user 3,000 feeds, in thirty folders; those that do not exist yet are made."""
    series = f"WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {MANY_FEEDS - 1})"
    database.query(
        f"""{series} INSERT INTO feeds (id, url, link, title, host, next_fetch_at, created_at, listed)
        SELECT printf('f%04d', n), printf('https://f%04d.example/feed', n),
          printf('https://f%04d.example/', n), printf('Feed %d', n), printf('f%04d.example', n),
          '2100-01-01T00:00:00Z', ?, 1
        FROM n WHERE true ON CONFLICT (id) DO NOTHING""",
        [_AT],
        name="fill",
    )
    database.query(
        f"""{series} INSERT INTO subscriptions (user_id, feed_id, read_up_to, folder, added_at)
        SELECT ?, printf('f%04d', n), 0, 'Folder ' || n % 30, ? FROM n
        WHERE true ON CONFLICT DO NOTHING""",
        [user, _AT],
        name="fill",
    )


async def many_feeds(client: Client, cookie: str, *, times: int = 20) -> list[Verdict]:
    """The pages of a user of 3,000 feeds."""
    verdicts = []
    for name, path in (("feed list", FEED_LIST), ("first view", FIRST_VIEW)):
        took = [1000 * await page_seconds(client, page_request(cookie, path)) for _ in range(times)]
        name = f"{name} of {MANY_FEEDS:,} feeds"
        print(f"{name}: p50 {statistics.median(took):.1f} ms, slowest {max(took):.1f} ms")
        verdicts.append(Verdict(name=f"{name}, slowest (ms)", value=max(took), goal=1_000))
    return verdicts


async def page_seconds(client: Client, request: Request) -> float:
    """The time of a page."""
    answer = await client.send(request)
    if answer.status != 200:
        raise SystemExit(f"{request.path}: {answer.status} {answer.body[:500]!r}")
    return answer.seconds


def p95(took: list[float]) -> float:
    """The time within which 95 of 100 were done."""
    return sorted(took)[int(len(took) * 0.95)]
