"""The ops of a poll after `claim`, from `fetch` to `report`: shared by the asset and the job `poll_feeds`.

Each body calls pipeline/visits or reporting/. The ops of a replay are in features/replay.
https://docs.dagster.io/guides/build/ops
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.errors import NothingReached
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import AssetEvent, record_events
from rss_pipeline.orchestration.ops.claim import claim_config, shard_of, wanted_feeds
from rss_pipeline.orchestration.ops.visits import SessionResource, Visits, visits_in, visits_out
from rss_pipeline.orchestration.reporting import feeds as reporting
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.triggers.poll import NOTHING_REACHED_TAG
from rss_pipeline.pipeline.visits import poll, steps
from rss_pipeline.pipeline.visits.claim import wait_for
from rss_pipeline.pipeline.visits.fetch import raise_for_our_outage
from rss_pipeline.pipeline.visits.summary import FailureRow, failures, poll_sentence, summary
from rss_pipeline.pipeline.visits.visit import Refused, Visit


@dg.op(ins=visits_in, out=visits_out, tags=kind("http"))
def fetch(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Request each feed with the validators of its stored document; close unchanged and failed visits."""
    with run_step(context, session):
        try:
            return steps.fetch(
                session, visits, round_seconds=None if context.has_partitions else poll.ROUND_SECONDS
            )
        except NothingReached:
            context.instance.add_run_tags(context.run_id, {NOTHING_REACHED_TAG: "true"})
            raise


@dg.op(ins=visits_in, out=visits_out, tags=kind("file"))
def backup(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Put each new document into the object store as served, before it is parsed."""
    with run_step(context, session):
        return steps.backup(session, visits)


@dg.op(ins=visits_in, out=visits_out, tags=kind("python"))
def parse(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Decode, repair and parse each document in worker processes with a time limit."""
    with run_step(context, session):
        return steps.parse(session, visits)


@dg.op(ins=visits_in, out=visits_out, tags=kind("sql"))
def store(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Insert new items, then close each visit: store validators and schedule, release the claim."""
    with run_step(context, session):
        return steps.store(session, visits)


@dg.op(ins=visits_in, out=visits_out, tags=kind("sql"))
def extract_images(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Store a download task for each image of the new items, and of items that an earlier run left."""
    with run_step(context, session):
        visits = steps.extract_images(session, visits)
        session.leases.end({visit.token for visit in visits})
        return visits


@dg.op(ins=visits_in, out=visits_out, tags=kind("http"))
def visit_more(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Visits:
    """Visit the named feeds that another run held, and, in a poll of a shard, what its claim left due.

    In the job only: `report` waits for the partitions of a backfill, after it has reported the others.
    """
    with run_step(context, session):
        wanted = wanted_feeds(context, claim_config(context), session.run.clock())
        return poll.visit_more(session, wanted, session.accesses, visits)


# An output of an asset's last op is one more event for each of its partitions.
@dg.op(ins=visits_in, out=dg.Out(dg.Nothing, is_required=False))
def report(context: dg.OpExecutionContext, session: SessionResource, visits: Visits) -> Iterator[Any]:
    """Record the feeds that changed as materialized (in a backfill, all that were read), what features
    add to them, and failures."""
    with run_step(context, session):
        session.run.progress.begin("report", 0)
        counts = _log_summary(context, visits)
        if context.has_partitions:
            # What is collected is reported before others are waited for: else their failure would hide it.
            rest, held = poll.apart(visits)
            failed = _recorded(context, reporting.report_named(session.run, rest))
            waited = wait_for(session, held)
            failed += _recorded(context, reporting.report_named(session.run, waited))
            visits = [*rest, *waited]
            _record_parts(context, session, {visit.feed.id for visit in visits})
            for observations in reporting.report_failures(session.run, visits):
                record_events(context, observations)
            reporting.raise_for(failed, visits=len(visits))
            if any(feature.after_poll for feature in FEATURES):
                yield dg.Output(None)
        else:
            changed: set[str] = set()
            for events in reporting.report_changes(session.run, context.instance, visits):
                record_events(context, events)
                changed.update(event.partition for event in events if event.partition is not None)
            _record_parts(context, session, changed)
            for observations in reporting.report_failures(session.run, visits):
                record_events(context, observations)
            if claimed := [visit for visit in visits if visit.token]:
                yield poll_event(
                    claimed,
                    started_at=session.opened_at,
                    now=session.run.clock(),
                    pauses=session.politeness.ends_at_claim,
                    shard=shard_of(claim_config(context)),
                )
            raise_for_our_outage(visits)
            failed = failures(visits)
            if any(isinstance(visit.outcome, Refused) for visit in visits):
                # The person who named it has to correct a mistake, and would not look into a green run.
                reporting.raise_for(failed, visits=len(visits))
            # The table first: the run's log cuts a long message at its end.
            table = {"failed_feeds": failure_table(failed)} if failed else {}
            yield dg.Output(None, metadata={**table, **counts})


def _record_parts(context: dg.OpExecutionContext, session: Session, feed_ids: Collection[str]) -> None:
    for feature in FEATURES:
        if feature.poll_events is not None:
            for events in feature.poll_events.load()(context, session, feed_ids):
                record_events(context, events)


def _recorded(
    context: dg.OpExecutionContext, batches: Generator[list[AssetEvent], None, list[FailureRow]]
) -> list[FailureRow]:
    """Record all batches; what the generator returns."""
    while True:
        try:
            events = next(batches)
        except StopIteration as end:
            failed: list[FailureRow] = end.value
            return failed
        record_events(context, events)


def _log_summary(context: dg.OpExecutionContext, visits: Visits) -> dict[str, Any]:
    counts = summary(visits)
    context.log.info(", ".join(f"{name} {count}" for name, count in counts.items()))
    return counts


_ROWS = 50
"""An outage of many feeds is reported at each poll."""


def poll_event(
    visits: Sequence[Visit],
    *,
    started_at: datetime,
    now: datetime,
    pauses: Mapping[str, datetime],
    shard: Shard | None = None,
) -> dg.AssetMaterialization:
    """The event of a poll of these visits, of all feeds or of one shard.

    `due` feeds were claimed; `fetched` of them answered with a document or a 304 (`changed`, `not_modified`),
    `failed` did not, `given_back` and `on_hold` were not requested; `gaps` are documents before which items
    were probably missed; `lag_seconds` is the longest time that a due feed had waited, counted from the end
    of its host's hold if `pauses` has one. A shard's `due` and `lag_seconds` have names of their own as well,
    for a plot of each shard.
    """
    counts = summary(visits)
    waited = [
        now - max(due_at, pauses.get(visit.feed.address.host, due_at))
        for visit in visits
        if (due_at := visit.feed.schedule.next_fetch_at) is not None
        and visit.feed.schedule.last_visited_at is not None
    ]
    lag = max([each.total_seconds() for each in waited], default=0.0)
    metadata: dict[str, Any] = {
        "due": len(visits),
        "fetched": counts["stored"] + counts["unchanged"],
        "not_modified": counts["unchanged"],
        "changed": counts["stored"],
        "failed": counts["failed"],
        "given_back": counts["given_back"],
        "on_hold": counts["on_hold"],
        "gaps": counts["gaps"],
        "items_new": counts["items_new"],
        "seconds": round((now - started_at).total_seconds(), 1),
        "lag_seconds": max(0, round(lag)),
    }
    if shard is not None:
        metadata["shard"] = str(shard)
        for name in ("due", "lag_seconds"):
            metadata[f"shard_{shard.number}_{name}"] = metadata[name]
    if failed := failures(visits):
        rest = "more are in the table of the op `report`."
        metadata["failures"] = failure_table(failed, rows=_ROWS, rest=rest)
    return dg.AssetMaterialization(asset_key=POLLS, description=poll_sentence(visits), metadata=metadata)
