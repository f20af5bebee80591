"""The run launcher of a fleet: a run becomes a task in Redis, which a worker executes.

dagster-celery's launcher would send the whole configuration of the instance along, which has paths of this
machine, needs a second store for results, and sends a task before the run knows of it.
https://docs.dagster.io/deployment/execution/run-launchers
"""

import logging
import os
import ssl
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from queue import Empty
from typing import Any, Self
from urllib.parse import urlsplit

import dagster as dg
from celery import Celery
from kombu.exceptions import OperationalError
from kombu.transport import redis

from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.features.fleet.model import DEFAULT
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.orchestration.dagster_private import (
    ConfigurableClass,
    ConfigurableClassData,
    DagsterUserCodeUnreachableError,
    LaunchRunContext,
    RunLauncher,
    make_new_run_id,
)
from rss_pipeline.orchestration.queueing import QUEUE_TAG
from rss_pipeline.settings import Settings

TASK_TAG = "dagster-celery/task_id"
"""A tag of each run that was launched: the id of its task."""
_NOT_BEGUN = (dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.STARTING)


class FleetRunLauncher(RunLauncher[dg.DagsterInstance], ConfigurableClass):
    """Sends the ids of runs to the workers of a fleet."""

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        self._inst_data = inst_data
        super().__init__()  # type: ignore[no-untyped-call]

    @property
    def inst_data(self) -> ConfigurableClassData | None:
        return self._inst_data

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        return {}

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData, config_value: Mapping[str, Any]) -> Self:
        return cls(inst_data=inst_data, **config_value)

    @cached_property
    def _app(self) -> Celery:
        settings = Settings.from_environ(os.environ, cwd=Path.cwd())
        if (fleet := settings.of(FleetSettings)) is None:
            raise SettingsError(SettingMistake(("RSS_BROKER_URL",), "not set, but dagster.yaml is a fleet's"))
        return new_app(settings, fleet)

    def launch_run(self, context: LaunchRunContext) -> None:
        """Send the run's id to its queue.

        Raises:
            DagsterUserCodeUnreachableError: Redis does not take it now. The daemon puts the run back into
                the queue, for this error only.
        """
        run = context.dagster_run
        # Before it is sent: a worker may have it, and a person may cancel it, a moment later.
        task_id = make_new_run_id()
        self._instance.add_run_tags(run.run_id, {TASK_TAG: task_id})
        queue = run.tags.get(QUEUE_TAG, DEFAULT)
        try:
            self._app.send_task(TASK, args=[run.run_id], task_id=task_id, queue=queue)
        except OperationalError as error:
            raise DagsterUserCodeUnreachableError(
                f"The broker (RSS_BROKER_URL) does not answer: {error}. The run waits in the queue."
            ) from error
        self._instance.report_engine_event(
            f"Sent to the workers, in the queue `{queue}`.", run, cls=self.__class__
        )

    def terminate(self, run_id: str) -> bool:
        """Cancel the run: at once where no worker has begun it, else by a signal to its process."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished:
            return False
        waits = run.status in _NOT_BEGUN
        self._instance.report_run_canceling(run)
        if TASK_TAG in run.tags:
            try:
                self._app.control.revoke(run.tags[TASK_TAG], terminate=True, signal="SIGTERM")
            except OperationalError as error:
                message = f"The worker got no message: the broker does not answer ({error})."
                self._instance.report_engine_event(message, run, cls=self.__class__)
        if waits:
            # No worker executes a run that has ended (execute_run.py).
            self._instance.report_run_canceled(run)
        return True


# The Celery app of a fleet: its queues, and how tasks are delivered.
#
# The task is execute_run.py's; the daemon sends it (launcher.py), consumers of workers take it (consumer.py).
# https://docs.celeryq.dev/en/stable/userguide/configuration.html

_logger = logging.getLogger(__name__)

TASK = "rss_pipeline.execute_run"
"""Its only argument is the id of a run."""

VISIBILITY_SECONDS = 4 * 3600
"""After which Redis delivers a task again that its worker did not report as done: above the two hours after
which Dagster ends a run."""


_OF_OTHERS = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")
"""Variables of the shell that Celery takes for the broker before any setting of ours."""


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
    for name in _OF_OTHERS:
        os.environ.pop(name, None)
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
