"""A poll finds the stories of what it brought, and a day with new ones has an event."""

import sys
from datetime import UTC, datetime, timedelta

import pytest

from rss_pipeline.features import stories
from rss_pipeline.features.stories import service, sql
from rss_pipeline.orchestration.in_process import poll_of_nothing
from rss_pipeline.orchestration.reporting.asset_keys import STORIES
from rss_pipeline.orchestration.sensors import decide_poll
from rss_pipeline.pipeline.triggers.runs import Start, Wait
from rss_pipeline.storage.accounts.user_rows import change_preferences
from rss_pipeline_tests.features.stories.stored import AGAIN, LANDSLIDE
from rss_pipeline_tests.storage.subscriptions.readers import add_user
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


def document(text: tuple[str, str]) -> bytes:
    body = rss("1").replace(b"Title of 1", text[0].encode()).replace(b"<p>Text of 1</p>", text[1].encode())
    return body.replace(b"Mon, 02 Mar 2026 08:00:00 GMT", b"")


def test_a_poll_finds_stories_and_records_the_day(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = dagster_pipeline
    pipeline.clock.now = datetime.now(UTC).replace(microsecond=0)
    for number, text in enumerate((LANDSLIDE, AGAIN), start=2):
        url = server.route(f"127.0.0.{number}", "/feed", Answer(body=document(text)))
        pipeline.register(url, f"feed{number}", shared=True)
    pipeline.sync()
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    assert job.execute_in_process(instance=pipeline.instance).success
    # No user reads stories so far: the poll spends nothing on them.
    assert pipeline.rows("SELECT * FROM story_members") == []
    add_user(pipeline.database, "reader")
    pipeline.database.batch([change_preferences("reader", '{"stories": true}')])
    poll_of_nothing(pipeline.definitions())
    assert pipeline.rows("SELECT * FROM story_members") == [], "no one would see the event"
    assert job.execute_in_process(instance=pipeline.instance).success
    [member] = pipeline.rows("SELECT * FROM story_members WHERE evidence IS NOT NULL")
    assert member["feed_id"] in ("feed2", "feed3")
    [day] = pipeline.instance.get_dynamic_partitions("stories")
    event = pipeline.instance.get_latest_materialization_event(STORIES)
    assert event is not None
    found = event.asset_materialization
    assert found is not None
    assert found.partition == day
    assert found.metadata["stories"].value == 1


def test_the_first_poll_of_up_loads_stories_before_a_user_reads_them(
    dagster_pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each run that is forked afterwards would."""
    monkeypatch.setattr(stories, "service", service)
    monkeypatch.delitem(sys.modules, service.__name__)
    poll_of_nothing(dagster_pipeline.definitions())
    assert service.__name__ in sys.modules


def test_what_a_restore_brought_back_is_decided_by_a_poll_for_which_no_feed_is_due(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline = dagster_pipeline
    pipeline.clock.now = datetime.now(UTC).replace(microsecond=0)
    pipeline.register(
        server.route("127.0.0.2", "/feed", Answer(body=document(LANDSLIDE))), "feed", shared=True
    )
    pipeline.sync()
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    assert job.execute_in_process(instance=pipeline.instance).success
    pipeline.clock.turn(minutes=5)
    sql.note_restored(pipeline.database)

    def decided() -> object:
        return decide_poll(pipeline.database, pipeline.instance, pipeline.clock())

    assert isinstance(decided(), Wait), "no user reads stories"
    add_user(pipeline.database, "reader")
    pipeline.database.batch([change_preferences("reader", '{"stories": true}')])
    assert isinstance(decided(), Start)
    assert job.execute_in_process(instance=pipeline.instance).success
    assert isinstance(decided(), Wait)
    pipeline.clock.now = datetime.now(UTC) + timedelta(minutes=1)
    # As where there is more than one poll decides.
    sql.note_restored(pipeline.database)
    assert isinstance(decided(), Wait), "not at once again"
    pipeline.clock.turn(minutes=4)
    assert isinstance(decided(), Start)
