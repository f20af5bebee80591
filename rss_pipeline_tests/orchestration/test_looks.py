"""The queries of sensors while nothing happens, and that they miss nothing for it."""

import json
from collections import Counter
from datetime import timedelta

import dagster as dg
import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.d1.database import D1Database
from rss_pipeline.storage.feeds.leases import end
from rss_pipeline_tests.orchestration.test_poll_sensor import says, tick
from rss_pipeline_tests.support.counted import counting
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.installed import of_features
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.stored import add_items, item

POLL, IMAGES, PUBLISH, REFRESH, SYNC, DEAD = (
    "poll_feeds_when_due",
    "download_images_when_waiting",
    "publish_when_changed",
    "refresh_feeds_when_requested",
    "sync_registry",
    "end_dead_runs",
)
HELD = "images.example"


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Requests to D1, and the rows that they read by D1's own count."""
    counts: Counter[str] = Counter()
    monkeypatch.setattr(D1Database, "_exchange", counting(counts))
    return counts


def minute(pipeline: DagsterPipeline) -> None:
    """The ticks of a minute."""
    for sensor in (POLL, *of_features(topics=[PUBLISH]), IMAGES):
        says(tick(pipeline, sensor))
    for _ in range(2):
        pipeline.clock.turn(seconds=30)
        for sensor in (REFRESH, SYNC, DEAD):
            says(tick(pipeline, sensor))


def wait_in(pipeline: DagsterPipeline, *, feeds: int, images: int) -> None:
    """Feeds that are due tomorrow, and images that are due for long, of a host that is on hold."""
    for number in range(feeds):
        pipeline.register(f"https://{number}.example/feed", f"feed-{number:02}")
    pipeline.sync()
    now, database = pipeline.clock(), pipeline.database
    before, tomorrow = instant(now - timedelta(hours=1)), instant(now + timedelta(hours=24))
    database.query("UPDATE feeds SET next_fetch_at = ?, last_visited_at = ?", [tomorrow, before])
    row = item("feed-00", "shown", before)
    add_items(database, [row])
    database.query(
        """INSERT INTO image_tasks
          (id, item_id, original_url, status, attempts, created_at, updated_at, host, position)
        SELECT 'task ' || value, ?, 'https://images.example/' || value, 'pending', 0, ?, ?, ?, 0
        FROM json_each(?)""",
        [row["id"], before, before, HELD, json.dumps(list(range(images)))],
    )
    database.query(
        "INSERT INTO image_holds (host, hold_until, reason) VALUES (?, ?, 'it is busy')", [HELD, tomorrow]
    )


@pytest.fixture
def idle(pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch) -> DagsterPipeline:
    """Sensors that have found nothing, as with a database that is paid by row."""
    monkeypatch.setattr(Settings, "pays_by_row", True)
    wait_in(pipeline, feeds=2, images=3)
    minute(pipeline)
    minute(pipeline)
    return pipeline


@pytest.mark.parametrize(
    ("change", "sensor"),
    [
        pytest.param(
            "UPDATE feeds SET next_fetch_at = '{now}' WHERE id = 'feed-00'", POLL, id="a feed is due"
        ),
        pytest.param("UPDATE image_holds SET hold_until = '{now}'", IMAGES, id="a hold of images ended"),
        pytest.param("UPDATE image_tasks SET host = 'x', created_at = '{now}'", IMAGES, id="a new image"),
        pytest.param(
            "UPDATE image_tasks SET host = 'x', last_error_kind = 'requested'", IMAGES, id="a wanted image"
        ),
    ],
)
def test_what_begins_to_wait_is_found_at_the_next_tick(
    idle: DagsterPipeline, change: str, sensor: str
) -> None:
    idle.clock.turn(minutes=7)
    assert says(tick(idle, sensor)) in ("No feed is due.", "No new image waits.")
    idle.clock.turn(minutes=1)
    idle.database.query(change.format(now=instant(idle.clock())))
    tick(idle, sensor)
    idle.clock.turn(minutes=4)
    assert isinstance(tick(idle, sensor), dg.RunRequest)


def test_what_a_wrong_clock_scheduled_is_found_within_ten_minutes(idle: DagsterPipeline) -> None:
    far = instant(idle.clock() + timedelta(days=3))
    idle.database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = 'feed-00'", [far])
    ticks = []
    for _ in range(15):
        idle.clock.turn(minutes=1)
        ticks.append(tick(idle, POLL))
    assert any(isinstance(each, dg.RunRequest) for each in ticks)


def test_a_feed_that_somebody_makes_due_for_long_is_found_where_rows_cost_nothing(
    pipeline: DagsterPipeline,
) -> None:
    wait_in(pipeline, feeds=1, images=0)
    minute(pipeline)
    long_ago = instant(pipeline.clock() - timedelta(hours=1))
    pipeline.database.query("UPDATE feeds SET next_fetch_at = ?", [long_ago])
    pipeline.clock.turn(minutes=1)
    assert isinstance(tick(pipeline, POLL), dg.RunRequest)


def test_a_feed_with_a_hold_that_ends_and_one_of_a_killed_run_are_found(idle: DagsterPipeline) -> None:
    now = idle.clock()
    idle.database.query("UPDATE feeds SET next_fetch_at = ?", [instant(now)])
    idle.database.query(
        "INSERT INTO hosts (host, hold_until, reason) VALUES ('0.example', ?, 'it is busy')",
        [instant(now + timedelta(minutes=30))],
    )
    claim = idle.hold("feed-01")
    idle.clock.turn(minutes=5)
    assert says(tick(idle, POLL)) == "No feed is due."
    end(idle.database, claim.token, forgive=True)
    assert isinstance(tick(idle, POLL), dg.RunRequest)
    tomorrow = instant(now + timedelta(hours=24))
    idle.database.query("UPDATE feeds SET next_fetch_at = ? WHERE id = 'feed-01'", [tomorrow])
    for _ in range(2):
        idle.clock.turn(minutes=5)
        assert says(tick(idle, POLL)) == "No feed is due."
    idle.clock.turn(minutes=16)
    assert isinstance(tick(idle, POLL), dg.RunRequest)


def test_after_another_run_of_its_job_a_sensor_decides_anew(
    idle: DagsterPipeline, server: FeedServer
) -> None:
    """The run may have left work that nothing in the database shows: a poll of all feeds, for one."""
    idle.feeds.clear()
    idle.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed", interval="1d")
    idle.sync(yes=True)
    idle.poll("feed")
    idle.clock.turn(hours=1)
    assert says(tick(idle, POLL)) == "No feed is due."
    idle.database.query("UPDATE feeds SET next_fetch_at = ?", [instant(idle.clock() - timedelta(hours=2))])
    assert says(tick(idle, POLL)) == "No feed is due.", "no look shows this"
    idle.poll("feed")
    idle.database.query("UPDATE feeds SET next_fetch_at = ?", [instant(idle.clock() - timedelta(hours=2))])
    assert isinstance(tick(idle, POLL), dg.RunRequest)


def test_the_registry_is_read_again_when_its_file_changes_and_each_hour(
    idle: DagsterPipeline,
) -> None:
    assert says(tick(idle, SYNC)) == "feeds.yaml has not changed."
    idle.register("https://2.example/feed", "feed-02")
    assert says(tick(idle, SYNC)).startswith("3 feeds in the registry: 1 new")
    assert isinstance(tick(idle, POLL), dg.RunRequest)
    assert says(tick(idle, SYNC)) == "feeds.yaml has not changed."
    idle.database.query("UPDATE feeds SET keep_days = 7")
    idle.clock.turn(minutes=61)
    assert says(tick(idle, SYNC)).startswith("3 feeds in the registry: 0 new, 3 changed")
