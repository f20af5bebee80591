"""The daemon of `rss-pipeline up`: Dagster's, with our code location inside it.

`dagster-daemon run` has no place for a location without a code server. services.py starts this process. A
thread beside it prints a line for each run, wakes sensors, and lets them go on where the clock was put back.
https://docs.dagster.io/deployment/execution/dagster-daemon
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import dagster as dg

from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline.orchestration.dagster_private import (
    DagsterDaemon,
    IntervalDaemon,
    capture_interrupts,
    configure_loggers,
    create_daemons_from_instance,
    daemon_controller_from_instance,
    setup_interrupt_handlers,
)
from rss_pipeline.orchestration.instance.clock_shift import WallClock, heal_ticks
from rss_pipeline.orchestration.run_launcher import queue_again
from rss_pipeline.orchestration.serving.beats import BEAT, OnBeats
from rss_pipeline.orchestration.serving.locations import Locations
from rss_pipeline.orchestration.serving.run_lines import RunLines, print_lines
from rss_pipeline.orchestration.serving.warmed import opened
from rss_pipeline.orchestration.wakes import waking
from rss_pipeline.settings import Settings

HEARTBEAT_SECONDS = 300
"""The UI calls a daemon unhealthy after half an hour without one. Each is a commit, of six daemons."""
LOG_LEVEL = "warning"
"""Its other messages are those of every tick of every sensor."""
LOOK_SECONDS = 1.0

_logger = logging.getLogger("dagster")


def serve(workspace: Path, settings: Settings) -> int:
    """Run the daemon of the instance of DAGSTER_HOME until this process is interrupted; return 0."""
    with capture_interrupts(), opened() as instance:
        queue_again(instance)
        _serve(instance, workspace, settings)
    return 0


def _serve(instance: dg.DagsterInstance, workspace: Path, settings: Settings) -> None:
    with (
        daemon_controller_from_instance(
            instance,
            workspace_load_target=Locations(workspace),
            heartbeat_interval_seconds=HEARTBEAT_SECONDS,
            gen_daemons=lambda it: on_beats(create_daemons_from_instance(it)),
            log_level=LOG_LEVEL,
            code_server_log_level=LOG_LEVEL,
        ) as controller,
        _looking(
            print_lines(RunLines(instance, began=datetime.now(UTC)), home=settings.dagster_home),
            waking(instance, settings),
            healed(instance),
        ),
    ):
        controller.check_daemon_loop()


def on_beats(daemons: Iterable[DagsterDaemon[Any]]) -> Iterator[DagsterDaemon[Any]]:
    """Yield the same daemons, with waits that end on beats. One with an interval wakes once for each, while
    Dagster's own loop looks twice a second whether it is over."""
    for daemon in daemons:
        every = BEAT
        if isinstance(daemon, IntervalDaemon):
            every = max(BEAT, daemon.interval_seconds)
            # If it began late, on a busy machine, the whole interval would not be over on the next beat, and
            # it would wait for another one.
            daemon.interval_seconds = every / 2
        loop: Any = partial(_core_loop, daemon.core_loop, every)
        daemon.core_loop = loop  # type: ignore[method-assign]
        yield daemon


def _core_loop(
    loop: Callable[..., Iterator[Any]], every: float, context: object, event: threading.Event
) -> Iterator[Any]:
    return loop(context, OnBeats(event, every=every))


@contextmanager
def _looking(*looks: Callable[[], None]) -> Iterator[None]:
    """Call these again and again in a thread, as long as the block."""
    over = threading.Event()
    thread = threading.Thread(target=_look, args=(looks, over), name="looks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(LOOK_SECONDS)


def _look(looks: Sequence[Callable[[], None]], over: threading.Event) -> None:
    while not OnBeats(over).wait(LOOK_SECONDS):
        for look in looks:
            try:
                look()
            # A history that cannot be read now: sensors tick by their intervals meanwhile.
            except Exception as error:  # noqa: BLE001
                _logger.debug("no look beside the daemon: %s", error)


def healed(
    instance: dg.DagsterInstance, *, clock: WallClock | None = None, end: Callable[[], None] | None = None
) -> Callable[[], None]:
    """A function that lets sensors go on if the clock was put back since its last call, and ends the process.

    Dagster's run queue waits by that clock: it would start no run until it is that late again. The daemon is
    started again at once.
    """
    clock, end = clock or WallClock(), end or _interrupted

    def look() -> None:
        if not clock.was_put_back():
            return
        try:
            sensors = heal_ticks(instance, now=utc_now())
        # A history that cannot be read now; the next start heals them.
        except Exception:
            _logger.exception("The clock was put back, and sensors wait until it is that late again.")
        else:
            sys.stderr.write(
                f"The clock was put back; {sensors} sensors go on at once, not when it is that late again.\n"
            )
            sys.stderr.flush()
        end()

    return look


def _interrupted() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run it with the workspace file of the command line."""
    configure_loggers()
    setup_interrupt_handlers()
    try:
        serve(Path(sys.argv[1]), Settings.from_environ(os.environ, cwd=Path.cwd()))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
