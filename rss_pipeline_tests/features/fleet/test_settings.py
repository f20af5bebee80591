"""The settings of several machines: their variables, what is wrong with them, and the servers they name."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.pipeline.session.this_machine import own_servers
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline_tests.test_settings import D1, POSTGRES, refusal, settings

SETTINGS = Settings(home=Path(), feeds_file=Path("feeds.yaml"), user_agent="x")
BROKER = "redis://:hunter2@broker.example:6380/1"


def fleet_of(**environ: str) -> FleetSettings | None:
    return settings(**{"DATABASE_URL": POSTGRES, "RSS_BROKER_URL": BROKER, **environ}).of(FleetSettings)


def test_several_machines_have_a_broker_and_keep_dagster_s_tables_beside_ours() -> None:
    assert (settings().runs_elsewhere, settings().shards) == (None, 1)
    named = {"RSS_WORKER_NAME": "worker-7", "RSS_WORKER_RUNS": "3", "RSS_SHARDS": "12"}
    found = settings(DATABASE_URL=POSTGRES, RSS_BROKER_URL=BROKER, **named)
    fleet = found.of(FleetSettings)
    assert fleet == FleetSettings(
        broker_url=BROKER,
        dagster_url=f"{POSTGRES.replace('://', '+psycopg2://')}&options=-ctimezone%3DUTC%20-csearch_path%3Ddagster",
        worker_name="worker-7",
        worker_runs=3,
    )
    assert found.shards == 12
    assert fleet.broker_where == "redis://broker.example:6380/1"
    assert "hunter2" not in f"{found!r} {fleet!r} {fleet.broker_where}"


@pytest.mark.parametrize(
    ("ours", "dagster"),
    [
        ("postgres:///feeds?host=/run/pg", "postgresql+psycopg2:///feeds?host=%2Frun%2Fpg&options=-ctimezone%3DUTC%20-csearch_path%3Ddagster"),
        ("postgresql://h/f?options=-cwork_mem%3D8MB", "postgresql+psycopg2://h/f?options=-cwork_mem%3D8MB%20-ctimezone%3DUTC%20-csearch_path%3Ddagster"),
    ],
    ids=["by a socket", "with options"],
)  # fmt: skip
def test_dagster_s_tables_have_a_schema_of_their_own(ours: str, dagster: str) -> None:
    fleet = fleet_of(DATABASE_URL=ours)
    assert fleet is not None
    assert fleet.dagster_url == dagster


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg2"])
def test_dagster_s_tables_may_be_in_another_database(scheme: str) -> None:
    other = f"{scheme}://d:hunter2@other.example/dagster"
    fleet = settings(DATABASE_URL=POSTGRES, RSS_BROKER_URL=BROKER, DAGSTER_DATABASE_URL=other).of(
        FleetSettings
    )
    assert fleet is not None
    wanted = "postgresql+psycopg2://d:hunter2@other.example/dagster?options=-ctimezone%3DUTC"
    assert fleet.dagster_url == wanted
    assert fleet.schema is None
    # As the processes have it that `up` starts.
    again = settings(DATABASE_URL=POSTGRES, RSS_BROKER_URL=BROKER, DAGSTER_DATABASE_URL=wanted).of(
        FleetSettings
    )
    assert again == fleet


def test_a_worker_is_named_for_its_host() -> None:
    fleet = fleet_of()
    assert fleet is not None
    assert (fleet.worker_name, fleet.worker_runs) == (socket.gethostname(), 2)


@pytest.mark.parametrize(
    ("environ", "mistake"),
    [
        ({"RSS_BROKER_URL": BROKER}, "DATABASE_URL: not set, but RSS_BROKER_URL is; several machines share"),
        ({"RSS_BROKER_URL": BROKER, **D1}, "DATABASE_URL: not set, but RSS_BROKER_URL is; "),
        ({"DAGSTER_DATABASE_URL": POSTGRES}, "DAGSTER_DATABASE_URL: set, but not RSS_BROKER_URL; "),
        ({"RSS_WORKER_NAME": "a b"}, 'RSS_WORKER_NAME: "a b" cannot be used; write at most 63 letters'),
        ({"RSS_WORKER_RUNS": "0"}, 'RSS_WORKER_RUNS: "0" cannot be used; write a whole number from 1 to 64'),
        ({"RSS_SHARDS": "1025"}, 'RSS_SHARDS: "1025" cannot be used; write a whole number from 1 to 1,024'),
    ],
)
def test_mistakes_in_the_settings_of_several_machines_are_named(
    environ: dict[str, str], mistake: str
) -> None:
    text = refusal(**environ)
    assert text.startswith(mistake)
    assert "hunter2" not in text
    assert len(text.splitlines()) == 1


@pytest.mark.parametrize(
    "url",
    ["broker:6379", "amqp://u:hunter2@h", "redis://hunter2@:6379", "redis://h:0", "redis://h/a", "redis://["],
)
def test_a_broker_that_is_no_redis_is_refused_unseen(url: str) -> None:
    text = refusal(DATABASE_URL=POSTGRES, RSS_BROKER_URL=url)
    assert text.startswith(
        "RSS_BROKER_URL: not the URL of a Redis; write redis://[:password@]host:6379/0, and"
    )


def test_the_servers_of_a_fleet_are_known_and_their_usual_ports() -> None:
    fleet = FleetSettings(
        broker_url="rediss://:x@redis.lan/0",
        dagster_url="postgresql+psycopg2://d:x@other.lan:6432/dagster",
        worker_name="one",
    )
    settings = replace(
        SETTINGS, database_server=PostgresBackend(url="postgresql://rss:x@db.lan/rss"), of_features=(fleet,)
    )
    found = [(server.host, server.port) for server in own_servers(settings)]
    assert found[2:] == [("db.lan", 5432), ("redis.lan", 6379), ("other.lan", 6432)]
    by_socket = replace(
        settings, database_server=PostgresBackend(url="postgresql:///rss?host=/run/pg"), of_features=()
    )
    assert len(list(own_servers(by_socket))) == 2
