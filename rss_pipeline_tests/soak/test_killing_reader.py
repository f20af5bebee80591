"""Whatever of `rss-pipeline up` is killed while users read: no answered write, no session and no request for
a visit is lost, and no item comes twice.

The users are those of reading_clients.py. rss_pipeline_tests/cli/up/test_up.py has the short form.
"""

import os
import random
import time
from pathlib import Path

import pytest
import yaml

from rss_pipeline_tests.soak.reading_up import (
    KINDS,
    WITH_ALL,
    Publishers,
    allowed,
    nothing_is_lost,
    users_of,
)
from rss_pipeline_tests.support.server import FeedServer
from rss_pipeline_tests.support.up import started
from rss_pipeline_tests.support.waiting import soon

KILLS = int(os.environ.get("RSS_SOAK_KILLS") or 50)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_kills_at_random_lose_nothing_of_users_who_read(tmp_path: Path, server: FeedServer) -> None:
    chance = random.Random(KILLS)
    publishers = Publishers(server, chance)
    (tmp_path / "feeds.yaml").write_text(yaml.dump({"feeds": publishers.entries()}), "utf-8")
    with started(tmp_path, **allowed(server.port)) as up:
        soon(up.answers)
        soon(lambda: up.rows("SELECT 1 FROM feeds WHERE last_success_at IS NULL") == [])
        with users_of(up, publishers) as (killed, clients):
            while killed.kills.total() < KILLS:
                time.sleep(chance.uniform(0, 4))
                kind = chance.choice(KINDS)
                if kind in WITH_ALL:
                    # Killed while it starts, it would only be absent for longer and longer.
                    soon(killed.answers)
                killed.kill(kind)
                for client in clients:
                    client.check()
            nothing_is_lost(killed, clients, publishers)
