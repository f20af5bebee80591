"""Run config reaches no store and no environment variable, whoever writes it.

Which requests may start a run at all is tested in web/test_same_origin.py and cli/up/up_doors.py.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._config import DagsterEvaluationErrorReason
from dagster._config.config_type import ConfigType, ConfigTypeKind
from dagster._core.remote_representation.external_data import (
    RepositorySnap,
    ResourceConfigEnvVarSnap,
)

from rss_pipeline.downstream import feed_reader_resource
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

TOKEN, SECRET = "token-0123456789", "secret-9876543210"
STRANGER = "127.0.0.9"
CLOUDFLARE = {
    "D1_PROXY_URL": "https://d1.example",
    "D1_PROXY_TOKEN": TOKEN,
    "R2_ENDPOINT_URL": "https://r2.example",
    "R2_BUCKET": "rss",
    "R2_ACCESS_KEY_ID": "key",
    "R2_SECRET_ACCESS_KEY": SECRET,
}


@pytest.fixture(params=["embedded", "cloudflare"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    environ = CLOUDFLARE if request.param == "cloudflare" else {}
    return Settings.from_environ({"RSS_PIPELINE_HOME": str(tmp_path), **environ}, cwd=tmp_path)


def leaves(found: ConfigType, path: str = "") -> Iterator[tuple[str, ConfigType]]:
    """Every value that a run config may hold, by its place."""
    kind = found.kind
    if ConfigTypeKind.has_fields(kind):
        for name, each in found.fields.items():  # type: ignore[attr-defined]
            yield from leaves(each.config_type, f"{path}.{name}")
    elif kind in (ConfigTypeKind.NONEABLE, ConfigTypeKind.ARRAY):
        yield from leaves(found.inner_type, path)  # type: ignore[attr-defined]
    else:
        yield path, found


def test_no_job_takes_config_for_a_resource_or_the_name_of_an_environment_variable(
    settings: Settings,
) -> None:
    jobs = build_definitions(settings).get_repository_def().get_all_jobs()
    assert len(jobs) >= 5
    for job in jobs:
        found = dict(leaves(job.run_config_schema.config_type))
        assert [path for path in found if path.startswith(".resources")] == [], job.name
        assert [path for path, each in found.items() if each.kind == ConfigTypeKind.SCALAR_UNION] == []
        # What is open is what the launchpad describes, and how much a run logs.
        own = {path.rpartition(".")[2] for path, each in found.items() if each.kind != ConfigTypeKind.ANY}
        assert own <= {
            *("feeds", "all", "not_visited_since", "dry_run", "yes", "days", "repair", "later", "topics"),
            *("shard", "shards"),
            *("log_level", "name", "marker_to_close", "require_upstream_step_success"),
        }, job.name


def test_the_resource_s_page_shows_what_is_used_and_the_secrets_by_name(settings: Settings) -> None:
    snapshot = RepositorySnap.from_def(build_definitions(settings).get_repository_def())
    assert snapshot.resources is not None
    shown = {each.name: each for each in snapshot.resources}
    database, objects = shown["database"], shown["objects"]
    if not settings.pays_by_row:
        assert database.resource_type.endswith("SqliteResource")
        assert database.configured_values == {"path": f'"{settings.database_path}"'}
        assert objects.configured_values == {"root": f'"{settings.objects_path}"'}
        return
    assert database.resource_type.endswith("D1Resource")
    assert {field.name for field in database.config_field_snaps} == {"url", "token", "ca_file"}
    assert database.configured_values == {
        "url": '"https://d1.example"',
        "token": ResourceConfigEnvVarSnap(name="D1_PROXY_TOKEN"),
    }
    assert objects.configured_values["secret_access_key"] == ResourceConfigEnvVarSnap(
        name="R2_SECRET_ACCESS_KEY"
    )
    assert objects.configured_values["bucket"] == '"rss"'


def test_no_run_sends_the_token_or_a_variable_to_another_server(
    tmp_path: Path, instance: dg.DagsterInstance, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both requests arrived when D1's resource took its URL from run config."""
    monkeypatch.setenv("D1_PROXY_TOKEN", TOKEN)
    monkeypatch.setenv("ANY_VARIABLE", SECRET)
    server.listen(STRANGER)
    server.listen("127.0.0.2")
    environ = {
        "D1_PROXY_URL": server.url("127.0.0.2", ""),
        "D1_PROXY_TOKEN": TOKEN,
        "RSS_PIPELINE_HOME": str(tmp_path),
    }
    settings = Settings.from_environ(environ, cwd=tmp_path)
    job = build_definitions(settings).resolve_job_def("poll_feeds")
    for variable in ("D1_PROXY_TOKEN", "ANY_VARIABLE"):
        config = {"url": server.url(STRANGER, "/"), "token": {"env": variable}}
        with suppress(dg.DagsterInvalidConfigError):
            job.execute_in_process(
                instance=instance,
                run_config={"resources": {"database": {"config": config}}},
                raise_on_error=False,
            )
        assert server.asked(STRANGER) == []
    assert instance.get_runs() == []


def test_no_run_writes_to_another_file_or_folder(
    tmp_path: Path, pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    elsewhere = tmp_path / "elsewhere"
    definitions = pipeline.definitions()
    for name, resource, field in (
        ("poll_feeds", "database", "path"),
        ("poll_feeds", "objects", "root"),
        ("download_images", "io_manager", "base_dir"),
    ):
        config = {"resources": {resource: {"config": {field: str(elsewhere / field)}}}}
        refused(definitions.resolve_job_def(name), pipeline.instance, config)
    assert not elsewhere.exists()
    assert server.requests == []


def test_no_op_puts_a_variable_into_its_error_message(
    pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("D1_PROXY_TOKEN", TOKEN)
    job = pipeline.definitions().resolve_job_def("poll_feeds")
    for config in (
        {"feeds": [{"env": "D1_PROXY_TOKEN"}]},
        {"not_visited_since": {"env": "D1_PROXY_TOKEN"}},
        {"all": {"env": "D1_PROXY_TOKEN"}},
    ):
        refused(job, pipeline.instance, {"ops": {"claim": {"config": config}}})
    records = [
        record.message
        for run in pipeline.instance.get_runs()
        for record in pipeline.instance.all_logs(run.run_id)
    ]
    assert [message for message in records if TOKEN in message] == []


def test_the_reader_of_other_projects_takes_no_config(
    tmp_path: Path, instance: dg.DagsterInstance, pipeline: DagsterPipeline
) -> None:
    @dg.op(required_resource_keys={"feed_reader"})
    def read(context: dg.OpExecutionContext) -> None:
        assert list(context.resources.feed_reader.feeds()) == []

    @dg.job(resource_defs={"feed_reader": feed_reader_resource(pipeline.settings)})
    def reading() -> None:
        read()

    refused(reading, instance, {"resources": {"feed_reader": {"config": {"database": "elsewhere"}}}})
    assert reading.execute_in_process(instance=instance).success


def refused(job: dg.JobDefinition, instance: dg.DagsterInstance, config: dict[str, Any]) -> None:
    """Start a run with this config; it must be refused before anything is opened."""
    with pytest.raises(dg.DagsterInvalidConfigError) as refusal:
        job.execute_in_process(instance=instance, run_config=config, raise_on_error=False)
    # Not because a variable could not be read.
    reasons = {error.reason for error in refusal.value.errors}
    assert DagsterEvaluationErrorReason.FAILED_POST_PROCESSING not in reasons
