"""A process of a worker that takes runs from a queue, and executes so many of them at once.

    python -m rss_pipeline.orchestration.fleet.consumer QUEUE RUNS [TAG=VALUE ...]

Each run gets the tags. SIGTERM and SIGINT end it: it takes no more runs, interrupts those that it executes,
and waits until they have released their claims. What starts it is the worker.
"""

import gc
import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from celery import Celery
from celery.signals import worker_shutting_down
from celery.worker import state
from dotenv import load_dotenv

from rss_pipeline.errors import SettingMistake, SettingsError
from rss_pipeline.orchestration.fleet.app import TASK, new_app
from rss_pipeline.orchestration.fleet.execute_run import execute_run
from rss_pipeline.orchestration.instance.home import prepare_home
from rss_pipeline.orchestration.queueing import WORKER_TAG
from rss_pipeline.settings import Settings


def consume(settings: Settings, queue: str, runs: int, tags: Mapping[str, str]) -> None:
    """Take runs from this queue until this process is ended."""
    fleet = settings.fleet
    if fleet is None:
        raise SettingsError(SettingMistake(("RSS_BROKER_URL",), "not set; a worker takes its runs from it"))
    prepare_home(settings)
    app = new_app(settings, fleet)
    _add_task(app, {WORKER_TAG: fleet.worker_name, **tags})
    # The processes of runs are forked from this one: what it has imported, they have.
    import_module("rss_pipeline.definitions")
    gc.collect()
    gc.freeze()
    worker = app.Worker(
        hostname=f"{queue}@{fleet.worker_name}",
        queues=[queue],
        concurrency=runs,
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
        # Without its banner of thirty lines.
        quiet=True,
    )
    worker.start()
    sys.exit(worker.exitcode)


def _add_task(app: Celery, tags: Mapping[str, str]) -> None:
    @app.task(name=TASK)  # type: ignore[untyped-decorator]
    def task(run_id: str) -> None:
        # Celery's processes are daemons, which may have no children; a run has its parsers.
        multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
        execute_run(run_id, tags=tags)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _interrupt_runs(**_: Any) -> None:
    for request in tuple(state.active_requests):
        with suppress(ProcessLookupError):
            if request.worker_pid is not None:
                os.kill(request.worker_pid, signal.SIGTERM)


def main(arguments: Sequence[str]) -> None:
    """The process."""
    logging.basicConfig(format="%(asctime)s %(name)s: %(message)s")
    # Each line that a run logs for its reader in the UI would be here as well.
    logging.getLogger().handlers[0].setLevel(logging.WARNING)
    queue, runs, *tags = arguments
    load_dotenv(Path.cwd() / ".env")
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    consume(settings, queue, int(runs), dict(tag.split("=", 1) for tag in tags))


if __name__ == "__main__":
    main(sys.argv[1:])
