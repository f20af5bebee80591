"""Polls and purges in this process: the same jobs as the daemon's, recorded in the same instance.

The rounds of a poll are in pipeline/visits/rounds.py, the printed output is in cli/output/.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import dagster as dg

from rss_pipeline import errors
from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.orchestration.instance.dead_runs import host_tags
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.purge_job import PURGE_HISTORY
from rss_pipeline.pipeline.visits.rounds import Round, poll_until_done
from rss_pipeline.pipeline.visits.visit import Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due, NotVisitedSince

_REPOSITORY_TAG = {".dagster/repository": "__repository__@rss_pipeline"}
"""The UI lists the runs of a job by this tag."""
_OWN_ERRORS = frozenset(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RssPipelineError)
)
_INTERRUPTS = frozenset({"DagsterExecutionInterruptedError", "KeyboardInterrupt"})


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
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                },
                instance=instance,
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
    result = definitions.resolve_job_def(PURGE_HISTORY).execute_in_process(
        run_config={
            "ops": {"purge": {"config": config}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
        instance=instance,
        tags={**_REPOSITORY_TAG, **host_tags()},
    )
    [output] = [each for each in result.all_node_events if each.is_successful_output]
    found = output.step_output_data.metadata
    return {name: value.value for name, value in found.items()}  # type: ignore[misc]


def _round(result: dg.ExecuteInProcessResult) -> Round:
    if result.success:
        return Round(run_id=result.run_id, visits=_visits(result))
    sentences = []
    for event in result.all_events:
        error = getattr(event.event_specific_data, "error", None)
        if error is not None:
            sentences.append(f"{event.step_key or event.event_type_value.lower()}: {_sentence(error)}")
    return Round(
        run_id=result.run_id,
        visits=_visits(result),
        error=next(iter(sentences), "the run failed and gave no reason"),
    )


def _visits(result: dg.ExecuteInProcessResult) -> Sequence[Visit]:
    passed = {event.step_key for event in result.all_events if event.is_step_success}
    return result.output_for_node("extract_images") if "extract_images" in passed else ()


def _sentence(error: Any) -> str:
    """The sentence that a person can act on: the text of the project's own exception, not of its cause."""
    while error.cause is not None and error.cls_name not in _OWN_ERRORS:
        error = error.cause
    if error.cls_name in _INTERRUPTS:
        return "stopped before its end; feeds that were not finished are due again"
    text = str(error.message).strip()
    return _without_class_name(text) if error.cls_name in _OWN_ERRORS else text


def _without_class_name(text: str) -> str:
    # Dagster passes errors on as text, "rss_pipeline.errors.DatabaseUnavailable: the sentence", and nothing
    # else.
    return text.partition(": ")[2]
