"""A `forget` that is killed on its way is completed by the next sync of the registry."""

import signal

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from rss_pipeline.orchestration.instance.forget_feed import forget_feed
from rss_pipeline.pipeline.triggers.starts import has_pending_work
from rss_pipeline.storage.feeds import forget
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.prepared import Prepared
from rss_pipeline_tests.support.server import Answer, FeedServer

PLACES = ["rows", "rows+", "key", "key+", "feed", "feed+"]


@pytest.fixture
def left(pipeline: DagsterPipeline, server: FeedServer) -> DagsterPipeline:
    """Two feeds with items, of which one has left the registry."""
    for number, id in enumerate(("gone", "stays"), start=2):
        url = server.route(f"127.0.0.{number}", "/feed", Answer(body=rss("a", "b"), etag=f'"{id}"'))
        pipeline.register(url, id)
    super(DagsterPipeline, pipeline).poll()
    pipeline.sync()
    del pipeline.feeds[0]
    pipeline.write_registry()
    pipeline.sync()
    return pipeline


def keys(pipeline: DagsterPipeline) -> list[str]:
    return sorted(pipeline.instance.get_dynamic_partitions("feeds"))


def rows(pipeline: DagsterPipeline) -> dict[str, int]:
    """Feeds with a row, and how many items each has."""
    found = pipeline.rows("SELECT feeds.id, count(items.id) AS n FROM feeds LEFT JOIN items"
                          " ON items.feed_id = feeds.id GROUP BY feeds.id")  # fmt: skip
    return {row["id"]: int(row["n"]) for row in found}


@pytest.mark.slow
@pytest.mark.parametrize(
    "place", [p if p in ("rows+", "key+") else pytest.param(p, marks=pytest.mark.soak) for p in PLACES]
)
def test_a_forget_killed_anywhere_is_completed_by_the_next_sync(
    left: DagsterPipeline, place: str, prepared: Prepared
) -> None:
    module = "rss_pipeline_tests.orchestration.instance.dying_forget"
    assert prepared.start(module, str(left.settings.home), "gone", place).wait() == -signal.SIGKILL
    synced = left.sync()
    if place == "rows":
        assert (rows(left), keys(left)) == ({"gone": 2, "stays": 2}, ["gone", "stays"]), "it had not begun"
    else:
        assert (rows(left), keys(left)) == ({"stays": 2}, ["stays"])
        assert synced.forgotten == (() if place == "feed+" else ("gone",))
    assert left.sync().forgotten == ()


def test_a_feed_that_is_forgotten_has_neither_rows_nor_a_key(left: DagsterPipeline) -> None:
    assert forget_feed(left.database, left.instance, "gone") == {"image_tasks": 0, "items": 2}
    assert (rows(left), keys(left)) == ({"stays": 2}, ["stays"])


def test_a_poll_with_nothing_due_completes_a_forget_too(left: DagsterPipeline) -> None:
    left.database.query("UPDATE feeds SET reported_count = change_count")
    assert not has_pending_work(left.database, left.sync(), now=left.clock())
    forget.begin_forget(left.database, "gone")
    synced = super(DagsterPipeline, left).sync()
    assert has_pending_work(left.database, synced, now=left.clock())


def test_a_feed_forgotten_half_way_that_is_registered_again_begins_anew(
    left: DagsterPipeline, server: FeedServer
) -> None:
    """Also under another id: its URL is free."""
    forget.begin_forget(left.database, "gone")
    left.register(server.url("127.0.0.2", "/feed"), "gone")
    server.requests.clear()
    super(DagsterPipeline, left).poll("gone")
    assert rows(left) == {"gone": 2, "stays": 2}
    assert "if-none-match" not in server.requests[0].headers
    left.feeds.pop()
    left.write_registry()
    left.sync()
    forget.begin_forget(left.database, "gone")
    left.register(server.url("127.0.0.2", "/feed"), "new-id")
    left.sync()
    assert (sorted(rows(left)), keys(left)) == (["new-id", "stays"], ["new-id", "stays"])


def test_it_waits_for_the_end_of_a_backfill(left: DagsterPipeline) -> None:
    forget.begin_forget(left.database, "gone")
    run = create_run_for_test(left.instance, job_name="__ASSET_JOB", status=dg.DagsterRunStatus.STARTED)
    left.sync()
    assert keys(left) == ["gone", "stays"]
    left.instance.report_run_canceled(run)
    left.sync()
    assert keys(left) == ["stays"]
