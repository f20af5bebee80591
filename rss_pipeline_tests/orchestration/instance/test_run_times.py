"""The ends of a job's last runs, as Dagster itself has written them."""

import dagster as dg
import pytest

from rss_pipeline.orchestration.instance.run_times import last_runs
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


@dg.op(config_schema=bool)
def fail_if(context: dg.OpExecutionContext) -> None:
    if context.op_config:
        raise dg.Failure("on purpose")


@dg.job
def a_job() -> None:
    fail_if()


def test_the_last_success_and_the_last_failure_of_a_job(
    dagster_pipeline: DagsterPipeline, instance: dg.DagsterInstance
) -> None:
    ends = []
    for fails in (False, True, False):
        result = a_job.execute_in_process(
            instance=instance, raise_on_error=False, run_config={"ops": {"fail_if": {"config": fails}}}
        )
        [record] = instance.get_run_records(dg.RunsFilter(run_ids=[result.run_id]))
        ends.append(record.end_time)
    known = last_runs(dagster_pipeline.settings)["a_job"]
    assert known.last_success == pytest.approx(ends[2])
    assert known.last_failure == pytest.approx(ends[1])
