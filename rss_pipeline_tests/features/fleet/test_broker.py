"""The broker, a real Redis: what is wrong with it is reported with what to do, and without the password."""

import socket

import pytest

from rss_pipeline.errors import BrokerUnavailable
from rss_pipeline.features.fleet import cli
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline_tests.support.services.redis_server import AUTHORITY, PASSWORD, RedisServer
from rss_pipeline_tests.support.up import free_port


def settings(url: str) -> FleetSettings:
    return FleetSettings(broker_url=url, dagster_url="", worker_name="one")


def test_a_broker_that_answers_and_takes_messages_is_fine(running_redis: RedisServer) -> None:
    cli.check_broker(settings(running_redis.url(900)))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:wrong@127.0.0.1:{port}/900", "check user and password in RSS_BROKER_URL"),
        ("redis://127.0.0.1:{port}/900", "check user and password in RSS_BROKER_URL"),
        ("redis://ada:wrong@127.0.0.1:{port}/900", "check user and password in RSS_BROKER_URL"),
        ("redis://:{password}@127.0.0.1:{port}/999999", "correct the number at the end of RSS_BROKER_URL"),
        ("redis://:{password}@127.0.0.1:{free}/0", "no server listens there: start it"),
        ("redis://:{password}@redis.invalid/0", "its name does not resolve"),
    ],
    ids=["wrong password", "none", "a user", "no such database", "nothing there", "no such host"],
)
def test_a_broker_that_cannot_be_used_is_reported_with_what_to_do(
    running_redis: RedisServer, url: str, said: str
) -> None:
    given = url.format(port=running_redis.port, password=PASSWORD, free=free_port())
    with pytest.raises(BrokerUnavailable) as refused:
        cli.check_broker(settings(given))
    assert "the broker cannot be used: " in str(refused.value)
    assert said in str(refused.value)
    assert PASSWORD not in str(refused.value)
    assert "wrong" not in str(refused.value).replace("wrong number", "")


@pytest.mark.parametrize(
    ("scheme", "said"),
    [("redis", "check host and port in RSS_BROKER_URL"), ("rediss", "rediss:// is for one with TLS")],
)
def test_a_broker_that_takes_connections_and_says_nothing_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch, scheme: str, said: str
) -> None:
    monkeypatch.setattr(cli, "ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(BrokerUnavailable, match=said):
            cli.check_broker(settings(f"{scheme}://127.0.0.1:{port}/0"))


def test_a_broker_with_tls_is_trusted_by_its_authority_in_rss_ca_file(redis_with_tls: RedisServer) -> None:
    there = settings(redis_with_tls.url(1))
    assert there.broker_where.startswith("rediss://")
    cli.check_broker(there, ca_file=AUTHORITY)
    with pytest.raises(BrokerUnavailable, match="name its authority in RSS_CA_FILE") as refused:
        cli.check_broker(there)
    assert PASSWORD not in str(refused.value)


def test_a_broker_with_tls_says_so_to_who_comes_without(redis_with_tls: RedisServer) -> None:
    with pytest.raises(BrokerUnavailable, match="check RSS_BROKER_URL"):
        cli.check_broker(settings(redis_with_tls.url(1).replace("rediss://", "redis://")))
