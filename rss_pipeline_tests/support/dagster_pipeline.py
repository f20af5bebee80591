"""A whole pipeline with a Dagster instance of its own: runs, events and partition keys on top of
support/pipeline.py.

Real parts throughout: the job runs in this process as `rss-pipeline poll` runs it, against loopback servers.
"""

import atexit
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.orchestration.dagster_private import ConfigurableClassData, InstanceRef
from rss_pipeline.orchestration.in_process import poll_in_process
from rss_pipeline.orchestration.instance import storages
from rss_pipeline.orchestration.instance.storages import OPEN_FILES
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.visits.rounds import Round
from rss_pipeline.progress import Progress
from rss_pipeline.settings import Settings
from rss_pipeline.storage.feeds.claimable import Wanted
from rss_pipeline_tests.support.pipeline import Pipeline


@contextmanager
def new_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster instance on disk, in the folder `dagster` of a home."""
    folder = home / "dagster"
    shutil.copytree(_empty_folder(), folder)
    with open_folder(folder) as instance:
        yield instance


@cache
def _empty_folder() -> Path:
    """An instance without a run, to be copied: Dagster takes half a second to create its three databases."""
    folder = Path(tempfile.mkdtemp(prefix="rss-pipeline-dagster-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with open_folder(folder):
        # What is in a log beside a file would not be copied with it.
        OPEN_FILES.close()
        return folder


def open_folder(folder: Path) -> dg.DagsterInstance:
    """The instance in this folder with the storages of ours; DAGSTER_HOME does not name it."""
    where = ConfigurableClassData(
        storages.__name__, storages.OpenSqliteStorage.__name__, yaml.dump({"base_dir": str(folder)})
    )
    return dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(folder))._replace(storage_data=where))


class DagsterPipeline(Pipeline):
    """One installation with its Dagster. `poll` runs the poll job, `sync` registers partition keys too."""

    def __init__(self, home: Path, instance: dg.DagsterInstance, **settings: Any) -> None:
        super().__init__(home, **settings)
        self.instance = instance
        self.keys_added = 0
        self._built: tuple[Settings, dg.Definitions] | None = None

    def sync(self, *, yes: bool = False, environ: Mapping[str, str] | None = None) -> RegistrySync:
        synced = super().sync(yes=yes, environ=environ)
        self.keys_added = register(self.database, self.instance, synced)
        return synced

    def definitions(
        self, *, progress: Progress | None = None, resources: Mapping[str, Any] | None = None
    ) -> dg.Definitions:
        """The definitions for the present settings, built once, as by a code server; new ones for parts of a
        test's own."""
        if progress is not None or resources is not None:
            return build_definitions(
                self.settings, clock=self.clock, progress=progress, resource_overrides=resources
            )
        if self._built is None or self._built[0] != self.settings:
            self._built = (self.settings, build_definitions(self.settings, clock=self.clock))
        return self._built[1]

    def poll(
        self,
        *ids: str,
        all_feeds: bool = False,
        progress: Progress | None = None,
        resources: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> Sequence[Round]:
        """Poll until nothing is due. Each call comes a second after the one before.

        Raises an AssertionError where a run fails; `try_poll` does not.
        """
        rounds = self.try_poll(*ids, all_feeds=all_feeds, progress=progress, resources=resources, **parts)
        errors = [round_.error for round_ in rounds if round_.error is not None]
        assert not errors, errors[0]
        return rounds

    def visit(self, *ids: str, all_feeds: bool = False) -> Sequence[Round]:
        """Poll without a run of Dagster, some fifty times cheaper: for tests in which only rows matter."""
        self.sync()
        return self._rounds(self._visit_round, ids, all_feeds=all_feeds)

    def _visit_round(self, wanted: Wanted) -> Round:
        return Round(run_id="run", visits=self.run(wanted))

    def try_poll(
        self,
        *ids: str,
        all_feeds: bool = False,
        progress: Progress | None = None,
        resources: Mapping[str, Any] | None = None,
        **parts: Any,
    ) -> Sequence[Round]:
        """`poll`, for runs that may fail."""
        assert not parts, "a run of the job takes its parts as `resources`"
        self.clock.turn(seconds=1)
        return list(
            poll_in_process(
                self.definitions(progress=progress, resources=resources),
                self.instance,
                self.database,
                clock=self.clock,
                feeds=ids,
                all_feeds=all_feeds,
            )
        )

    def run_download_job(self, *, resources: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run the job `download_images`; gives the metadata of its materialization.

        Raises an AssertionError where the run fails; `try_download_job` does not.
        """
        result = self.try_download_job(resources=resources)
        assert result.success, [event.event_specific_data for event in result.all_node_events][-1]
        (event,) = result.asset_materializations_for_node("item_images")
        return {name: value.value for name, value in event.metadata.items()}

    def try_download_job(self, *, resources: Mapping[str, Any] | None = None) -> dg.ExecuteInProcessResult:
        """`run_download_job`, for runs that may fail. Each call comes a second after the one before."""
        self.clock.turn(seconds=1)
        job = self.definitions(resources=resources).resolve_job_def("download_images")
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def materialize(self, *ids: str, raise_on_error: bool = False) -> dg.ExecuteInProcessResult:
        """The asset's door: a run over these keys, which must be neighbours in the order of keys. It comes a
        minute after what was before: so long a visit by hand waits."""
        self.clock.turn(minutes=1)
        job = self.definitions().resolve_implicit_global_asset_job_def()
        tags = {
            "dagster/asset_partition_range_start": ids[0],
            "dagster/asset_partition_range_end": ids[-1],
        }
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[FEED_ITEMS],
            raise_on_error=raise_on_error,
            tags=tags if len(ids) > 1 else None,
            partition_key=ids[0] if len(ids) == 1 else None,
        )

    def events(self, id: str) -> list[dict[str, Any]]:
        """Metadata of the feed's materializations, newest first."""
        found = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[id]), limit=100
        )
        return [
            {name: value.value for name, value in record.asset_materialization.metadata.items()}
            for record in found.records
            if record.asset_materialization is not None
        ]

    def reports(self, id: str) -> list[dict[str, Any]]:
        return self.events(id)

    def latest_record(self, id: str) -> Any:
        """The feed's newest materialization, as the event log has it."""
        return self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[id]), limit=1
        ).records[0]


@contextmanager
def copied(pipeline: DagsterPipeline, home: Path) -> Iterator[DagsterPipeline]:
    """A pipeline that was closed, as it was then, in a home of its own: a run takes longer than a copy."""
    shutil.copytree(pipeline.settings.home, home, dirs_exist_ok=True)
    with open_folder(home / "dagster") as instance:
        copy = DagsterPipeline(home, instance)
        copy.feeds, copy.clock.now = list(pipeline.feeds), pipeline.clock.now
        yield copy
        copy.close()
