"""The sensor that backs up what users have: quiet while nothing changes."""

from rss_pipeline.storage.backups.user_states import user_key
from rss_pipeline_tests.orchestration.test_poll_sensor import says, tick
from rss_pipeline_tests.storage.subscriptions import readers
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


def test_the_sensor_writes_the_objects_of_users_with_changes(pipeline: DagsterPipeline) -> None:
    assert says(tick(pipeline, "back_up_users")) == "No user has changes."
    readers.add_user(pipeline.database, "ann")
    assert "1 users backed up, 0 left" in says(tick(pipeline, "back_up_users"))
    assert [info.key for info in pipeline.objects.list("")] == [user_key("ann")]
    assert says(tick(pipeline, "back_up_users")) == "No user has changes."


def test_the_sensor_says_which_objects_the_store_refuses(pipeline: DagsterPipeline) -> None:
    readers.add_user(pipeline.database, "ann")
    # In a folder, nothing can have the name of a folder.
    pipeline.objects.put(f"{user_key('ann')}/x", b"", content_type="text/plain")
    assert user_key("ann") in says(tick(pipeline, "back_up_users"))
