"""The Celery app of a fleet: its queues, and how tasks are delivered.

The task is execute_run.py's; the daemon sends it (launcher.py), consumers of workers take it (consumer.py).
https://docs.celeryq.dev/en/stable/userguide/configuration.html
"""

import logging
import ssl
from queue import Empty
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from kombu.transport import redis

from rss_pipeline.features.fleet.machines import DEFAULT
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.settings import Settings

_logger = logging.getLogger(__name__)

TASK = "rss_pipeline.execute_run"
"""Its only argument is the id of a run."""

VISIBILITY_SECONDS = 4 * 3600
"""After which Redis delivers a task again that its worker did not report as done: above the two hours after
which Dagster ends a run."""


class _Channel(redis.Channel):
    """A channel that leaves out what is no message; kombu ends the consumer at it."""

    def _brpop_read(self, **options: Any) -> bool:
        try:
            return bool(super()._brpop_read(**options))  # type: ignore[no-untyped-call]
        # Whatever its bytes: no JSON, no object, without the parts of a message.
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            _logger.error("the broker had a message that cannot be read, and it is left out: %r", error)
            raise Empty from error


def new_app(settings: Settings, fleet: FleetSettings) -> Celery:
    """The app for this broker. No connection is opened."""
    redis.Transport.Channel = _Channel
    app = Celery("rss_pipeline", broker=fleet.broker_url, set_as_current=False)
    app.conf.update(
        task_default_queue=DEFAULT,
        # A task is done when its run has ended: that of a worker that dies is delivered again.
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        # A worker takes no task that it has no place for.
        worker_prefetch_multiplier=1,
        # Each run has a process of its own, forked from one that has everything imported.
        worker_max_tasks_per_child=1,
        # The state of a run is in Dagster's tables, and nowhere else.
        task_ignore_result=True,
        accept_content=["json"],
        worker_enable_remote_control=True,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_publish_retry_policy={"max_retries": 2, "interval_start": 0.2, "interval_step": 0.5},
        broker_transport_options={
            "visibility_timeout": VISIBILITY_SECONDS,
            # A connection that a network lost is noticed within seconds.
            "socket_keepalive": True,
            "socket_connect_timeout": 5,
            "health_check_interval": 10,
        },
    )
    if urlsplit(fleet.broker_url).scheme == "rediss":
        authorities = None if settings.ca_file is None else str(settings.ca_file)
        app.conf.broker_use_ssl = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_ca_certs": authorities}
    return app
