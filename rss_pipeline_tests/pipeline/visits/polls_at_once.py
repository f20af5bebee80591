"""Feeds on many hosts that redirect to each other, polls by several runs at once, and the server's log.

A run has a session and a connection of its own, as a process on another machine has; only the database is
common.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.pipeline import NOON, Clock, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

_TICK = 0.01
_LOOK_SECONDS = 0.1


class QuickClock(Clock):
    """A clock on which a minute passes in a second: a visit that was put off comes soon."""

    def __init__(self, began: float | None = None) -> None:
        super().__init__()
        self.began = time.time() if began is None else began
        """Clocks of several processes with the same are the same."""

    def __call__(self) -> datetime:
        return NOON + timedelta(minutes=time.time() - self.began)


def register(
    pipeline: Pipeline, server: FeedServer, *, hosts: Sequence[str], feeds: int, gone: bool = False
) -> None:
    """So many feeds on each host, due once. Every third leads to the next host, and every fifth to the first:
    one that many lead to. `gone` documents need no parser, and are not requested again for a day, either."""
    for n, host in enumerate(hosts):
        for i in range(feeds):
            number = n * feeds + i
            there = hosts[(n + 1) % len(hosts)] if number % 3 == 0 else hosts[0] if number % 5 == 0 else host
            body = b"" if gone else rss(f"item-{number}")
            answer = Answer(status=410 if gone else 200, body=body, delay=_TICK)
            url = server.route(there, f"/document-{number}", answer)
            if there != host:
                url = server.route(host, f"/{number}", Answer(status=302, headers={"Location": url}))
            pipeline.register(url, f"feed-{number}", interval="1d")
    pipeline.sync()


def poll_until_visited(pipeline: Pipeline, shard: Callable[[], Shard | None], *, seconds: float) -> None:
    """Poll the shard that it is each time until every feed was visited, whoever visited it."""
    until = time.monotonic() + seconds
    while left := unvisited(pipeline):
        assert time.monotonic() < until, f"{left} feeds were not visited in time"
        if not pipeline.run(Due(now=pipeline.clock(), shard=shard())):
            time.sleep(_LOOK_SECONDS)


def unvisited(pipeline: Pipeline) -> int:
    [row] = pipeline.rows("SELECT count(*) AS n FROM feeds WHERE last_visited_at IS NULL")
    return int(row["n"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The requests at the server."""

    hosts: int
    requests: int
    most_at_once: int
    """Connections to one host."""
    shortest: float
    """Seconds between two requests to one host."""
    documents_twice: list[str]


def judge(server: FeedServer) -> Judgement:
    hosts = sorted({request.host for request in server.requests})
    gaps = [
        later.arrived - earlier.arrived for host in hosts for earlier, later in pairwise(server.asked(host))
    ]
    documents = [request.target for request in server.requests if request.target.startswith("/document-")]
    return Judgement(
        hosts=len(hosts),
        requests=len(server.requests),
        most_at_once=max(server.most_open[host] for host in hosts),
        shortest=min(gaps),
        documents_twice=sorted({each for each in documents if documents.count(each) > 1}),
    )
