"""The job `download_images`: its materialization, and the sensor and the schedule that start it.

What becomes of each image is in pipeline/images/test_download.py.
"""

from typing import Any

import dagster as dg
import pytest

from rss_pipeline.pipeline.session import fetch_policy
from rss_pipeline.storage.images.image_claims import images_due
from rss_pipeline_tests.pipeline.images.images_of_feeds import collect
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pictures import png
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def home(pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch) -> DagsterPipeline:
    """A pipeline that pauses between no two images and waits for none longer than a second."""
    pipeline.set(image_host_delay_seconds=0.0)
    monkeypatch.setattr(fetch_policy, "IMAGE_SECONDS", 1.0)
    return pipeline


def test_the_materialization_has_the_run_s_numbers_and_a_table_of_what_failed(
    home: DagsterPipeline, server: FeedServer
) -> None:
    fine = server.route("127.0.1.1", "/fine", Answer(body=png()))
    gone = server.route("127.0.1.2", "/gone", Answer(status=404))
    collect(home, server, fine, gone)
    told = home.run_download_job()
    assert (told["archived"], told["failed_attempts"], told["given_up"]) == (1, 1, 0)
    assert (told["pending"], told["success"], told["failed"]) == (1, 1, 0)
    assert told["bytes"] == told["archived_bytes"] == len(png())
    [row] = told["failures"].splitlines()[2:]
    assert "[feed](/assets/feed_items?view=events&partitions%5B0%5D=feed)" in row
    assert f"]({gone})" in row


def test_the_counts_are_made_anew_once_a_day_and_carried_on_in_between(
    home: DagsterPipeline, server: FeedServer
) -> None:
    urls = [server.route("127.0.1.1", f"/{n}", Answer(body=png())) for n in range(2)]
    collect(home, server, urls[0])
    assert home.run_download_job()["success"] == 1
    collect(home, server, urls[1], id="second")
    assert home.run_download_job()["success"] == 2
    home.database.query("DELETE FROM image_tasks WHERE position = 0 AND original_url = ?", [urls[0]])
    assert home.run_download_job()["success"] == 2
    home.clock.turn(days=1)
    assert home.run_download_job()["success"] == 1


@pytest.fixture
def repository(home: DagsterPipeline) -> Any:
    return home.definitions().get_repository_def()


def test_sensor_and_schedule_start_the_job_when_images_are_due(
    home: DagsterPipeline, server: FeedServer, repository: Any
) -> None:
    def ask() -> tuple[bool, bool]:
        sensor = repository.get_sensor_def("download_images_when_waiting")
        schedule = repository.get_schedule_def("retry_images")
        with (
            dg.build_sensor_context(instance=home.instance) as heard,
            dg.build_schedule_context(instance=home.instance) as timed,
        ):
            return (
                bool(sensor.evaluate_tick(heard).run_requests),
                bool(schedule.evaluate_tick(timed).run_requests),
            )

    assert ask() == (False, False)
    collect(home, server, server.route("127.0.1.1", "/1", Answer(status=404), Answer(body=png())))
    assert ask() == (False, False)
    home.clock.turn(minutes=3)
    assert ask() == (True, False)
    home.run_download_job()
    assert ask() == (False, False)
    home.clock.turn(hours=25)
    assert images_due(home.database, home.clock()).retries == 1
    assert ask() == (False, True)
    home.run_download_job()
    assert ask() == (False, False)
