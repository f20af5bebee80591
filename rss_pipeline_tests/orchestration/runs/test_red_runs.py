"""The first words of a red run are its cause, whatever failed; stack traces and all else come after it."""

import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rss_pipeline.errors import DatabaseUnavailable
from rss_pipeline.orchestration.upkeep.purge_job import purge_in_process
from rss_pipeline_tests.pipeline.visits.faults.test_faults import Fault, statement, trap
from rss_pipeline_tests.pipeline.visits.faults.test_our_outage import feeds_that_answered
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.installed import INSTALLED
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def first_words(pipeline: DagsterPipeline, run_id: str) -> tuple[str, str]:
    """The first line of the run's log that is an error, and the error at its end without its class."""
    errors = [log for log in pipeline.instance.all_logs(run_id) if log.level >= logging.ERROR]
    (end,) = [
        log.dagster_event.job_failure_data.error
        for log in errors
        if log.dagster_event is not None and log.dagster_event.is_job_failure
    ]
    assert end is not None
    assert not errors[0].is_dagster_event, "Dagster's own events have a stack trace"
    return errors[0].user_message, re.sub(r"^[\w.]+: ", "", end.message).strip()


def assert_first(pipeline: DagsterPipeline, run_id: str, cause: str) -> None:
    for words in first_words(pipeline, run_id):
        assert words.startswith(cause), words


def launched(pipeline: DagsterPipeline, job: str, **resources: Any) -> str:
    definitions = pipeline.definitions(resources=resources)
    result = definitions.resolve_job_def(job).execute_in_process(
        instance=pipeline.instance, raise_on_error=False
    )
    assert not result.success
    return result.run_id


def without_database(pipeline: DagsterPipeline) -> Path:
    """Put a folder in the place of the database's file."""
    path = pipeline.settings.database_path
    pipeline.close()
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    path.mkdir()
    return path


@pytest.mark.parametrize("job", ["poll_feeds", "purge_history"])
def test_a_database_that_cannot_be_opened(pipeline: DagsterPipeline, job: str) -> None:
    path = without_database(pipeline)
    assert_first(pipeline, launched(pipeline, job), f"{path}: unable to open database file")


def test_objects_that_are_not_writable(pipeline: DagsterPipeline) -> None:
    shutil.rmtree(pipeline.settings.objects_path)
    pipeline.settings.objects_path.write_text("")
    assert_first(pipeline, launched(pipeline, "poll_feeds"), "object folder: ")


def test_a_wrong_token_of_the_d1_proxy(
    away: DagsterPipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("D1_PROXY_TOKEN", "0123456789abcdef-wrong")
    assert_first(
        away,
        launched(away, "poll_feeds"),
        "the database cannot be used: D1_PROXY_TOKEN is not the Worker's secret",
    )


def test_a_disk_that_is_full(pipeline: DagsterPipeline, server: FeedServer) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss(*map(str, range(400))))), "feed")
    with Fault(pipeline.settings.database_path) as faults:

        def open_database(context: dg.InitResourceContext) -> Iterator[Any]:
            database = trap(pipeline, statement("insert items"), faults.full)()
            yield database
            database.close()

        run_id = launched(pipeline, "poll_feeds", database=dg.ResourceDefinition(open_database))
    assert_first(pipeline, run_id, f"the disk is full: make room below {pipeline.settings.home}")


def test_our_own_network(pipeline: DagsterPipeline) -> None:
    feeds_that_answered(pipeline, 1, 2, 3)
    [round_] = pipeline.try_poll(all_feeds=True)
    assert_first(pipeline, round_.run_id, "Our own network was down: all 3 feeds failed in the network")


def test_a_feed_that_a_person_materializes(pipeline: DagsterPipeline, server: FeedServer) -> None:
    pipeline.register(server.route("127.0.0.2", "/1", Answer(status=404)), "first")
    pipeline.register(server.route("127.0.0.3", "/2", Answer(status=410)), "second")
    pipeline.sync()
    one = pipeline.materialize("first")
    assert_first(pipeline, one.run_id, "first: 404 Not Found")
    assert "not collected" not in first_words(pipeline, one.run_id)[0]
    both = pipeline.materialize("first", "second")
    assert_first(pipeline, both.run_id, "first: 404 Not Found")
    said, _ = first_words(pipeline, both.run_id)
    assert said.endswith(" 2 of 2 feeds were not collected: first, second.")


@pytest.mark.skipif("health" not in INSTALLED, reason="without health checks")
def test_a_health_check_that_cannot_read(pipeline: DagsterPipeline) -> None:
    pipeline.database.query("DROP TABLE hosts")
    assert "no such table: hosts" in first_words(pipeline, launched(pipeline, "check_health"))[0]


def test_a_mistake_of_ours(pipeline: DagsterPipeline) -> None:
    run_id = launched(pipeline, "purge_history", session=dg.ResourceDefinition.hardcoded_resource(None))
    assert_first(pipeline, run_id, "AttributeError: 'NoneType' object has no attribute")


def test_a_purge_of_the_command_ends_with_the_error_itself(pipeline: DagsterPipeline) -> None:
    without_database(pipeline)
    with pytest.raises(DatabaseUnavailable, match="unable to open database file"):
        purge_in_process(pipeline.definitions(), pipeline.instance, days=None, dry_run=True)
