"""`forget FEED`: what goes and what stays, and when the command refuses."""

from typing import Any

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline


def test_forget_removes_rows_and_key_of_a_feed_that_is_gone_and_leaves_its_backups(
    invoke: Any, collected_in_runs: DagsterPipeline
) -> None:
    backups = collected_in_runs.backups("news")
    refused = invoke("forget", "news", "--yes")
    assert refused.exit_code == 1
    assert "news is still in feeds.yaml and would come back: remove it there" in refused.stderr
    collected_in_runs.feeds = collected_in_runs.feeds[1:]
    collected_in_runs.write_registry()
    collected_in_runs.sync()

    assert invoke("forget", "news", input="n\n").exit_code == 1
    assert len(collected_in_runs.items("news")) == 2

    result = invoke("forget", "news", input="y\n")
    assert result.exit_code == 0
    assert "news: 2 items and 0 image tasks deleted." in result.stdout
    assert collected_in_runs.rows("SELECT id FROM feeds") == [{"id": "broken"}]
    assert collected_in_runs.items("news") == []
    assert list(collected_in_runs.instance.get_dynamic_partitions("feeds")) == ["broken"]
    assert collected_in_runs.backups("news") == backups != []


def test_forget_leaves_a_feed_alone_that_a_run_holds(invoke: Any, collected: Pipeline) -> None:
    collected.hold("news")
    collected.feeds = collected.feeds[1:]
    collected.write_registry()
    collected.sync()
    result = invoke("forget", "news", "--yes")
    assert result.exit_code == 1
    assert "news is being visited now: try again in a minute" in result.stderr
    assert len(collected.items("news")) == 2


def test_forget_waits_for_materializations_in_flight(invoke: Any, collected_in_runs: DagsterPipeline) -> None:
    """A key that is deleted under a run fails that run at its end."""
    collected_in_runs.feeds = collected_in_runs.feeds[1:]
    collected_in_runs.write_registry()
    collected_in_runs.sync()
    job = collected_in_runs.definitions().resolve_implicit_global_asset_job_def()
    collected_in_runs.instance.create_run_for_job(job)
    result = invoke("forget", "news", "--yes")
    assert result.exit_code == 1
    assert "a materialization or backfill is in progress" in result.stderr
    assert list(collected_in_runs.instance.get_dynamic_partitions("feeds")) == ["news", "broken"]
