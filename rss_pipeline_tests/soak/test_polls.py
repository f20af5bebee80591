"""Polls killed at random moments, again and again: the short form in CI, the long one by `make soak`.

Where test_crashes.py names the places, this one does not know them: a real poll dies by SIGKILL after a
random time, while publishers change their documents.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.prepared import program
from rss_pipeline_tests.support.server import Answer, FeedServer

FEEDS = 12
COMMAND = program("rss_pipeline_tests.pipeline.visits.faults.dying_poll")


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(2, marks=pytest.mark.slow),
        pytest.param(60, marks=[pytest.mark.soak, pytest.mark.timeout(3600)]),
    ],
)
def test_polls_killed_at_random_moments_lose_and_double_nothing(
    kills: int, tmp_path: Path, pipeline: Pipeline, server: FeedServer
) -> None:
    seed = int(os.environ.get("RSS_SOAK_SEED") or random.randrange(2**32))
    sys.stderr.write(f"RSS_SOAK_SEED={seed}\n")
    dice = random.Random(seed)
    published: dict[str, int] = {}
    for number in range(FEEDS):
        id = f"feed-{number:02}"
        published[id] = 0
        pipeline.register(server.url(f"127.0.0.{number + 2}", "/feed"), id)
    for minute in range(kills):
        for number, id in enumerate(published):
            published[id] += dice.choice((0, 1, 1, 20))
            _publish(server, number, id, published[id])
        poll = subprocess.Popen(
            [*COMMAND, str(tmp_path), "never"],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "POLL_MINUTES": str(minute)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            poll.wait(timeout=dice.uniform(0.8, 4.0))
        poll.send_signal(signal.SIGKILL)
        poll.wait()
        for id in published:
            _check_validators(pipeline, id)
        pipeline.lapse_leases()
        pipeline.clock.turn(minutes=1)
    # The first may find a feed that died twice in a row, the second time alone: a failure, not requested
    # again.
    for _ in range(2):
        pipeline.poll(all_feeds=True)
        pipeline.clock.turn(minutes=1)
    for id, count in published.items():
        assert sorted(pipeline.guids(id)) == sorted(f"{id}-{n}" for n in range(count))
        assert pipeline.feed(id)["unclosed_claims"] == 0
    images = sum(published.values())
    assert len(pipeline.tasks()) == images
    assert pipeline.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    assert pipeline.rows("SELECT token FROM leases WHERE expires_at > '2001'") == []


def _publish(server: FeedServer, number: int, id: str, count: int) -> None:
    body = rss(*(f"{id}-{n}" for n in range(count)), image=f"http://images.example/{id}")
    server.route(f"127.0.0.{number + 2}", "/feed", Answer(body=body, etag=f'"{count}"'))


def _check_validators(pipeline: Pipeline, id: str) -> None:
    """The stored ETag says how many items the document had: all of them must be there."""
    for feed in pipeline.rows("SELECT last_etag FROM feeds WHERE id = ?", id):
        if feed["last_etag"] is not None:
            assert len(pipeline.guids(id)) >= int(feed["last_etag"].strip('"')), "validators are ahead"
