"""Polls, refreshes and publications in this process: the daemon's jobs, recorded in the same instance.

The rounds of a poll are in pipeline/visits/rounds.py, the printed output is in cli/output/.
"""

from collections.abc import Iterator, Mapping, Sequence

import dagster as dg

from rss_pipeline.collector.models.clock import Clock, instant, utc_now
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.instance.dead_runs import run_tags
from rss_pipeline.orchestration.jobs import POLL_FEEDS, REFRESH_FEEDS
from rss_pipeline.orchestration.parts import PUBLISHED
from rss_pipeline.orchestration.queueing import REASON_TAG, REFRESH_TAGS
from rss_pipeline.orchestration.reporting.run_errors import first_error
from rss_pipeline.orchestration.run_config import QUIET
from rss_pipeline.pipeline.visits.rounds import Round, poll_until_done
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince


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
    """Run polls until nothing is due, or until all that was requested was visited; see `poll_until_done`.

    Then run the last steps of features that are due, if no run failed: one round more, without visits.
    """
    last_steps = [feature.after_poll for feature in FEATURES if feature.after_poll is not None]

    def run(wanted: Due | NotVisitedSince) -> Round:
        return _round(_poll(definitions, instance, wanted))

    is_fine = True
    for done in poll_until_done(
        database, run, clock=clock, feeds=feeds, all_feeds=all_feeds, patience=patience
    ):
        is_fine = done.error is None
        yield done
        del done  # As in `poll_until_done`.
    for each in last_steps:
        if is_fine and each.is_due.load()(database, clock()):
            yield _publication(_execute(definitions, instance, each.job.load().name, {}))


def poll_of_nothing(definitions: dg.Definitions) -> None:
    """Run a poll of a feed that is not there, in no instance. It loads and makes what any other would.

    What is to be reported stays so: in an ephemeral instance no one would see the events.
    """
    now = utc_now()
    with dg.DagsterInstance.ephemeral() as instance:
        # No id of a feed begins so.
        _poll(definitions, instance, NotVisitedSince(since=now, now=now, ids=["-"]))


def refresh_in_process(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *, reason: str
) -> str | None:
    """Run the job for requests of users once; return the error of a run that failed."""
    return user_work_in_process(definitions, instance, REFRESH_FEEDS, reason=reason)


def user_work_in_process(
    definitions: dg.Definitions, instance: dg.DagsterInstance, job: str, *, reason: str
) -> str | None:
    """Run a job that users wait for once; return the error of a run that failed."""
    tags = {**REFRESH_TAGS, REASON_TAG: reason}
    result = _execute(definitions, instance, job, {}, tags=tags)
    if result.success:
        return None
    found = first_error(result.all_events)
    return "the run gave no reason" if found is None else ": ".join(found)


def _poll(
    definitions: dg.Definitions, instance: dg.DagsterInstance, wanted: Due | NotVisitedSince
) -> dg.ExecuteInProcessResult:
    last_steps = [feature.after_poll for feature in FEATURES if feature.after_poll is not None]
    later = {each.op.load().name: {"config": {"later": True}} for each in last_steps}
    return _execute(definitions, instance, POLL_FEEDS, {"claim": {"config": _config(wanted)}, **later})


def _execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    job: str,
    ops: Mapping[str, object],
    *,
    tags: Mapping[str, str] | None = None,
) -> dg.ExecuteInProcessResult:
    return definitions.resolve_job_def(job).execute_in_process(
        run_config={"ops": ops, **QUIET},
        instance=instance,
        raise_on_error=False,
        tags={**run_tags(), **(tags or {})},
    )


def _publication(result: dg.ExecuteInProcessResult) -> Round:
    """The round of a publication. That a topic failed is no error of the poll."""
    published: Sequence[str] = ()
    for event in result.all_node_events:
        if event.is_successful_output and PUBLISHED in event.step_output_data.metadata:
            published = event.step_output_data.metadata[PUBLISHED].value  # type: ignore[assignment]
    found = None if result.success else first_error(result.all_events)
    error = None if result.success else "the run gave no reason" if found is None else ": ".join(found)
    return Round(run_id=result.run_id, published=published, publication_error=error)


def _config(wanted: Due | NotVisitedSince) -> dict[str, object]:
    if isinstance(wanted, Due):
        return {}
    return {"not_visited_since": instant(wanted.since), "feeds": list(wanted.ids or ())}


def _round(result: dg.ExecuteInProcessResult) -> Round:
    if result.success:
        return Round(run_id=result.run_id, visits=_visits(result))
    found = first_error(result.all_events)
    error = "the run failed and gave no reason" if found is None else ": ".join(found)
    return Round(run_id=result.run_id, visits=_visits(result), error=error)


def _visits(result: dg.ExecuteInProcessResult) -> Sequence[Visit]:
    passed = {event.step_key for event in result.all_events if event.is_step_success}
    return result.output_for_node("visit_more") if "visit_more" in passed else ()
