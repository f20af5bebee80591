"""The processes of `rss-pipeline worker`: a consumer for each queue, restarted where it ends by itself.

What a consumer does is consumer.py's. No Dagster and no Celery is imported here.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from rss_pipeline.features.fleet.membership import Over
from rss_pipeline.orchestration.serving.restarted import Restarted

LOOK_SECONDS = 0.5
STOP_SECONDS = 60.0
"""Time for interrupted runs to release their claims."""
IN_PEACE, INTERRUPTING = signal.SIGINT, signal.SIGTERM
"""A consumer takes no more runs after either; only the second interrupts those that it executes."""

LOOK_SIGNAL = signal.SIGUSR1
"""To the worker: look at the main machine now, not at the next beat."""

_logger = logging.getLogger(__name__)


class Standing(Protocol):
    """A membership, as far as it is looked at here."""

    @property
    def over(self) -> Over | None: ...


def consumer(queue: str, runs: int, tags: Mapping[str, str]) -> list[str]:
    """The command of a consumer of this process that gives each run these tags."""
    module = "rss_pipeline.features.fleet.consumer"
    given = [f"{name}={value}" for name, value in tags.items()]
    return [sys.executable, "-W", "ignore", "-m", module, str(os.getpid()), queue, str(runs), *given]


def keep_consuming(
    commands: Mapping[str, Sequence[str]],
    standing: Standing,
    signals: Sequence[int],
    *,
    say: Callable[[str], None],
    look: float = LOOK_SECONDS,
    stop: float = STOP_SECONDS,
    monotonic: Callable[[], float] = time.monotonic,
) -> int:
    """Run these commands until there is a signal, or until this machine takes no more runs; return the exit
    code, 0 after a signal.

    After a signal the runs are interrupted and release their claims; after a second one they are killed. A
    machine that is outdated ends its runs in peace.
    """
    consumers = [Restarted(f"The consumer of {queue}", it, in_group=True) for queue, it in commands.items()]
    until: float | None = None
    is_over = False

    def end(number: int) -> None:
        for each in consumers:
            each.let_end(number)

    try:
        for each in consumers:
            each.start()
        while not all(each.has_ended for each in consumers):
            if signals and until is None:
                until = monotonic() + stop
                end(INTERRUPTING)
            elif standing.over is not None and not is_over and until is None:
                is_over = True
                say(_farewell(standing.over))
                if standing.over.is_replaced:
                    until = monotonic() + stop
                end(INTERRUPTING if standing.over.is_replaced else IN_PEACE)
            if len(signals) > 1 or (until is not None and monotonic() > until):
                _logger.warning("runs did not end in time and are killed; their feeds are due again")
                break
            for each in consumers:
                each.look()
            time.sleep(look)
    finally:
        for each in consumers:
            each.kill()
    return 0 if signals else 1


def _farewell(over: Over) -> str:
    what = (
        "its runs are interrupted" if over.is_replaced else "it takes no more runs and ends with those it has"
    )
    return f"This worker is over: {over.reason}. Now {what}."
