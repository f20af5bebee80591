"""The asset `stream_items`, with one partition for each stream: events of polls, and a judgement by hand.

What was reported before is read from the event log itself, so nothing is lost where a run is killed: the
stream's next event has all that came since its last one.
https://docs.dagster.io/guides/build/assets
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import dagster as dg

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.streams.model import streams_of
from rss_pipeline.features.streams.service import judge_streams, refresh
from rss_pipeline.features.streams.states import ReportedStream, StreamChange, stream_changes
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.dagster_private import DATA_VERSION_TAG
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.partitions import (
    KEYS_AT_ONCE,
    PARTITIONS_A_RUN,
    STREAMS,
    add_keys,
    missing_keys,
    streams_partitions,
)
from rss_pipeline.orchestration.parts import AFTER_FEED_ITEMS, Building, DagsterParts
from rss_pipeline.orchestration.poll_ops import SessionResource
from rss_pipeline.orchestration.registry_partitions import remove_others
from rss_pipeline.orchestration.reporting.asset_keys import STREAM_ITEMS, version_tags
from rss_pipeline.orchestration.ui_labels import GROUP
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.storage.database import Database

_EVENTS_AT_ONCE = 100


def register_streams(_: Database, instance: dg.DagsterInstance, synced: RegistrySync) -> None:
    """Make the partitions `streams` those of a synced registry."""
    keys = [f"{spec.id}/{each.name}" for spec in synced.specs for each in streams_of(spec)]
    add_keys(instance, STREAMS, missing_keys(instance, STREAMS, keys))
    remove_others(instance, STREAMS, keys)


def report_streams(
    database: Database, instance: dg.DagsterInstance, feed_ids: Collection[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Yield an event for each stream of these feeds in which items came in since its last event."""
    keys = [key for key in instance.get_dynamic_partitions(STREAMS) if key.partition("/")[0] in feed_ids]
    return _batches(_changes(_known(instance, keys), database, everything=False))


def report_state(
    database: Database, instance: dg.DagsterInstance, keys: Sequence[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Yield an event for each of these streams, with news or without."""
    return _batches(_changes(_known(instance, keys), database, everything=True))


def report_judged(
    database: Database, instance: dg.DagsterInstance, keys: Collection[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Yield an event for each of these streams that is another one than at its last event: its items were
    judged anew, or came in with old dates."""
    keys = [key for key in instance.get_dynamic_partitions(STREAMS) if key in keys]
    known = _known(instance, keys)
    changes = [
        change
        for change in _changes(known, database, everything=True)
        # A stream without items is the same by any selector.
        if (change.members or known[change.key].members) and _Version.now(change) != known[change.key]
    ]
    return _batches(changes)


def report_replayed(
    database: Database, instance: dg.DagsterInstance, feed_ids: Collection[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Yield the events of `report_judged` for all streams of these feeds."""
    keys = [key for key in instance.get_dynamic_partitions(STREAMS) if key.partition("/")[0] in feed_ids]
    return report_judged(database, instance, keys)


def poll_events(
    context: dg.OpExecutionContext, session: Session, feed_ids: Collection[str]
) -> Iterator[list[dg.AssetMaterialization]]:
    """Yield an event for each stream of these feeds with news, then for each that has a changed selector, by
    which stored items are judged now. An error there is a warning: the next run tries again."""
    yield from report_streams(session.run.database, context.instance, feed_ids)
    try:
        yield from _judged_changed(session.run.database, context.instance)
    except Exception as error:  # noqa: BLE001 - whatever it is, the feeds were collected, so the poll is green
        cause = str(error) if isinstance(error, RssPipelineError) else f"{type(error).__name__}: {error}"
        context.log.warning(f"Streams were not judged again; the next run tries again. {cause}")


def judge_changed(context: dg.OpExecutionContext, session: Session) -> None:
    """Judge stored items by the streams with a changed selector, and record an event for each."""
    for events in _judged_changed(session.run.database, context.instance):
        record_events(context, events)


def _judged_changed(
    database: Database, instance: dg.DagsterInstance
) -> Iterator[list[dg.AssetMaterialization]]:
    # Most installations have no streams, and this query is a request.
    if instance.get_dynamic_partitions(STREAMS) and (keys := refresh(database).keys):
        yield from report_judged(database, instance, keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """The data version of a stream: another one where its members are others."""

    collected_until: int = 0
    """The time at which its newest member was collected; in seconds since 1970."""
    members: int = 0
    selector: str = ""

    def __str__(self) -> str:
        return f"{self.collected_until}-{self.members}-{self.selector}"

    @classmethod
    def of(cls, text: str) -> Self:
        """The inverse of `str`. A version of another form reads as that of a stream without items."""
        until, _, rest = text.partition("-")
        members, _, selector = rest.partition("-")
        if not (until.isdigit() and members.isdigit()):
            return cls()
        return cls(collected_until=int(until), members=int(members), selector=selector)

    @classmethod
    def now(cls, change: StreamChange) -> Self:
        until = change.collected_until
        return cls(
            collected_until=int(datetime.fromisoformat(until).timestamp()) if until else 0,
            members=change.members,
            selector=change.selector_hash[:12],
        )


def _known(instance: dg.DagsterInstance, keys: Sequence[str]) -> dict[str, _Version]:
    """The versions of these streams at their last events."""
    versions: dict[str, _Version] = {}
    for start in range(0, len(keys), KEYS_AT_ONCE):
        some = keys[start : start + KEYS_AT_ONCE]
        tags = instance.event_log_storage.get_latest_tags_by_partition(
            STREAM_ITEMS, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG], some
        )
        for key in some:
            versions[key] = _Version.of(tags.get(key, {}).get(DATA_VERSION_TAG, ""))
    return versions


def _changes(known: dict[str, _Version], database: Database, *, everything: bool) -> list[StreamChange]:
    return stream_changes(
        database, [_as_known(key, version) for key, version in known.items()], everything=everything
    )


def _batches(changes: Sequence[StreamChange]) -> Iterator[list[dg.AssetMaterialization]]:
    for start in range(0, len(changes), _EVENTS_AT_ONCE):
        yield [_materialization(change) for change in changes[start : start + _EVENTS_AT_ONCE]]


def _as_known(key: str, version: _Version) -> ReportedStream:
    feed_id, _, stream = key.partition("/")
    until = version.collected_until
    return ReportedStream(
        feed_id=feed_id,
        stream=stream,
        collected_until=instant(datetime.fromtimestamp(until, UTC)) if until else "",
        members=version.members,
    )


def _materialization(change: StreamChange) -> dg.AssetMaterialization:
    metadata: dict[str, Any] = {
        "items_new": change.items_new,
        "members": change.members,
        "newest_item": _time(change.newest_item),
        "last_match": _time(change.matched_at),
    }
    return dg.AssetMaterialization(
        asset_key=STREAM_ITEMS,
        partition=change.key,
        metadata={name: value for name, value in metadata.items() if value is not None},
        tags=version_tags(str(_Version.now(change))),
    )


def _time(at: datetime | None) -> dg.MetadataValue[Any] | None:
    return None if at is None else dg.MetadataValue.timestamp(at.astimezone(UTC))


# No kind: the asset's page would show it in place of the asset's own kinds.
@dg.op(
    ins={"feed_items": dg.In(dg.Nothing, description="Sets the order only; the op reads the database.")},
    out=dg.Out(dg.Nothing, is_required=False),
)
def judge_partitions(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Judge all stored items by these streams. Those that could not be judged are red."""
    with run_step(context, session):
        keys = list(context.partition_keys)
        failed = judge_streams(session.run.database, keys)
        judged = [key for key in keys if key not in failed]
        for events in report_state(session.run.database, context.instance, judged):
            record_events(context, events)
        if failed:
            first = next(iter(failed))
            raise dg.Failure(
                description=f"{first}: {failed[first]}.", metadata=dict(failed), allow_retries=False
            )
    yield from ()


@dg.graph_asset(
    name="stream_items",
    group_name=GROUP,
    partitions_def=streams_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=PARTITIONS_A_RUN),
    kinds={"rss"},
    ins={"feed_items": AFTER_FEED_ITEMS},
    description=(
        "Each poll updates this asset: the streams of feeds.yaml are parts of feeds, such as the items of one"
        " author, and need no request of their own. Each partition, `feed/stream`, holds the items of one"
        " stream; an event means that its members changed. Materialize a partition to judge all stored items"
        " by its selector again. A selector by XPath needs the documents: for that, replay the feed."
    ),
)
def stream_items(feed_items: Any) -> Any:
    return judge_partitions(feed_items)


def parts(_: Building) -> DagsterParts:
    """The definitions of streams."""
    return DagsterParts(assets=[stream_items])
