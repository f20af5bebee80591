"""Messages of the broker that are none: the consumer goes on with the next one."""

from contextlib import closing
from importlib import import_module
from pathlib import Path
from queue import Empty
from typing import Any

from rss_pipeline.features.fleet.launcher import new_app
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.settings import Settings
from rss_pipeline_tests.support.services.redis_server import RedisServer


def test_what_cannot_be_decoded_is_left_out_and_the_next_message_is_taken(
    running_redis: RedisServer, tmp_path: Path
) -> None:
    url = running_redis.url(7)
    fleet = FleetSettings(broker_url=url, dagster_url="postgresql+psycopg2://x", worker_name="w")
    new_app(Settings.from_environ({}, cwd=tmp_path), fleet)
    # It has no types.
    kombu: Any = import_module("kombu")
    taken: list[object] = []

    def take(body: object, message: Any) -> None:
        taken.append(body)
        message.ack()

    with running_redis.client(7) as client, closing(kombu.Connection(url)) as connection:
        for bad in (b"no json", b"\xff\xfe", b"[]", b"{}", b'{"properties": {}}'):
            client.rpush("queue", bad)
        with connection.Consumer([kombu.Queue("queue")], callbacks=[take]):
            connection.Producer().publish({"run": 1}, routing_key="queue", serializer="json")
            for _ in range(20):
                try:
                    connection.drain_events(timeout=2)
                except (TimeoutError, Empty):
                    continue
                if taken:
                    break
    assert taken == [{"run": 1}]
