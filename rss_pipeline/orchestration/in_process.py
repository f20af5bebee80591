"""Polls and purges in this process: the same jobs as the daemon's, recorded in the same instance.

The rounds of a poll are in pipeline/visits/rounds.py, the printed output is in cli/output/.
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.orchestration.instance.dead_runs import host_tags
from rss_pipeline.orchestration.instance.new_run import new_run
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.reporting.run_errors import first_error
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.orchestration.upkeep.purge_job import PURGE_HISTORY
from rss_pipeline.pipeline.visits.rounds import Round, poll_until_done
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince

_REPOSITORY_TAG = {".dagster/repository": "__repository__@rss_pipeline"}
"""The UI lists the runs of a job by this tag."""


def poll_in_process(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    database: Database,
    *,
    clock: Clock,
    feeds: Sequence[str] = (),
    all_feeds: bool = False,
    patience: float = 0.0,
) -> Iterator[Round]:
    """Run polls until nothing is due, or until all that was requested was visited; see `poll_until_done`."""
    job = definitions.resolve_job_def(POLL_FEEDS)

    def run(wanted: Due | NotVisitedSince) -> Round:
        return _round(
            job.execute_in_process(
                run_config={
                    "ops": {"claim": {"config": _config(wanted)}},
                    **QUIET,
                },
                instance=instance,
                run_id=new_run(instance),
                raise_on_error=False,
                tags={**_REPOSITORY_TAG, **host_tags()},
            )
        )

    return poll_until_done(database, run, clock=clock, feeds=feeds, all_feeds=all_feeds, patience=patience)


def _config(wanted: Due | NotVisitedSince) -> dict[str, object]:
    if isinstance(wanted, Due):
        return {}
    return {"not_visited_since": instant(wanted.since), "feeds": list(wanted.ids or ())}


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
            tags={**_REPOSITORY_TAG, **host_tags()},
        )
    except (dg.Failure, dg.DagsterResourceFunctionError) as error:
        # Ours is the cause of Dagster's: cause_first.py.
        raise (error.__cause__ or error) from None
    [output] = [each for each in result.all_node_events if each.is_successful_output]
    found = output.step_output_data.metadata
    return {name: value.value for name, value in found.items()}  # type: ignore[misc]


def _round(result: dg.ExecuteInProcessResult) -> Round:
    if result.success:
        return Round(run_id=result.run_id, visits=_visits(result))
    found = first_error(result.all_events)
    error = "the run failed and gave no reason" if found is None else ": ".join(found)
    return Round(run_id=result.run_id, visits=_visits(result), error=error)


def _visits(result: dg.ExecuteInProcessResult) -> Sequence[Visit]:
    passed = {event.step_key for event in result.all_events if event.is_step_success}
    return result.output_for_node("extract_images") if "extract_images" in passed else ()
