"""The Redis of the tests: a real server that wants its password and keeps databases apart."""

import pytest
from redis import Redis
from redis.exceptions import AuthenticationError

from rss_pipeline_tests.support.services.redis_server import RedisServer


def test_a_redis_of_our_own_answers_who_has_the_password(running_redis: RedisServer) -> None:
    with running_redis.client(11) as client, running_redis.client(12) as other:
        client.set("a", "1")
        assert (client.get("a"), other.get("a")) == (b"1", None)
        client.flushdb()
    with Redis(port=running_redis.port) as stranger, pytest.raises(AuthenticationError):
        stranger.ping()
