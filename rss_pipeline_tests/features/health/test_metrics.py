"""Metrics: what they say of feeds, failures, items and images, and how often they read the database."""

from datetime import timedelta
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.features.health.cli import JobRuns
from rss_pipeline.features.health.metrics import FEEDS_SECONDS, ROWS_SECONDS_PAID, Metrics
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.reports.figures import FEED_STATES, OPEN_IMAGES
from rss_pipeline_tests.support.pipeline import NOON, Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

JOBS = {"poll_feeds": JobRuns(last_success=1_000.5), "clean": JobRuns(last_failure=2_000.0)}


def samples(text: bytes) -> dict[str, float]:
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text.decode()):
        assert family.documentation, family.name
        assert family.type == "gauge", family.name
        for sample in family.samples:
            label = "".join(f"{{{value}}}" for value in sample.labels.values())
            found[sample.name + label] = sample.value
    return found


def metrics(pipeline: Pipeline, *, backups: bool = False, **parts: Any) -> Metrics:
    return Metrics(
        parts.pop("database", pipeline.database),
        pipeline.objects if backups else None,
        pipeline.settings,
        clock=pipeline.clock,
        jobs=lambda: JOBS,
        **parts,
    )


def test_each_feed_is_in_one_state_and_failures_are_counted_by_kind(
    place: Pipeline, server: FeedServer
) -> None:
    place.register(
        server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", image="http://x.example"))), "fine"
    )
    place.register(server.route("127.0.0.3", "/feed", Answer(status=404)), "failing")
    place.register(server.route("127.0.0.4", "/feed", Answer(status=410)), "gone")
    place.register(server.route("127.0.0.5", "/feed", Answer(status=500)), "long")
    place.register("http://127.0.0.6/feed", "off", enabled=False)
    place.register("http://127.0.0.10/", "page", watch=False)
    place.poll()
    place.rows("UPDATE feeds SET consecutive_failures = 10 WHERE id = 'long'")
    place.register("http://127.0.0.7/feed", "new")
    place.register("http://127.0.0.8/feed", "old")
    place.register("http://127.0.0.9/feed", "left")
    place.sync()
    # Without a document it would be forgotten, and in no report.
    place.rows("UPDATE feeds SET content_hash = 'x' WHERE id IN ('old', 'left')")
    del place.feeds[-2:]
    place.write_registry()
    place.sync()
    place.rows("UPDATE feeds SET unused_since = created_at WHERE id = 'left'")
    place.clock.turn(minutes=5)
    found = samples(metrics(place, backups=True).text())
    states = {state: found[f"rss_feeds{{{state}}}"] for state in FEED_STATES}
    assert states == {
        "answering": 1,
        "failing": 1,
        "failing_long": 1,
        "gone": 1,
        "new": 1,
        "disabled": 1,
        "unwatched": 1,
        "unlisted": 1,
        "unused": 1,
    }
    kinds = {name: value for name, value in found.items() if name.startswith("rss_feeds_failing{")}
    assert kinds == {"rss_feeds_failing{http_status}": 2, "rss_feeds_failing{gone}": 1}
    assert found["rss_feeds_due"] == 1
    assert found["rss_poll_lag_seconds"] == 300
    assert (found["rss_items"], found["rss_image_tasks{pending}"]) == (2, 2)
    assert found["rss_backups"] == 1
    assert found["rss_backup_bytes"] > 100
    assert found["rss_last_document_timestamp_seconds"] == (NOON + timedelta(seconds=1)).timestamp()
    assert (found.get("rss_database_bytes", 0) > 10_000) == (not place.settings.pays_by_row)
    assert found["rss_job_last_success_timestamp_seconds{poll_feeds}"] == 1_000.5
    assert found["rss_job_last_failure_timestamp_seconds{clean}"] == 2_000
    assert "rss_job_last_success_timestamp_seconds{clean}" not in found


def test_an_empty_installation_has_zeros_and_no_instants(pipeline: Pipeline) -> None:
    found = samples(metrics(pipeline).text())
    assert {found[f"rss_feeds{{{state}}}"] for state in FEED_STATES} == {0}
    assert (found["rss_feeds_due"], found["rss_poll_lag_seconds"], found["rss_items"]) == (0, 0, 0)
    assert not any(name.startswith("rss_last_") for name in found)


def test_the_feeds_are_read_once_a_minute_and_rows_that_are_paid_for_once_an_hour(
    pipeline: Pipeline,
) -> None:
    class Counted:
        """The database, with the names of what it was read for."""

        names: list[str] = []  # noqa: RUF012 - one test, one list

        def query(self, sql: str, params: Any = (), *, name: str = "") -> Any:
            self.names.append(name)
            return pipeline.database.query(sql, params, name=name)

        def batch(self, statements: list[Statement]) -> Any:
            self.names.extend(each.name for each in statements)
            return pipeline.database.batch(statements)

        def close(self) -> None: ...

    pipeline.set(database_server=D1Backend(url="https://d1.example", token="x"))
    time = [0.0]
    figures = metrics(pipeline, database=Counted(), timer=lambda: time[0])
    for now in (0.0, FEEDS_SECONDS - 1, FEEDS_SECONDS, ROWS_SECONDS_PAID):
        time[0] = now
        figures.text()
    assert Counted.names.count("read figures of feeds") == 3
    assert Counted.names.count("count items") == 2


def test_open_images_are_counted_in_their_own_indexes(pipeline: Pipeline) -> None:
    plan = " ".join(row["detail"] for row in pipeline.rows(f"EXPLAIN QUERY PLAN {OPEN_IMAGES}"))
    assert "image_tasks_due" in plan
    assert "image_tasks_failed" in plan
    assert "image_tasks_item" not in plan


def test_a_feed_that_is_not_due_yet_is_no_lag(pipeline: Pipeline) -> None:
    pipeline.register("http://127.0.0.7/feed", "new")
    pipeline.sync()
    later = instant(pipeline.clock() + timedelta(minutes=5))
    pipeline.database.query("UPDATE feeds SET next_fetch_at = ?", [later])
    assert samples(metrics(pipeline).text())["rss_poll_lag_seconds"] == 0
