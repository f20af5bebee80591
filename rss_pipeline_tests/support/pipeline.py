"""A whole pipeline in a folder of its own: settings, registry, stores, instance, and a clock one can turn.

With `d1` and `r2` among the settings its state is in Cloudflare, and the folder holds the rest.

Real parts throughout: the job runs in this process as `rss-pipeline poll` runs it, against loopback servers.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.orchestration.in_process import poll_in_process
from rss_pipeline.orchestration.registry_partitions import register
from rss_pipeline.orchestration.reporting.asset_keys import FEED_ITEMS
from rss_pipeline.pipeline.registry.sync import RegistrySync, sync_registry
from rss_pipeline.pipeline.visits.rounds import Round
from rss_pipeline.progress import Progress
from rss_pipeline.settings import D1Settings, R2Settings, Settings
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.feeds import claims
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline.storage.schema import migrate
from rss_pipeline_tests.support.cloudflare import Cloudflare

NOON = datetime(2026, 3, 2, 12, 0, 0, tzinfo=UTC)


@contextmanager
def new_instance(home: Path) -> Iterator[dg.DagsterInstance]:
    """A Dagster of its own, on disk, in the folder `dagster` of a home."""
    folder = home / "dagster"
    folder.mkdir(parents=True)
    (folder / "dagster.yaml").write_text("telemetry: {enabled: false}\n", "utf-8")
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        yield instance


class Clock:
    """A clock that stands until it is turned."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def turn(self, **by: float) -> None:
        self.now += timedelta(**by)


class Pipeline:
    """One installation. `feeds` is what feeds.yaml lists; `poll` writes it and runs the poll job."""

    def __init__(self, home: Path, instance: dg.DagsterInstance, **settings: Any) -> None:
        self.clock = Clock()
        self.instance = instance
        self.settings = Settings(
            home=home,
            feeds_file=home / "feeds.yaml",
            user_agent="rss_pipeline/test",
            **{"host_delay_seconds": 0.0, "parse_workers": 1, **settings},
        )
        self.database = connect(self.settings)
        migrate(self.database)
        self.objects = open_objects(self.settings)
        self.keys_added = 0
        self.feeds: list[dict[str, Any]] = []

    def register(self, url: str, id: str, **options: Any) -> str:
        """Add a feed to the registry; gives its id."""
        self.feeds.append({"url": url, "id": id, "allow_private": True, **options})
        self.write_registry()
        return id

    def write_registry(self) -> None:
        self.settings.feeds_file.write_text(yaml.safe_dump({"feeds": self.feeds}), "utf-8")

    def sync(self, *, yes: bool = False, environ: Mapping[str, str] | None = None) -> RegistrySync:
        synced = sync_registry(self.database, self.settings, now=self.clock(), yes=yes, environ=environ)
        self.keys_added = register(self.database, self.instance, synced)
        return synced

    def definitions(
        self, *, progress: Progress | None = None, resources: Mapping[str, Any] | None = None
    ) -> dg.Definitions:
        return build_definitions(
            self.settings, clock=self.clock, progress=progress, resource_overrides=resources
        )

    def poll(
        self,
        *feeds: str,
        all_feeds: bool = False,
        progress: Progress | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> list[Round]:
        """Poll until nothing is due. Each call comes a second after the one before.

        Raises an AssertionError where a run fails; `try_poll` does not.
        """
        rounds = self.try_poll(*feeds, all_feeds=all_feeds, progress=progress, resources=resources)
        errors = [round_.error for round_ in rounds if round_.error is not None]
        assert not errors, errors[0]
        return rounds

    def try_poll(
        self,
        *feeds: str,
        all_feeds: bool = False,
        progress: Progress | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> list[Round]:
        """`poll`, for runs that may fail."""
        self.clock.turn(seconds=1)
        return list(
            poll_in_process(
                self.definitions(progress=progress, resources=resources),
                self.instance,
                self.database,
                clock=self.clock,
                feeds=feeds,
                all_feeds=all_feeds,
            )
        )

    def download(self, *, resources: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Run the job `download_images`; gives the metadata of its materialization.

        Raises an AssertionError where the run fails; `try_download` does not.
        """
        result = self.try_download(resources=resources)
        assert result.success, [event.event_specific_data for event in result.all_node_events][-1]
        (event,) = result.asset_materializations_for_node("item_images")
        return {name: value.value for name, value in event.metadata.items()}

    def try_download(self, *, resources: Mapping[str, Any] | None = None) -> dg.ExecuteInProcessResult:
        """`download`, for runs that may fail. Each call comes a second after the one before."""
        self.clock.turn(seconds=1)
        job = self.definitions(resources=resources).resolve_job_def("download_images")
        return job.execute_in_process(instance=self.instance, raise_on_error=False)

    def materialize(self, *ids: str, raise_on_error: bool = False) -> dg.ExecuteInProcessResult:
        """The asset's door: a run over these keys, which must be neighbours in the order of keys."""
        job = self.definitions().resolve_implicit_global_asset_job_def()
        tags = {
            "dagster/asset_partition_range_start": ids[0],
            "dagster/asset_partition_range_end": ids[-1],
        }
        return job.execute_in_process(
            instance=self.instance,
            raise_on_error=raise_on_error,
            tags=tags if len(ids) > 1 else None,
            partition_key=ids[0] if len(ids) == 1 else None,
        )

    def rows(self, sql: str, *params: str) -> list[dict[str, Any]]:
        return self.database.query(sql, params).rows

    def feed(self, id: str) -> dict[str, Any]:
        (row,) = self.rows("SELECT * FROM feeds WHERE id = ?", id)
        return row

    def items(self, id: str) -> list[dict[str, Any]]:
        return self.rows("SELECT * FROM items WHERE feed_id = ? ORDER BY guid", id)

    def guids(self, id: str) -> list[str]:
        return [row["guid"] for row in self.items(id)]

    def tasks(self) -> list[str]:
        return [row["original_url"] for row in self.rows("SELECT * FROM image_tasks ORDER BY original_url")]

    def backups(self, id: str) -> list[str]:
        return [info.key for info in self.objects.list(f"backups/{id}/")]

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

    def latest_record(self, id: str) -> Any:
        """The feed's newest materialization, as the event log has it."""
        return self.instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=FEED_ITEMS, asset_partitions=[id]), limit=1
        ).records[0]

    def set(self, **settings: Any) -> None:
        """Change settings for the runs to come."""
        self.settings = replace(self.settings, **settings)

    def hold(self, *ids: str) -> claims.Claim:
        """Claim these feeds as another run would."""
        wanted = Named(ids=ids, now=self.clock())
        return claims.claim(self.database, wanted, run_id="another", lease_seconds=180, limit=len(ids))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Do something while a run of this thread is under way."""
        threading.Timer(seconds, act).start()

    def lapse_leases(self) -> None:
        """As if every lease's time were over: what waiting three minutes would do."""
        self.database.query("UPDATE leases SET expires_at = '2000-01-01T00:00:00Z'")

    def close(self) -> None:
        self.database.close()


def on_cloudflare(cloudflare: Cloudflare) -> dict[str, Any]:
    """The settings of a Pipeline that keeps its state there. Runs read the secrets from the environment."""
    return {
        "d1": D1Settings(url=cloudflare.url, token=cloudflare.token),
        "r2": R2Settings(
            endpoint_url=cloudflare.s3_endpoint,
            bucket=cloudflare.bucket,
            access_key_id=cloudflare.access_key,
            secret_access_key=cloudflare.secret_key,
        ),
    }


def rss(*guids: str, title: str = "A feed", image: str | None = None) -> bytes:
    """An RSS 2.0 document with an item a guid, each with an image where one is named."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{guid}</guid><title>Title of {guid}</title>"
        f"<link>http://example.com/{guid}</link><pubDate>Mon, 02 Mar 2026 08:00:00 GMT</pubDate>"
        f"<description><![CDATA[<p>Text of {guid}</p>{_image(image, guid)}]]></description></item>"
        for guid in guids
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>'
        f"<title>{title}</title><link>http://example.com/</link>{items}</channel></rss>"
    ).encode()


def _image(image: str | None, guid: str) -> str:
    return "" if image is None else f'<img src="{image}/{guid}.png">'


def ends(rounds: Sequence[Round], where: Callable[[Any], Any]) -> list[Any]:
    """`where` of every visit of these rounds."""
    return [where(visit) for round_ in rounds for visit in round_.visits]
