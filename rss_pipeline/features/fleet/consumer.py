"""A process of a worker that takes runs from a queue, and executes so many of them at once.

    python -m rss_pipeline.features.fleet.consumer WORKER QUEUE RUNS [TAG=VALUE ...]

Each run gets the tags. After SIGINT it takes no more runs, and ends with those that it executes; SIGTERM
interrupts these as well, and they release their claims. It ends with the worker (worker.py), which has this
process id, also where that was killed before this process could look at its parent.
"""

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing import process
from pathlib import Path
from typing import Any

from celery import Celery
from celery.exceptions import Reject
from celery.signals import worker_shutting_down
from celery.worker import state

from rss_pipeline.environment import load_env_file
from rss_pipeline.errors import JoinRefused, SettingMistake, SettingsError
from rss_pipeline.features.fleet.execute_run import execute_run
from rss_pipeline.features.fleet.launcher import TASK, new_app
from rss_pipeline.features.fleet.membership import code_version
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.fleet.worker import IN_PEACE, INTERRUPTING, LOOK_SIGNAL, STOP_SECONDS
from rss_pipeline.orchestration.instance.home import prepare_home
from rss_pipeline.orchestration.queueing import WORKER_TAG
from rss_pipeline.settings import Settings

_LOOK_SECONDS = 1.0
_LEFT_SECONDS = 2.0
"""Before a run is released that an outdated worker may not execute: it would take it again at once."""

_MAIN = process.current_process()
"""As Python's multiprocessing has it."""
_logger = logging.getLogger(__name__)


def consume(settings: Settings, queue: str, runs: int, tags: Mapping[str, str], *, worker: int) -> None:
    """Take runs from this queue until this process is ended, or the worker with this id is."""
    fleet = settings.of(FleetSettings)
    if fleet is None:
        raise SettingsError(SettingMistake(("RSS_BROKER_URL",), "not set; a worker takes its runs from it"))
    threading.Thread(target=_end_with, args=(worker,), name="look at the worker", daemon=True).start()
    prepare_home(settings)
    app = new_app(settings, fleet)
    _add_task(app, settings, {WORKER_TAG: fleet.worker_name, **tags}, worker=worker)
    # What this process has imported, not what an update has put in its place since.
    code_version()
    # The processes of runs are forked from this one: what it has imported, they have.
    import_module("rss_pipeline.definitions")
    gc.collect()
    gc.freeze()
    if os.getppid() != worker:
        return
    consumer = app.Worker(
        hostname=f"{queue}@{fleet.worker_name}",
        queues=[queue],
        concurrency=runs,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        # Without its banner of thirty lines.
        quiet=True,
    )
    consumer.start()
    sys.exit(consumer.exitcode)


def _add_task(app: Celery, settings: Settings, tags: Mapping[str, str], *, worker: int) -> None:
    @app.task(name=TASK)  # type: ignore[untyped-decorator]
    def task(run_id: str) -> None:
        # Celery's processes are daemons of a multiprocessing of its own, which has put itself in the place of
        # Python's. A run starts parsers, which needs Python's, and a process that is no daemon.
        process._current_process = _MAIN  # type: ignore[attr-defined]
        try:
            execute_run(run_id, settings=settings, tags=tags)
        except JoinRefused as outdated:
            # Another worker executes it. The worker sees for itself that it is outdated, and ends.
            _logger.warning("run %s is left to other workers: %s", run_id, outdated)
            with suppress(ProcessLookupError):
                os.kill(worker, LOOK_SIGNAL)
            time.sleep(_LEFT_SECONDS)
            raise Reject(requeue=True) from outdated
        # Whatever the database's client, or Dagster's, raises where it is away. An error of the run itself is
        # in the run's events, and none here.
        except Exception as error:
            _logger.warning("run %s is tried again, if it did not begin: %r", run_id, error)
            time.sleep(_LEFT_SECONDS)
            raise Reject(requeue=True) from error


def _end_with(worker: int) -> None:
    """End this process when its worker was killed: nothing else would."""
    while os.getppid() == worker:
        time.sleep(_LOOK_SECONDS)
    _logger.error("the worker was killed: its consumer ends")
    os.kill(os.getpid(), INTERRUPTING)
    # As the worker would do: Celery hears no signal while it starts, or while it waits for its broker.
    time.sleep(STOP_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _interrupt_runs(sig: str, **_: Any) -> None:
    if sig == IN_PEACE.name:
        return
    for request in tuple(state.active_requests):
        with suppress(ProcessLookupError):
            if request.worker_pid is not None:
                os.kill(request.worker_pid, signal.SIGTERM)


def main(arguments: Sequence[str]) -> None:
    """The process."""
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    # Each line that a run logs for its reader in the UI would be here as well.
    logging.getLogger().handlers[0].setLevel(logging.WARNING)
    worker, queue, runs, *tags = arguments
    load_env_file(Path.cwd())
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    consume(settings, queue, int(runs), dict(tag.split("=", 1) for tag in tags), worker=int(worker))


if __name__ == "__main__":
    main(sys.argv[1:])
