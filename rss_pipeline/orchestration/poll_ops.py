"""The ops of a poll, shared by the asset and the job `poll_feeds`, and those of the job `refresh_feeds`.

Each body calls pipeline/visits or reporting/. The ops of a replay are in features/replay.
https://docs.dagster.io/guides/build/ops
"""

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from pydantic import Field

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.errors import NothingReached, RegistryError
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import AssetEvent, record_events
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting import feeds as reporting
from rss_pipeline.orchestration.reporting.asset_keys import POLLS
from rss_pipeline.orchestration.reporting.failure_table import failure_table
from rss_pipeline.orchestration.run_config import plain
from rss_pipeline.orchestration.ui_labels import kind
from rss_pipeline.pipeline.registry.sync import RegistrySync, registered_accesses, sync_registry
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.triggers.starts import ALL_SINCE_TAG, NOTHING_REACHED_TAG, SHARD_TAG
from rss_pipeline.pipeline.visits import poll
from rss_pipeline.pipeline.visits import session_steps as steps
from rss_pipeline.pipeline.visits.claim import Accesses, wait_for
from rss_pipeline.pipeline.visits.fetch import raise_for_our_outage
from rss_pipeline.pipeline.visits.summary import FailureRow, failures, poll_sentence, summary
from rss_pipeline.pipeline.visits.visit import Refused, Visit
from rss_pipeline.reader.refresh_run import Requests, reportable
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.claimable import Due, Named, NotVisitedSince, Wanted
from rss_pipeline.storage.refresh.open_requests import OpenRequest

# The op `claim`: which feeds a poll visits, by its configuration or its partitions.
#
# The claim itself is in pipeline/visits/claim.py.

# The visits that ops pass to each other, and the session that each has from the run.

VISITS_IO_MANAGER = "visits_io_manager"
"""A key of our own: bound as `io_manager`, the memory would hold the assets of other projects, too."""

Visits = list[Visit]
SessionResource = dg.ResourceParam[Session]
# From the annotation list[Visit] Dagster would take a type that checks each visit before and after each op.
_visits = dg.DagsterType(
    name="Visits",
    type_check_fn=lambda _, value: isinstance(value, list),
    description="The visits of a run, or the backups of a replay, each with its outcome so far.",
)
visits_in = {"visits": dg.In(_visits)}
visits_out = dg.Out(
    _visits,
    io_manager_key=VISITS_IO_MANAGER,
    description="The visits of this run, each with its outcome so far.",
)


class ClaimConfig(dg.Config):
    """The feeds that a poll claims. With no field set: those that are due."""

    feeds: list[str] = Field(
        default=[],
        description=(
            "Feed ids to visit, due or not. Empty: all feeds that are due. A run of partitions visits its"
            " partitions and ignores this field."
        ),
    )
    all: bool = Field(
        default=False,
        description=(
            "Visit every registered feed now, due or not, also feeds in back-off. One run visits at most"
            " RSS_BATCH_SIZE feeds and starts requests for two minutes; the sensor `poll_feeds_when_due`"
            " starts the next run within a minute, until all were visited. Requests stay conditional and"
            " paced; a host on hold is left alone until its hold ends."
        ),
    )
    not_visited_since: str | None = Field(
        default=None, description="An instant (UTC, ISO 8601). Visit every feed without a visit since then."
    )
    shard: int | None = Field(
        default=None,
        description=(
            "Visit feeds of this shard only, 1 to `shards`; the sensor sets both where RSS_SHARDS is more"
            " than 1. Not set: feeds of all shards. Feeds that are named are visited whatever their shard."
        ),
    )
    shards: int | None = Field(default=None, description="The number of shards, if `shard` is set.")


@dg.op(
    ins={"registry": dg.In(dg.Nothing, description="Sets the order only; the op reads feeds.yaml itself.")},
    out=visits_out,
    config_schema=plain(ClaimConfig),
    tags=kind("sql"),
)
def claim(context: dg.OpExecutionContext, session: SessionResource) -> Visits:
    """Sync the registry, check that both stores work, and claim the feeds that this run visits."""
    config = ClaimConfig(**context.op_config)
    with run_step(context, session):
        synced = synced_registry(context, session)
        accesses = session.accesses = accesses_of(session, synced)
        suspects = None if synced is None else synced.suspects
        reporting.mark_recorded(session.run, context.instance)
        wanted = wanted_feeds(context, config, session.run.clock())
        _tag_shard(context, wanted)
        visits = poll.claim_visits(session, wanted, accesses, suspects=suspects)
        if isinstance(wanted, Named):
            return visits
        context.log.info(f"{len(visits)} feeds claimed")
        if config.all and not config.feeds and visits and isinstance(wanted, NotVisitedSince):
            context.instance.add_run_tags(context.run_id, {ALL_SINCE_TAG: instant(wanted.since)})
        return visits


def synced_registry(context: dg.OpExecutionContext, session: Session) -> RegistrySync | None:
    """The registry, synced; None, with an error in the run's log, if feeds.yaml has mistakes.

    None where other machines execute runs, too: they may have another feeds.yaml, or none. The sensor of the
    main machine syncs. None as well in an ephemeral instance, of which no one sees the events.
    """
    is_elsewhere = session.run.settings.runs_elsewhere is not None
    if session.synced is not None or is_elsewhere or context.instance.is_ephemeral:
        return session.synced
    try:
        synced = sync_registry(session.run.database, session.run.settings, now=session.run.clock())
        register(session.run.database, context.instance, synced)
    except RegistryError as error:
        context.log.error(f"{error}\nThe poll continues with the feeds as they were.")
        return None
    if not synced.changes.is_empty:
        context.log.info(str(synced))
    return synced


def accesses_of(session: Session, synced: RegistrySync | None) -> Accesses:
    """The headers and passwords of feeds, by their ids; None where they are not known. A worker reads them in
    the feeds.yaml of its own machine."""
    settings = session.run.settings
    if synced is not None:
        return synced.accesses
    if settings.runs_elsewhere is not None and settings.feeds_file.exists():
        return registered_accesses(settings)
    return None


def wanted_feeds(context: dg.OpExecutionContext, config: ClaimConfig, now: datetime) -> Wanted:
    """The feeds that a run's partitions, or else its configuration, name."""
    if context.has_partitions:
        return Named(ids=list(context.partition_keys), now=now)
    shard = None if config.feeds else shard_of(config)
    if config.not_visited_since is not None or config.all:
        since = now if config.not_visited_since is None else _instant(config.not_visited_since)
        ids = config.feeds or None
        return NotVisitedSince(since=since, now=now, ids=ids, shard=shard, rested=ids is not None)
    if config.feeds:
        return Named(ids=list(dict.fromkeys(config.feeds)), now=now)
    return Due(now=now, shard=shard)


def claim_config(context: dg.OpExecutionContext) -> ClaimConfig:
    """The configuration of `claim`, for an op after it of the same run."""
    config: Any = context.run_config
    return ClaimConfig(**config.get("ops", {}).get("claim", {}).get("config", {}))


def shard_of(config: ClaimConfig) -> Shard | None:
    """The shard that a poll is limited to; None for all feeds."""
    if config.shard is None and config.shards is None:
        return None
    try:
        found = Shard(number=config.shard or 0, of=config.shards or 0)
    except ValueError as error:
        raise dg.Failure(
            description=f"{error}; set both `shard` and `shards`, or none for all feeds", allow_retries=False
        ) from None
    return found if found.of > 1 else None


def _tag_shard(context: dg.OpExecutionContext, wanted: Wanted) -> None:
    """Also for a run that a person started: the sensor starts no second one of its shard."""
    if not isinstance(wanted, Named) and wanted.shard is not None and SHARD_TAG not in context.run_tags:
        context.instance.add_run_tags(context.run_id, {SHARD_TAG: str(wanted.shard)})


def _instant(text: str) -> datetime:
    try:
        since = datetime.fromisoformat(text)
    except ValueError:
        raise dg.Failure(
            description=f"not_visited_since: {text!r} is not an instant; write it like 2026-02-18T08:30:00Z",
            allow_retries=False,
        ) from None
    return since if since.tzinfo is not None else since.replace(tzinfo=UTC)


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
            for observations in reporting.report_failures(session.run, visits, by_hand=True):
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


# The ops of the job `refresh_feeds`.
#
# The requests of users, their claim and their answers are in reader/refresh_run.py.

_requests = dg.DagsterType(
    name="Requests",
    type_check_fn=lambda _, value: isinstance(value, Requests),
    description="The requests of users for visits that this run has claimed.",
)
_requests_in = {"requests": dg.In(_requests)}


@dg.op(
    out={"visits": visits_out, "requests": dg.Out(_requests, io_manager_key=VISITS_IO_MANAGER)},
    tags=kind("sql"),
)
def claim_requested(context: dg.OpExecutionContext, session: SessionResource) -> tuple[Visits, Requests]:
    """Sync the registry, check that both stores work, and claim the feeds that users wait for."""
    with run_step(context, session):
        synced = synced_registry(context, session)
        reporting.mark_recorded(session.run, context.instance)
        requests = Requests(
            session,
            accesses=accesses_of(session, synced),
            suspects=None if synced is None else synced.suspects,
            search=_search,
        )
        visits = requests.claim()
        context.log.info(f"{len(visits)} feeds to refresh")
        return visits, requests


def _search(session: Session, request: OpenRequest) -> tuple[Row, Visits]:
    # Every poll imports this module, and what a search needs beside a poll takes a fiftieth of a second.
    from rss_pipeline.reader.searches import search

    return search(session, request)


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("http"))
def fetch_requested(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Request each feed with the validators of its stored document; close unchanged and failed visits."""
    with run_step(context, session):
        return requests.fetch(visits)


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("sql"))
def answer(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Report to the users how the visits of their feeds ended."""
    with run_step(context, session):
        requests.answer(visits)
        return visits


@dg.op(ins={**visits_in, **_requests_in}, out=visits_out, tags=kind("http"))
def visit_the_rest(
    context: dg.OpExecutionContext, session: SessionResource, visits: Visits, requests: Requests
) -> Visits:
    """Visit the feeds that another run held, and those that were requested meanwhile."""
    with run_step(context, session):
        return reportable([*visits, *requests.visit_the_rest()])
