"""The ops that publish topics: after a poll, by the job `publish_topics`, and by hand; and their events.

What all processes of a poll load. The asset and the sensor are in dagster.py.
https://docs.dagster.io/guides/build/ops
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field

from rss_pipeline.errors import RssPipelineError
from rss_pipeline.features.streams.dagster import judge_changed
from rss_pipeline.features.topics.sql import due, keys, mark_topics_stale
from rss_pipeline.orchestration.cause_first import run_step
from rss_pipeline.orchestration.instance.record_events import record_events
from rss_pipeline.orchestration.partitions import TOPICS as TOPICS_KEYS
from rss_pipeline.orchestration.partitions import add_keys, missing_keys
from rss_pipeline.orchestration.parts import PUBLISHED
from rss_pipeline.orchestration.poll_ops import SessionResource
from rss_pipeline.orchestration.queueing import MINUTES_TAGS
from rss_pipeline.orchestration.registry_partitions import remove_others
from rss_pipeline.orchestration.reporting.asset_keys import TOPICS, place, version_tags
from rss_pipeline.orchestration.run_config import plain
from rss_pipeline.orchestration.ui_labels import OWNERS, kind
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.storage.database import Database

if TYPE_CHECKING:
    from rss_pipeline.features.topics.publish import Publication, PublicationStores

_EVENTS_AT_ONCE = 20
"""A run that is killed loses the events of at most so many topics that it has published."""

PUBLISH_TOPICS = "publish_topics"


class PublishConfig(dg.Config):
    """The publication at the end of a poll."""

    later: bool = Field(
        default=False,
        description="Leave it to another run. `rss-pipeline poll` publishes once, after its last round.",
    )


# No kind: the asset's page would show the kind of its last op in place of the asset's own kinds.
@dg.op(
    ins={"reported": dg.In(dg.Nothing)},
    out=dg.Out(dg.Nothing, is_required=False),
    config_schema=plain(PublishConfig),
)
def publish(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Publish the topics that changed. An error is a warning: the next run tries again."""
    config = PublishConfig(**context.op_config)
    with run_step(context, session):
        try:
            done = [] if config.later else _publish(context, session)
        except Exception as error:  # noqa: BLE001 - whatever it is, the feeds were collected, so the poll is green
            cause = str(error) if isinstance(error, RssPipelineError) else f"{type(error).__name__}: {error}"
            context.log.warning(f"Topics were not published; the next run tries again. {cause}")
            return
        for each in _failed(done):
            context.log.warning(f"The topic {each.topic_id} was not published: {each.error}")
        if done and not context.has_partitions:
            yield dg.Output(None, metadata=_figures(done))


class PublishTopicsConfig(dg.Config):
    """The topics to publish. With no field set: those that are due."""

    topics: list[str] = Field(
        default=[],
        description=(
            "Ids of topics to publish now, changed or not and whatever their `every` says. Empty: all that"
            " changed, once their `every` has passed."
        ),
    )


@dg.op(config_schema=plain(PublishTopicsConfig), out=dg.Out(dg.Nothing), tags=kind("file"))
def publish_due(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Publish the topics that changed, each where its bytes differ."""
    config = PublishTopicsConfig(**context.op_config)
    with run_step(context, session):
        judge_changed(context, session)
        done = _publish(context, session, only=list(dict.fromkeys(config.topics)) or None)
        yield dg.Output(None, metadata=_figures(done))
        _raise_for(done)


@dg.job(
    name=PUBLISH_TOPICS,
    description=(
        "Publishes every topic that changed, once its `every` has passed. Polls do the same as their last"
        " step; the sensor `publish_when_changed` starts this job for other changes: by replays, repairs,"
        " cleans, images archived later, feeds.yaml, another machine. The run fails if a topic could not be"
        " published; it stays due."
    ),
    tags=MINUTES_TAGS,
    owners=OWNERS,
)
def publish_topics() -> None:
    publish_due()


# Without a kind, as `publish`.
@dg.op(
    ins={"feed_items": dg.In(dg.Nothing, description="Sets the order only; the op reads the database.")},
    out=dg.Out(dg.Nothing, is_required=False),
)
def publish_partitions(context: dg.OpExecutionContext, session: SessionResource) -> Iterator[Any]:
    """Publish these topics now. Those that could not be published are red."""
    with run_step(context, session):
        judge_changed(context, session)
        _raise_for(_publish(context, session, only=list(context.partition_keys)))
    yield from ()  # An output would be an event of its own for each partition.


def _publish(
    context: dg.OpExecutionContext, session: Session, *, only: Sequence[str] | None = None
) -> "list[Publication]":
    """Publish, and record an event for each topic with changed bytes; with `only` for each of them."""
    run = session.run
    run.progress.begin("publish", 0)
    if only is None and not due(run.database, now=run.clock()):
        return []
    # Most polls publish nothing, and what writes the documents takes a hundredth of a poll to import.
    from rss_pipeline.features.topics.publish import PublicationStores
    from rss_pipeline.features.topics.publish import publish as publish_topics

    stores = PublicationStores.of(run.settings, run.database, run.objects)
    partitions = frozenset(context.instance.get_dynamic_partitions(TOPICS_KEYS))
    unrecorded: list[Publication] = []

    def record() -> None:
        # A topic that left feeds.yaml is published once more, and has no partition any more.
        known = [each for each in unrecorded if each.topic_id in partitions]
        record_events(context, _events(stores, context.instance, known, named=only is not None))
        unrecorded.clear()

    def report(publication: "Publication") -> None:
        unrecorded.append(publication)
        if len(unrecorded) >= _EVENTS_AT_ONCE:
            record()

    try:
        return publish_topics(stores, clock=run.clock, only=only, report=report)
    finally:
        record()


def _events(
    stores: "PublicationStores", instance: dg.DagsterInstance, done: "Sequence[Publication]", *, named: bool
) -> list[dg.AssetMaterialization]:
    """An event for each topic with changed bytes, and for one without any event here; if a person `named`
    them, for all that did not fail."""
    wanted = [each for each in done if each.error is None]
    if any(not each.changed for each in wanted) and not named:
        recorded = instance.get_materialized_partitions(TOPICS)
        wanted = [each for each in wanted if each.changed or each.topic_id not in recorded]
    return [_event(stores, each) for each in wanted]


def _event(stores: "PublicationStores", publication: "Publication") -> dg.AssetMaterialization:
    store = stores.target.store
    places = {key.rpartition(".")[2]: store.url(key) for key in keys(publication.topic_id)}
    metadata: dict[str, Any] = {
        "entries": publication.entries,
        "feeds": publication.feeds,
        "bytes": publication.bytes,
        **{name: place(url) for name, url in places.items() if url},
        "changed": ", ".join(publication.changed) or "nothing",
    }
    return dg.AssetMaterialization(
        asset_key=TOPICS,
        partition=publication.topic_id,
        metadata=metadata,
        tags=version_tags(publication.hash),
    )


def register_topics(database: Database, instance: dg.DagsterInstance, synced: RegistrySync) -> None:
    """Bring the partition keys of topics up to date: one for each topic of feeds.yaml."""
    ids = [topic.id for topic in synced.of_features["topics"]]
    missing = missing_keys(instance, TOPICS_KEYS, ids)
    if missing:
        # As for feeds: the next publication yields an event for a topic that has none in this instance.
        mark_topics_stale(database, missing)
        add_keys(instance, TOPICS_KEYS, missing)
    remove_others(instance, TOPICS_KEYS, ids)


def _failed(done: "Sequence[Publication]") -> "list[Publication]":
    return [each for each in done if each.error is not None]


def _figures(done: "Sequence[Publication]") -> dict[str, Any]:
    changed = [each.topic_id for each in done if each.changed]
    failed = _failed(done)
    return {
        "topics_published": len(changed),
        "topics_unchanged": len(done) - len(changed) - len(failed),
        "topics_failed": len(failed),
        PUBLISHED: dg.MetadataValue.json(changed),
    }


def _raise_for(done: "Sequence[Publication]") -> None:
    """End a run in which topics failed.

    Raises:
        dagster.Failure: some topics were not published; the metadata has all of them.
    """
    failed = _failed(done)
    if failed:
        first = f"{failed[0].topic_id}: {failed[0].error}"
        rest = f" {len(failed)} of {len(done)} topics were not published." if len(done) > 1 else ""
        raise dg.Failure(
            description=f"{first.removesuffix('.')}.{rest}",
            metadata={each.topic_id: str(each.error) for each in failed},
            allow_retries=False,
        )
