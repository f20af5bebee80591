"""Runs of Dagster with their state in Cloudflare: events, and secrets that are shown and written nowhere.

What a poll stores there is proven without Dagster in pipeline/visits/test_cloudflare.py.
"""

import json
import logging
from pathlib import Path

import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from rss_pipeline.orchestration.build_polls import database_resource
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.d1.backend import D1Backend
from rss_pipeline_tests.pipeline.visits.test_cloudflare import register, serve
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline, new_instance
from rss_pipeline_tests.support.pipeline import on_cloudflare, rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.services.cloudflare import Cloudflare


def test_a_second_machine_reports_to_its_own_dagster_what_it_had_never_heard_of(
    tmp_path: Path, away: DagsterPipeline, cloudflare: Cloudflare, server: FeedServer
) -> None:
    away.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"')), "feed")
    away.poll()
    home = tmp_path / "second"
    with new_instance(home) as instance:
        second = DagsterPipeline(home, instance, **on_cloudflare(cloudflare))
        second.register(server.url("127.0.0.2", "/feed"), "feed")
        second.clock.now = away.clock.now
        second.clock.turn(hours=3)
        second.poll()
        server.route("127.0.0.2", "/feed", Answer(body=rss("new", "a"), etag='"2"'))
        second.clock.turn(hours=3)
        second.poll("feed")
        assert [event["items_new"] for event in second.events("feed")] == [1, 0]
        second.close()


def test_the_asset_s_door_leads_to_cloudflare_too(away: DagsterPipeline, server: FeedServer) -> None:
    serve(server)
    register(away, server)
    away.sync()
    assert away.materialize("atom", "doubled").success
    assert not away.materialize("busy").success
    for id, count in (("atom", 2), ("json", 2), ("gbk", 1), ("doubled", 3)):
        [event] = away.events(id)
        assert (event["items_new"], event["backup_key"]) == (count, away.backups(id)[0])
    assert away.guids("gbk") == ["中"]
    assert away.events("rss") == []
    assert away.materialize("gbk").success
    assert [event["items_new"] for event in away.events("gbk")] == [0, 1]


def _files_with(folder: Path, *secrets: str) -> list[str]:
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in secrets)
    ]


@pytest.mark.parametrize("wrong", ["D1_PROXY_TOKEN", "R2_SECRET_ACCESS_KEY", "R2_ACCESS_KEY_ID"])
def test_a_wrong_secret_fails_the_run_and_is_in_no_log_no_event_and_no_file(
    wrong: str,
    away: DagsterPipeline,
    cloudflare: Cloudflare,
    server: FeedServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    serve(server)
    register(away, server)
    monkeypatch.setenv(wrong, "0123456789abcdef-wrong")
    with caplog.at_level(logging.DEBUG, logger="rss_pipeline"):
        [round_] = away.try_poll()
    assert round_.error is not None
    assert f"check {wrong}" in round_.error or f"{wrong} is not the Worker's secret" in round_.error
    assert server.requests == []
    assert away.rows("SELECT token FROM leases") == []
    secrets = (cloudflare.token, cloudflare.secret_key, "0123456789abcdef-wrong")
    captured = capfd.readouterr()
    for text in (round_.error, caplog.text, captured.out, captured.err):
        # An access key's id is no secret, and S3 repeats it.
        assert not any(secret in text for secret in secrets)
    assert _files_with(away.settings.home, *secrets) == []


def test_the_ui_gets_the_names_of_the_secrets_only(away: DagsterPipeline, cloudflare: Cloudflare) -> None:
    snapshot = RepositorySnap.from_def(away.definitions().get_repository_def())
    shown = serialize_value(snapshot)
    for name in ("D1_PROXY_TOKEN", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY"):
        assert name in shown
        assert cloudflare.environ[name] not in shown
    assert cloudflare.url in shown
    assert cloudflare.token not in repr(away.settings)
    assert cloudflare.secret_key not in repr(away.settings)


def test_a_run_trusts_the_authority_that_settings_name(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        feeds_file=tmp_path / "feeds.yaml",
        user_agent="x",
        database_server=D1Backend(url="https://d1.example", token="t", ca_file=tmp_path / "authority.pem"),
    )
    resource = database_resource(settings)
    values = json.loads(resource.config_schema.default_value_as_json_str)
    assert values["ca_file"] == str(tmp_path / "authority.pem")
