"""Faults between a poll and Cloudflare: the run fails, no feed pays for it, and the next poll completes it.

Each is made by a proxy on the way to the real Worker or the real S3 endpoint (support/services/faults.py),
at one place of a real poll. What a fault of the embedded stores does is in test_faults.py; the promises
are the same, and so are the feeds.
"""

import itertools
import logging
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from rss_pipeline.storage.backends.connect import check_schema
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.backends.s3.objects import S3Store
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.pipeline.visits.faults.test_faults import (
    FEEDS,
    assert_complete,
    assert_nothing_lost_yet,
    serve,
)
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare
from rss_pipeline_tests.support.services.faults import (
    Drip,
    Fault,
    FaultProxy,
    Half,
    Hold,
    Refuse,
    Reset,
    Where,
    number,
    s3,
    sql,
)

PATIENT = 120.0
IMPATIENT = 1.0
"""Seconds for an answer, where it is held back for ever."""


@pytest.fixture
def proxy(cloudflare: Cloudflare) -> Iterator[FaultProxy]:
    with FaultProxy(cloudflare.url) as proxy:
        yield proxy


@pytest.fixture
def feeds(away: Pipeline, server: FeedServer) -> Pipeline:
    """Three feeds that are due; the test itself looks at the stores past the proxy."""
    serve(away, server)
    return away


def through(proxy: FaultProxy, cloudflare: Cloudflare, *, seconds: float = PATIENT) -> dict[str, Any]:
    """A run's stores, by way of the proxy."""

    def open_database() -> Database:
        database = D1Database(proxy.url, cloudflare.token, answer_seconds=seconds)
        try:
            check_schema(database)
        except BaseException:
            database.close()
            raise
        return database

    objects = S3Store(
        endpoint_url=proxy.s3_endpoint,
        bucket=cloudflare.bucket,
        access_key_id=cloudflare.access_key,
        secret_access_key=cloudflare.secret_key,
        read_seconds=seconds,
    )
    return {"database": open_database, "objects": objects}


FAULTS: Mapping[str, Fault] = {
    "401": Refuse(401),
    "500": Refuse(500),
    "503": Refuse(503),
    "reset before": Reset(),
    "reset after": Reset(applied=True),
    "time-out": Hold(),
    "half": Half(),
    "half and time-out": Half(hold=True),
}
WORDS = {
    "401": r"D1_PROXY_TOKEN is not the Worker's secret; .* 401 unauthorized: Authorization must be "
    r"|check R2_ACCESS_KEY_ID and R2_SECRET_ACCESS_KEY\. .* 401 Unauthorized: Unauthorized",
    "500": r"500 internal: D1_ERROR: internal error|500 InternalError: We encountered",
    "503": r"next poll tries again\..*503 overloaded: D1_ERROR: D1 DB is overloaded"
    r"|503 ServiceUnavailable: Please reduce",
    "reset before": r"ReadError|RemoteProtocolError|ConnectionClosedError|ConnectionError|ProtocolError",
    "reset after": r"ReadError|RemoteProtocolError|ConnectionClosedError|ConnectionError|ProtocolError",
    "time-out": r"ReadTimeout",
    "half": r"RemoteProtocolError: peer closed|ConnectionClosedError|ConnectionError|ProtocolError",
    "half and time-out": r"ReadTimeout",
}
"""The sentence for a person about an answer of D1 or R2."""

PLACES: Mapping[str, Where] = {
    "schema": sql("FROM schema_migrations"),
    "registry": sql("needs_access"),
    "probe": s3("PUT", "probe/"),
    "probe's end": s3("POST"),
    "claim": sql("INSERT INTO leases"),
    "fetched": sql("UPDATE leases SET hosts"),
    "backup": s3("PUT", "backups/one"),
    "backup of big": s3("PUT", "backups/big"),
    "store": sql("INSERT INTO items", of="one"),
    "close": sql("fresh(n, unseen)", of='"id":"big"'),
    "images": sql("SET images_extracted_at"),
    "lease end": sql("DELETE FROM leases WHERE token"),
}
BEFORE_CLAIM = ("schema", "registry", "probe", "probe's end")

CASES = [
    *((fault, "store") for fault in FAULTS),
    *((fault, "backup") for fault in ("401", "503", "reset after", "time-out", "half")),
    *((fault, "probe") for fault in ("503", "reset before", "time-out")),
    *((fault, "claim") for fault in ("503", "half")),
    *((fault, "close") for fault in ("reset after", "half and time-out")),
    *(("reset after", place) for place in PLACES if place not in ("registry", "backup", "store", "close")),
    ("401", "schema"),
    ("500", "registry"),
]


IN_CI = {
    ("401", "store"),
    ("reset after", "store"),
    ("half and time-out", "close"),
    ("503", "backup"),
    ("time-out", "backup"),
    ("reset before", "probe"),
    ("503", "claim"),
    ("reset after", "claim"),
    ("reset after", "images"),
    ("500", "registry"),
    ("401", "schema"),
}
"""The short form; `make soak` runs all."""


@pytest.mark.parametrize(
    ("fault", "place"),
    [pytest.param(*case, marks=() if case in IN_CI else pytest.mark.soak) for case in CASES],
    ids=[f"{fault} at {place}" for fault, place in CASES],
)
def test_a_fault_at_any_place_fails_the_run_and_no_feed_and_the_next_poll_completes_it(
    fault: str,
    place: str,
    feeds: Pipeline,
    proxy: FaultProxy,
    cloudflare: Cloudflare,
    server: FeedServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    proxy.fault(FAULTS[fault], at=PLACES[place])
    stores = through(proxy, cloudflare, seconds=IMPATIENT if "time-out" in fault else PATIENT)
    with caplog.at_level(logging.DEBUG, logger="rss_pipeline"):
        [round_] = feeds.try_poll(**stores)
    assert len(proxy.made) == 1, "the fault was made"
    assert round_.error is not None
    assert re.search(rf"{proxy.url}\S* -> ", round_.error), round_.error
    assert re.search(WORDS[fault], round_.error, re.DOTALL), round_.error
    for secret in (cloudflare.token, cloudflare.secret_key):
        assert secret not in round_.error + caplog.text
    if place in (*BEFORE_CLAIM, "claim"):
        assert server.requests == [], "nobody is asked where nothing can be stored"
    if place in BEFORE_CLAIM:
        assert not any(feed["lease_token"] for feed in feeds.rows("SELECT lease_token FROM feeds"))
    assert_nothing_lost_yet(feeds)

    open_ = [row["id"] for row in feeds.rows("SELECT id FROM feeds WHERE content_hash IS NULL")]
    server.forget()
    feeds.lapse_leases()
    feeds.clock.turn(minutes=10)
    feeds.poll()
    asked = [id for host, id in enumerate(FEEDS, start=2) if server.asked(f"127.0.0.{host}")]
    assert sorted(asked) == sorted(open_), "what was stored is not asked for again"
    assert len(server.requests) == len(open_)
    # Images of what was closed before the fault wait for that feed's next visit.
    feeds.clock.turn(hours=3)
    feeds.poll()
    assert_complete(feeds)


SLOW = ("claim", "backup", "store", "close")


def test_slow_answers_only_take_their_time(
    feeds: Pipeline, proxy: FaultProxy, cloudflare: Cloudflare
) -> None:
    for place in SLOW:
        proxy.fault(Drip(size=200, pause=0.005), at=PLACES[place])
    feeds.poll(**through(proxy, cloudflare))
    assert len(proxy.made) == len(SLOW)
    assert_complete(feeds)


@pytest.mark.parametrize("store", ["d1", "r2"])
def test_while_a_store_is_away_for_long_no_publisher_is_requested_and_no_feed_counted(
    store: str, feeds: Pipeline, proxy: FaultProxy, cloudflare: Cloudflare, server: FeedServer
) -> None:
    feeds.poll()
    server.forget()
    feeds.clock.turn(hours=3)
    proxy.fault(Refuse(503), at=lambda call: call.store == store, times=1000)
    for _ in range(4):
        [round_] = feeds.try_poll(**through(proxy, cloudflare))
        assert round_.error is not None
        feeds.clock.turn(minutes=5)
    assert server.requests == []
    assert proxy.count(store) <= 4, "no call is tried again"
    proxy.heal()
    feeds.poll(**through(proxy, cloudflare))
    assert len(server.requests) == 3
    assert_complete(feeds)


def test_a_claim_with_an_answer_that_is_lost_three_times_condemns_no_feed(
    feeds: Pipeline, proxy: FaultProxy, cloudflare: Cloudflare, server: FeedServer
) -> None:
    """It was applied each time, and a claim that no one closes counts against its feed."""
    for place in ("claim", "claim", "claim"):
        proxy.fault(Reset(applied=True), at=PLACES[place])
        [round_] = feeds.try_poll(**through(proxy, cloudflare))
        assert round_.error is not None
        feeds.lapse_leases()
        feeds.clock.turn(minutes=10)
    feeds.poll(**through(proxy, cloudflare))
    assert_nothing_lost_yet(feeds)
    assert_complete(feeds)


KINDS: tuple[Fault, ...] = (*FAULTS.values(), Drip(size=500, pause=0.001))
PUBLISHERS = 4


class Publishers:
    """Feeds that grow at random; what they list is never more than a few polls old when it goes."""

    def __init__(self, server: FeedServer, chance: random.Random) -> None:
        self._server = server
        self._chance = chance
        self._listed: list[list[str]] = [[] for _ in range(PUBLISHERS)]
        self._made = Counter[int]()

    def publish(self) -> None:
        for feed in range(PUBLISHERS):
            for _ in range(self._chance.choice((0, 0, 0, 1, 3))):
                self._made[feed] += 1
                self._listed[feed].append(f"{feed}-{self._made[feed]:05}")
            self._listed[feed] = self._listed[feed][-60:]
            body = rss(*self._listed[feed], image="http://images.example/x")
            self._server.route(
                f"127.0.0.{feed + 2}", "/feed", Answer(body=body, etag=f'"{self._made[feed]}"')
            )


def _collected(pipeline: Pipeline) -> tuple[list[Any], list[Any]]:
    items = "SELECT id, feed_id, guid, link, title, pub_date, content_html FROM items ORDER BY id"
    return pipeline.rows(items), pipeline.rows(
        "SELECT id, item_id, original_url FROM image_tasks ORDER BY id"
    )


def _polls_with_faults(
    polls: int,
    *,
    seed: int,
    away: Pipeline,
    home: Pipeline,
    server: FeedServer,
    proxy: FaultProxy,
    cloudflare: Cloudflare,
) -> None:
    print(f"seed {seed}")  # noqa: T201 - what one needs to see it again
    chance = random.Random(seed)
    publishers = Publishers(server, chance)
    publishers.publish()
    for feed in range(PUBLISHERS):
        for pipeline in (away, home):
            pipeline.register(server.url(f"127.0.0.{feed + 2}", "/feed"), f"feed-{feed}")
    away.sync()
    failed = Counter[str]()
    for _ in range(polls):
        fault = chance.choice(KINDS)
        proxy.heal()
        proxy.fault(fault, at=number(chance.randint(1, 22)))
        rounds = away.try_poll(**through(proxy, cloudflare, seconds=IMPATIENT))
        if rounds[-1].error is not None:
            assert " -> " in rounds[-1].error
            assert cloudflare.token not in rounds[-1].error
            failed[type(fault).__name__] += 1
        for row in away.rows("SELECT * FROM feeds"):
            assert (row["consecutive_failures"], row["last_error_kind"]) == (0, None), row
        home.poll()
        away.lapse_leases()
        for pipeline in (away, home):
            pipeline.clock.turn(hours=3)
        publishers.publish()
    for _ in range(2):
        # After weeks without a fresh date a feed is due once a day, at home and away at other hours.
        for pipeline in (away, home):
            pipeline.poll(all_feeds=True)
            pipeline.clock.turn(hours=3)
    assert failed.total() > polls // 3, "most of these faults fail a poll"
    for there, here in zip(_collected(away), _collected(home), strict=True):
        ids = {row["id"] for row in there} ^ {row["id"] for row in here}
        assert not ids, f"on one side only: {[row for row in (*there, *here) if row['id'] in ids]}"
        assert there == here
    assert away.rows("SELECT id FROM items WHERE images_extracted_at IS NULL") == []
    for feed in range(PUBLISHERS):
        id = f"feed-{feed}"
        bodies = [got[0] for key in away.backups(id) if (got := away.objects.get(key)) is not None]
        assert all(one != other for one, other in itertools.pairwise(bodies)), "a backup stands twice"
        assert sum(report["items_new"] for report in away.reports(id)) == len(away.items(id))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Pipeline]:
    """The undisturbed one, embedded."""
    folder = tmp_path / "home"
    folder.mkdir()
    pipeline = Pipeline(folder)
    yield pipeline
    pipeline.close()


@pytest.mark.soak
def test_polls_with_a_random_fault_each_end_in_the_items_of_an_undisturbed_run(
    away: Pipeline,
    home: Pipeline,
    server: FeedServer,
    proxy: FaultProxy,
    cloudflare: Cloudflare,
) -> None:
    _polls_with_faults(15, seed=1, away=away, home=home, server=server, proxy=proxy, cloudflare=cloudflare)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_500_polls_with_a_random_fault_each_end_in_the_items_of_an_undisturbed_run(
    away: Pipeline, home: Pipeline, server: FeedServer, proxy: FaultProxy, cloudflare: Cloudflare
) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    _polls_with_faults(
        500, seed=seed, away=away, home=home, server=server, proxy=proxy, cloudflare=cloudflare
    )
