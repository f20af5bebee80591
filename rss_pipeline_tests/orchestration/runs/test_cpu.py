"""The CPU time of one failing visit: through the pipeline alone, and through a run of Dagster.

CPU time of this process and not seconds on the clock: it is the same on a busy machine.
"""

import time
from collections.abc import Callable

from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.poll import poll_round
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

PART = 20
"""A visit through the pipeline costs at most this part of the same through a run; measured: a 75th."""


def _cpu_seconds(visit: Callable[[], None], *, times: int) -> float:
    """The least of some calls: threads that earlier tests left compute in this process, too. The first call,
    which imports and opens, is not counted."""
    visit()
    seconds: list[float] = []
    for _ in range(times):
        began = time.process_time()
        visit()
        seconds.append(time.process_time() - began)
    return min(seconds)


def test_a_failing_visit_through_the_pipeline_costs_a_twentieth_of_a_run(pipeline: DagsterPipeline) -> None:
    pipeline.register("http://127.0.0.2:1/refused", "refused")
    pipeline.sync()
    job = pipeline.definitions().resolve_job_def("poll_feeds")

    def alone() -> None:
        pipeline.clock.turn(days=2)
        with Session(
            RunContext(
                settings=pipeline.settings,
                database=pipeline.database,
                objects=pipeline.objects,
                run_id="alone",
                clock=pipeline.clock,
            )
        ) as session:
            poll_round(session, Due(now=pipeline.clock()), {})

    def run() -> None:
        pipeline.clock.turn(days=2)
        job.execute_in_process(instance=pipeline.instance)

    of_a_run = _cpu_seconds(run, times=2)
    of_a_visit = _cpu_seconds(alone, times=20)
    assert pipeline.feed("refused")["consecutive_failures"] == 24, "each of them visited the feed"
    assert of_a_visit * PART <= of_a_run
