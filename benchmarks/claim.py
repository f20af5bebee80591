"""How long a claim takes: 500 feeds out of 100,000, where 500 are due and where all are.

The claim is storage's own, on a SQLite file as a poll has it; the run around it is measured in run.py.
`python -m benchmarks.claim [--json]`
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.feeds import claims, leases, registered
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.schema import migrate

REGISTERED = 100_000
CLAIMED = 500
_REPEATS = 5
_BIG_HOSTS = 50
_FEEDS_OF_A_BIG_HOST = 400
_CROWD = 6_000
"""Feeds of one host that come first: more than the claim looks at before it ranks all that are due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTime:
    """Milliseconds of `claim` for one state of the table; `goal` is None where none was set."""

    name: str
    median: float
    low: float
    high: float
    goal: float | None

    @property
    def is_met(self) -> bool:
        return self.goal is None or self.median <= self.goal


def measure_claims() -> Iterator[ClaimTime]:
    """Build the table once and measure its three states."""
    with tempfile.TemporaryDirectory(prefix="rss-claim-") as folder:
        database = SqliteDatabase(Path(folder) / "rss.sqlite")
        try:
            now = datetime.now(UTC)
            migrate(database)
            registered.apply(database, registered.RegistryChanges(added=tuple(_specs())), now=now)
            database.query("UPDATE feeds SET next_fetch_at = ?", [instant(now + timedelta(hours=2))])
            spread = "strftime('%Y-%m-%dT%H:%M:%SZ', ?, '-' || (rowid * 7919 % 7200) || ' seconds')"
            database.query(f"UPDATE feeds SET next_fetch_at = {spread} WHERE rowid % 200 = 7", [instant(now)])
            yield _measure(database, f"{CLAIMED} due", now, goal=50)
            database.query(f"UPDATE feeds SET next_fetch_at = {spread}", [instant(now)])
            yield _measure(database, "all due", now, goal=250)
            database.query(
                "UPDATE feeds SET host = 'crowd.example', next_fetch_at = ?"
                " WHERE rowid IN (SELECT rowid FROM feeds ORDER BY next_fetch_at LIMIT ?)",
                [instant(now - timedelta(hours=3)), _CROWD],
            )
            yield _measure(database, f"all due, {_CROWD:,} of one host first", now, goal=None)
        finally:
            database.close()


def _specs() -> Iterator[FeedSpec]:
    """A fifth of the feeds share fifty hosts; the others have one each."""
    for number in range(REGISTERED):
        big = number % 5 == 0 and number < 5 * _BIG_HOSTS * _FEEDS_OF_A_BIG_HOST
        host = f"big-{number // 5 % _BIG_HOSTS}.example" if big else f"site-{number}.example"
        yield FeedSpec(url=f"https://{host}/{number}/feed.xml", id=f"feed-{number:06d}", host=host)


def _measure(database: SqliteDatabase, name: str, now: datetime, *, goal: float | None) -> ClaimTime:
    times = [_timed(lambda: _claim(database, now), database) for _ in range(_REPEATS)]
    return ClaimTime(name=name, median=statistics.median(times), low=min(times), high=max(times), goal=goal)


def _claim(database: SqliteDatabase, now: datetime) -> claims.Claim:
    return claims.claim(database, Due(now=now), run_id="bench", lease_seconds=180, limit=CLAIMED)


def _timed(claim: Callable[[], claims.Claim], database: SqliteDatabase) -> float:
    started = time.perf_counter()
    claimed = claim()
    milliseconds = (time.perf_counter() - started) * 1_000
    assert len(claimed.feeds) == CLAIMED, f"{len(claimed.feeds)} claimed instead of {CLAIMED}"
    leases.end(database, claimed.token, forgive=True)
    return milliseconds


def claim_lines(times: list[ClaimTime]) -> list[str]:
    """What was measured, a line each, for a person."""
    lines = [f"Claiming {CLAIMED} of {REGISTERED:,} registered feeds, median of {_REPEATS} (ms):"]
    for each in times:
        goal = "" if each.goal is None else f"   goal {each.goal:g}: {'met' if each.is_met else 'MISSED'}"
        lines.append(f"  {each.name:<36} {each.median:7.1f}   {each.low:.1f} to {each.high:.1f}{goal}")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time claims on a table of 100,000 feeds.")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    arguments = parser.parse_args()
    times = list(measure_claims())
    print(json.dumps([asdict(each) for each in times]) if arguments.json else "\n".join(claim_lines(times)))


if __name__ == "__main__":
    main()
