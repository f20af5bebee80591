"""Polling and purging in this process: the same jobs, recorded in the same instance as the daemon's runs.

What is printed of it is the command's business (cli.py).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline import errors
from rss_pipeline.collector.models.clock import Clock, instant
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.orchestration.instance.dead_runs import host_tags
from rss_pipeline.orchestration.jobs import POLL_FEEDS
from rss_pipeline.orchestration.purge_job import PURGE_HISTORY
from rss_pipeline.pipeline.visits import claim as claiming
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Visit
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds import leases
from rss_pipeline.storage.feeds.feeds import feeds_by_id

_MOST_ROUNDS = 10_000
_LOOK_AGAIN_SECONDS = 1.0
_RUN_SECONDS = 60
"""How long a host is kept free for a run that has waited for it and starts."""
_REPOSITORY_TAG = {".dagster/repository": "__repository__@rss_pipeline"}
"""The UI lists a job's runs by this tag."""
_OWN_ERRORS = frozenset(
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RssPipelineError)
)
_INTERRUPTS = frozenset({"DagsterExecutionInterruptedError", "KeyboardInterrupt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run: its visits, and what failed it; then its visits only where all of its steps had passed."""

    run_id: str
    visits: Sequence[Visit] = ()
    error: str | None = None


def poll_here(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    database: Database,
    *,
    clock: Clock,
    feeds: Sequence[str] = (),
    all_feeds: bool = False,
    patience: float = 0.0,
) -> Iterator[Round]:
    """Run polls until nothing is due (or, of what was asked for, nothing is left); at least one.

    `feeds` are ids. Where another run holds one of them or its host, it is waited for, `patience` seconds at
    most; a pause that its host asked for is not.
    """
    job = definitions.resolve_job_def(POLL_FEEDS)
    started = clock()
    claim: dict[str, object] = {}
    if feeds or all_feeds:
        claim = {"not_visited_since": instant(started), "feeds": list(feeds)}
    turn = _Turn(database, feeds, since=started, clock=clock, patience=patience)
    try:
        for _ in range(_MOST_ROUNDS):
            result = job.execute_in_process(
                run_config={
                    "ops": {"claim": {"config": claim}},
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                },
                instance=instance,
                raise_on_error=False,
                tags={**_REPOSITORY_TAG, **host_tags()},
            )
            round_ = _round(result)
            yield round_
            if round_.error is not None:
                return
            if leases.claimable(database, _wanted(claim, started, clock(), feeds)):
                if not round_.visits:
                    return
            elif not turn.comes():
                return
    finally:
        turn.end()


def purge_here(
    definitions: dg.Definitions, instance: dg.DagsterInstance, *, days: float | None, dry_run: bool
) -> dict[str, int | bool]:
    """Run the purge; gives its numbers by name.

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


class _Turn:
    """Waiting for runs that are at these feeds, or at their hosts: they make way."""

    def __init__(
        self, database: Database, ids: Sequence[str], *, since: datetime, clock: Clock, patience: float
    ) -> None:
        self._database = database
        self._ids = ids
        self._since = since
        self._clock = clock
        self._patience = patience
        self._token: str | None = None

    def comes(self) -> bool:
        """Wait until one of them can be claimed; False where nobody is waited for or patience is over."""
        # Nobody waits for what is merely due; asking would be a request more in every poll.
        waiting = self._elsewhere(self._ids) if self._ids else []
        if waiting and self._patience > 0 and self._token is None:
            seconds = int(self._patience) + _RUN_SECONDS
            self._token = leases.await_hosts(self._database, waiting, run_id="", lease_seconds=seconds)
        while waiting and self._patience > 0:
            time.sleep(_LOOK_AGAIN_SECONDS)
            self._patience -= _LOOK_AGAIN_SECONDS
            wanted = leases.NotVisitedSince(since=self._since, now=self._clock(), ids=self._ids)
            if leases.claimable(self._database, wanted):
                return True
            waiting = self._elsewhere(waiting)
        return False

    def end(self) -> None:
        """Others may have the hosts again."""
        if self._token is not None:
            leases.end(self._database, self._token, forgive=True)

    def _elsewhere(self, ids: Sequence[str]) -> list[str]:
        left = not_visited(self._database, ids, since=self._since, now=self._clock())
        return [each.feed for each in left if each.kind == "held_elsewhere"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotVisited:
    """A feed that was asked for and not visited: why, and what to do."""

    feed: str
    kind: str
    """`host_on_hold`, `refused` or `held_elsewhere`."""
    message: str
    until: str | None = None
    """The instant at which its host's pause is over."""


def not_visited(
    database: Database, ids: Sequence[str], *, since: datetime, now: datetime, all_feeds: bool = False
) -> list[NotVisited]:
    """Those of these feeds that nobody visited since then; with `all_feeds` any that a pause kept from it."""
    since = since.replace(microsecond=0)  # As the stores keep instants.
    if all_feeds:
        ids = leases.left_alone(database, since=since, now=now)
    known = feeds_by_id(database, ids)
    visited = {id for id, feed in known.items() if feed.last_visited_at and feed.last_visited_at >= since}
    left = [id for id in dict.fromkeys(ids) if id not in visited]
    rows = leases.standing(database, left, now=now)
    return [_why_not(id, claiming.why_not(id, rows.get(id))) for id in left]


def _why_not(id: str, why: Refused | OnHold | HeldElsewhere) -> NotVisited:
    match why:
        case Refused(message=message):
            return NotVisited(feed=id, kind="refused", message=message)
        case OnHold(hold=hold):
            return NotVisited(feed=id, kind="host_on_hold", message=str(why), until=instant(hold.until))
        case HeldElsewhere():
            message = "another run is at it or at its host now; try again in a minute"
            return NotVisited(feed=id, kind="held_elsewhere", message=message)


def put_off(rounds: Sequence[Round]) -> list[NotVisited]:
    """Feeds that these rounds did not ask because a host had asked for a pause."""
    visits = {visit.feed.id: visit.outcome for round_ in rounds for visit in round_.visits}
    return [_why_not(id, outcome) for id, outcome in visits.items() if isinstance(outcome, OnHold)]


def _wanted(
    claim: dict[str, object], started: datetime, now: datetime, feeds: Sequence[str]
) -> leases.Wanted:
    if not claim:
        return leases.Due(now=now)
    return leases.NotVisitedSince(since=started, now=now, ids=feeds or None)


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
        error=next(iter(sentences), "the run failed, and did not say why"),
    )


def _visits(result: dg.ExecuteInProcessResult) -> Sequence[Visit]:
    passed = {event.step_key for event in result.all_events if event.is_step_success}
    return result.output_for_node("extract_images") if "extract_images" in passed else ()


def _sentence(error: Any) -> str:
    """What a person can act on: the text of the project's own exception, not of what lies beneath it."""
    while error.cause is not None and error.cls_name not in _OWN_ERRORS:
        error = error.cause
    if error.cls_name in _INTERRUPTS:
        return "stopped before it was through; what it had not finished is due again"
    text = str(error.message).strip()
    return text.partition(": ")[2] if error.cls_name in _OWN_ERRORS else text
