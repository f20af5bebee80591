"""The lines that `rss-pipeline up` prints: one for each poll that visited a feed, one for each red run.

They are read from the instance, so that a run that was killed has its line as well. The daemon prints them.
"""

import logging
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
from dagster import DagsterEventType

from rss_pipeline.collector.models.plain_text import one_line
from rss_pipeline.errors import InfrastructureError, ensure_room
from rss_pipeline.orchestration.jobs import POLL_FEEDS, REFRESH_FEEDS
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.run_errors import first_error

LINES_SECONDS = 3.0
_NAMES = {POLL_FEEDS: "poll", REFRESH_FEEDS: "refresh", "__ASSET_JOB": "materialization"}
_WITH_ERRORS = {
    DagsterEventType.STEP_FAILURE,
    DagsterEventType.RESOURCE_INIT_FAILURE,
    DagsterEventType.ENGINE_EVENT,
    DagsterEventType.RUN_FAILURE,
}
_OVERLAP = timedelta(minutes=1)
"""Runs are written by several processes, and a later time may be written first."""
_REMEMBERED = 1_000
_LONGEST = 1_000
_POLLS_LOOKED_AT = 10

_logger = logging.getLogger("dagster")


class RunLines:
    """The lines of the runs that ended since the last look."""

    def __init__(self, instance: dg.DagsterInstance, *, began: datetime) -> None:
        self._instance = instance
        self._began = began
        self._since = began
        self._printed: deque[str] = deque(maxlen=_REMEMBERED)

    def new(self) -> Iterator[str]:
        """Yield the lines, in the order in which the runs ended. An older run that changes has none."""
        ended = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
        records = self._instance.get_run_records(
            dg.RunsFilter(statuses=ended, updated_after=self._since - _OVERLAP),
            order_by="update_timestamp",
            ascending=True,
        )
        for record in records:
            run, at = record.dagster_run, datetime.fromtimestamp(record.end_time or 0, UTC)
            self._since = max(self._since, record.update_timestamp.replace(tzinfo=UTC))
            if at < self._began or run.run_id in self._printed:
                continue
            self._printed.append(run.run_id)
            if (said := self._said(run)) is not None:
                line = f"{at.astimezone():%H:%M:%S} {_NAMES.get(run.job_name, run.job_name)}{said}"
                yield one_line(line)[:_LONGEST]

    def _said(self, run: dg.DagsterRun) -> str | None:
        if run.status is dg.DagsterRunStatus.FAILURE:
            return f" failed: {self._reason(run.run_id)}"
        return self._visited(run.run_id) if run.job_name in (POLL_FEEDS, REFRESH_FEEDS) else None

    def _visited(self, run_id: str) -> str | None:
        polls = self._instance.fetch_materializations(POLLS, limit=_POLLS_LOOKED_AT).records
        for poll in polls:
            event = poll.asset_materialization
            if poll.run_id == run_id and event is not None and event.description:
                return f": {event.description}"
        return None

    def _reason(self, run_id: str) -> str:
        logged = self._instance.all_logs(run_id, of_type=_WITH_ERRORS)
        events = [entry.dagster_event for entry in logged if entry.dagster_event is not None]
        found = first_error(events)
        if found is not None:
            return found[1]
        ends = [event.message for event in events if event.event_type is DagsterEventType.RUN_FAILURE]
        return next((message for message in ends if message), None) or "it gave no reason"


def print_lines(lines: RunLines, *, home: Path, every: float = LINES_SECONDS) -> Callable[[], None]:
    """A function that prints the lines that are new, at most once in so many seconds.

    `home` is Dagster's. That its disk is full is printed once: no run could record it.
    """
    next_look = 0.0
    was_full = False

    def look() -> None:
        nonlocal next_look, was_full
        if time.monotonic() < next_look:
            return
        next_look = time.monotonic() + every
        try:
            try:
                ensure_room(home)
                was_full = False
            except InfrastructureError as full:
                if not was_full:
                    sys.stdout.write(f"{full}\n")
                was_full = True
            for line in lines.new():
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        # A history that cannot be read now, a terminal that is gone: collecting goes on without the lines.
        except Exception as error:  # noqa: BLE001
            _logger.debug("no line about runs: %s", error)

    return look
