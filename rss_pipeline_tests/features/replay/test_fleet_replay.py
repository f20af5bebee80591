"""A replay of all feeds by the workers of a fleet, started by one command at the main machine."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from rss_pipeline.features.replay.service import ReplayPart, parts
from rss_pipeline_tests.support.fleet import Machines, fleet
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.services.redis_server import RedisServer
from rss_pipeline_tests.support.up import PROGRAM
from rss_pipeline_tests.support.waiting import PATIENCE, soon

BROKER = 2
FEEDS = 20
ITEMS = "SELECT id, feed_id, guid, title, pub_date, created_at FROM items ORDER BY id"


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_all_feeds_are_replayed_by_all_workers_each_feed_by_one_run(
    tmp_path: Path, running_postgres: Postgres, running_redis: RedisServer, server: FeedServer
) -> None:
    lines = ["feeds:"]
    for n in range(FEEDS):
        url = server.route("127.0.0.2", f"/feed-{n}", Answer(body=rss(f"{n}-a", f"{n}-b")))
        lines += [f"  - url: {url}", f"    id: feed-{n}", "    allow_private: [127.0.0.0/8]"]
    (tmp_path / "feeds.yaml").write_text("\n".join(lines), "utf-8")
    pace = {"RSS_HOST_DELAY_SECONDS": "0"}
    with fleet(tmp_path, running_postgres, running_redis, BROKER, **pace) as machines:
        for name in ("one", "two"):
            machines.worker(name)
        soon(lambda: machines.rows("SELECT count(*) FROM items") == [(2 * FEEDS,)])
        for run in machines.runs("poll_feeds"):
            machines.until(run.id, "SUCCESS")
        stored = machines.rows(ITEMS)
        machines.rows("DELETE FROM items RETURNING id")
        server.forget()

        said = json.loads(_command(machines, "replay", "--all", "--queue", "--json"))
        assert said["runs"] == len(parts(1))
        assert "has not ended" in _command(machines, "replay", "--all", "--queue", code=1)

        soon(lambda: _ended(machines, said["backfill"]) == said["runs"])
        runs = machines.runs("replay_all")
        assert {run.status for run in runs} == {"SUCCESS"}
        assert Counter(run.tags["dagster/partition"] for run in runs) == Counter(map(str, parts(1)))
        assert {run.tags["dagster/backfill"] for run in runs} == {said["backfill"]}
        assert {run.tags["rss_pipeline/worker"] for run in runs} == {"one", "two"}
        assert machines.rows(ITEMS) == stored
        restored = machines.rows(
            "SELECT partition, run_id FROM dagster.event_logs"
            " WHERE dagster_event_type = 'ASSET_OBSERVATION' AND asset_key = '[\"feed_items\"]'"
        )
        assert Counter(feed for feed, _ in restored) == Counter(f"feed-{n}" for n in range(FEEDS))
        by_run = {run.id: ReplayPart.read(run.tags["dagster/partition"]) for run in runs}
        assert all(by_run[run].has(feed) for feed, run in restored)
        assert server.requests == [], "a replay requests nothing"


def _ended(machines: Machines, backfill: str) -> int:
    runs = [run for run in machines.runs("replay_all") if run.tags["dagster/backfill"] == backfill]
    return sum(run.status in ("SUCCESS", "FAILURE", "CANCELED") for run in runs)


def _command(machines: Machines, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [PROGRAM, *arguments],
        env=machines.main.environment,
        cwd=machines.main.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr
