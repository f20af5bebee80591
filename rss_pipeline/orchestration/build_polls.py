"""The definitions of a poll, and of a refresh, in this process: their jobs, and the resources of all runs.

The resources are the stores, for our ops, and the session of a run; no run configures any of them. What the
stores do, and how they are opened, is storage's; what a session holds is pipeline.session.session's; how a
resource is closed to run config is in run_config.py. All definitions are in build.py; to build them takes a
poll at the terminal 50 ms more.
https://docs.dagster.io/guides/build/external-resources
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, replace
from typing import Any, ClassVar, TypeVar

import dagster as dg
from pydantic import Field, create_model

from rss_pipeline.collector.fetch.pacing import Pace
from rss_pipeline.collector.models.clock import Clock, utc_now
from rss_pipeline.features import FEATURES
from rss_pipeline.orchestration.cause_first import resource_cause_first
from rss_pipeline.orchestration.jobs import REFRESH_FEEDS, poll_feeds, refresh_feeds
from rss_pipeline.orchestration.poll_ops import VISITS_IO_MANAGER
from rss_pipeline.orchestration.run_config import NOTHING, closed
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.session.run_context import RunContext
from rss_pipeline.pipeline.session.session import Session, Shared
from rss_pipeline.progress import NoProgress, Progress
from rss_pipeline.reader.refresh_run import LEASE_SECONDS
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.backend import Backend, DatabaseBackend, ObjectsBackend
from rss_pipeline.storage.backends.connect import opened
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore

_B = TypeVar("_B", bound=Backend)


class _Database(dg.ConfigurableResource[Database]):
    backend: ClassVar[DatabaseBackend]

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Database]:
        with resource_cause_first(context), opened(_used(self.backend, self)) as database:
            yield database


class _Objects(dg.ConfigurableResource[ObjectStore]):
    backend: ClassVar[ObjectsBackend]

    def create_resource(self, context: dg.InitResourceContext) -> ObjectStore:
        with resource_cause_first(context):
            return _used(self.backend, self).open()


def database_resource(settings: Settings) -> dg.ResourceDefinition:
    """The database that these settings name."""
    return _shown(_Database, settings.database)


def object_resource(settings: Settings) -> dg.ResourceDefinition:
    """The object store that these settings name."""
    return _shown(_Objects, settings.objects)


def _used(backend: _B, resource: dg.ConfigurableResource[Any]) -> _B:
    """The backend with the secrets of a run: from its environment."""
    secrets: dict[str, Any] = {name: getattr(resource, name) for name, _ in backend.secrets}
    return replace(backend, **secrets)  # type: ignore[type-var]


def _shown(base: type[dg.ConfigurableResource[Any]], backend: Backend) -> dg.ResourceDefinition:
    """The resource of a backend, with its fields for the UI. In place of a secret this shows its variable."""
    kind, secrets = type(backend), dict(backend.secrets)
    shown: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        value = getattr(backend, each.name)
        is_needed = each.default is MISSING
        like = bool if isinstance(value, bool) else str if is_needed else str | None
        shown[each.name] = (
            like,
            Field(... if is_needed else each.default, description=each.metadata["description"]),
        )
        if each.name in secrets:
            values[each.name] = dg.EnvVar(secrets[each.name])
        elif value is not None:
            values[each.name] = value if isinstance(value, bool) else str(value)
    name = kind.__name__.replace("Backend", "Resource")
    resource = create_model(name, __base__=base, __doc__=kind.__doc__, **shown)
    resource.backend = backend  # type: ignore[attr-defined]
    return closed(resource(**values))


def session_resource(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    progress: Progress | None = None,
    synced: RegistrySync | None = None,
) -> dg.ResourceDefinition:
    """The `Session` of a run, opened when the run starts and closed at its end."""
    pace, image_pace = Pace(), Pace()

    def open_session(context: dg.InitResourceContext) -> Iterator[Session]:
        run_id = "" if context.run is None else context.run.run_id
        lease_seconds = settings.lease_seconds
        if context.run is not None and context.run.job_name == REFRESH_FEEDS:
            lease_seconds = min(lease_seconds, LEASE_SECONDS)
        with (
            resource_cause_first(context),
            Session(
                RunContext(
                    settings=replace(settings, lease_seconds=lease_seconds),
                    database=context.resources.database,
                    objects=context.resources.objects,
                    run_id=run_id,
                    clock=clock,
                    progress=progress or NoProgress(),
                ),
                Shared(
                    pace=pace,
                    image_pace=image_pace,
                    synced=synced,
                ),
            ) as session,
        ):
            yield session

    return dg.ResourceDefinition(
        resource_fn=open_session,
        config_schema=NOTHING,
        required_resource_keys={"database", "objects"},
        description="Everything a run needs to visit feeds: stores, worker processes, spool folder, leases.",
    )


def run_resources(
    settings: Settings, *, clock: Clock, progress: Progress | None = None, synced: RegistrySync | None = None
) -> dict[str, Any]:
    """The resources of every run, by key; the arguments are those of `build.build_definitions`."""
    return {
        "database": database_resource(settings),
        "objects": object_resource(settings),
        "session": session_resource(settings, clock=clock, progress=progress, synced=synced),
        VISITS_IO_MANAGER: dg.mem_io_manager.configured(NOTHING, config_schema=NOTHING),
        # Dagster's default, which a run could point at any folder. Nothing of ours is stored by it.
        "io_manager": dg.FilesystemIOManager()
        .get_resource_definition()
        .configured(NOTHING, config_schema=NOTHING),
    }


def poll_definitions(
    settings: Settings,
    *,
    clock: Clock,
    progress: Progress | None = None,
    synced: RegistrySync | None = None,
    resource_overrides: Mapping[str, Any] | None = None,
) -> dg.Definitions:
    """The jobs of `in_process.poll_in_process`; the arguments are those of `build.build_definitions`."""
    resources = run_resources(settings, clock=clock, progress=progress, synced=synced)
    return dg.Definitions(
        jobs=[
            poll_feeds,
            *(each.after_poll.job.load() for each in FEATURES if each.after_poll is not None),
        ],
        resources={**resources, **(resource_overrides or {})},
        executor=dg.in_process_executor,
    )


def refresh_definitions(settings: Settings, *, clock: Clock) -> dg.Definitions:
    """The jobs that users wait for: of `in_process.refresh_in_process` and of features."""
    return dg.Definitions(
        jobs=[
            refresh_feeds,
            *(each.user_work.job.load() for each in FEATURES if each.user_work is not None),
        ],
        resources=run_resources(settings, clock=clock),
        executor=dg.in_process_executor,
    )
