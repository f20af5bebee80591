"""A purge in this process: the daemon's job, recorded in the same instance.

The job is in purge_job.py, the printed output in cli/output/.
"""

import dagster as dg

from rss_pipeline.orchestration.instance.dead_runs import run_tags
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.orchestration.upkeep.purge_job import PURGE_HISTORY


def purge_in_process(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *, days: float | None, dry_run: bool
) -> dict[str, int | bool]:
    """Run the purge; return its numbers by name.

    Raises:
        InfrastructureError: the database cannot work now.
    """
    config = {"dry_run": dry_run, **({} if days is None else {"days": days})}
    job = definitions.resolve_job_def(PURGE_HISTORY)
    try:
        result = job.execute_in_process(
            run_config={
                "ops": {"purge": {"config": config}},
                **QUIET,
            },
            instance=instance,
            tags=run_tags(),
        )
    except (dg.Failure, dg.DagsterResourceFunctionError) as error:
        # Ours is the cause of Dagster's: cause_first.py.
        raise (error.__cause__ or error) from None
    [output] = [each for each in result.all_node_events if each.is_successful_output]
    found = output.step_output_data.metadata
    return {name: value.value for name, value in found.items()}  # type: ignore[misc]
