"""A poll in a process that kills itself at a given place: `python -m ... HOME STEP [ADVANCES]`.

It dies by SIGKILL when STEP begins, or after so many feeds are done with it. POLL_MINUTES of the environment
says how late after noon it is. Started by test_crashes.py and test_soak.py.
"""

import os
import signal
import sys
from pathlib import Path

import dagster as dg

from rss_pipeline_tests.support.pipeline import Pipeline


class Death:
    """A Progress that ends the process."""

    def __init__(self, step: str, advances: int | None) -> None:
        self._step = step
        self._left = advances

    def begin(self, step: str, total: int) -> None:
        if step == self._step and self._left is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def advance(self, step: str) -> None:
        if step == self._step and self._left is not None:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    home, step, *advances = sys.argv[1:]
    with dg.DagsterInstance.from_config(str(Path(home) / "dagster")) as instance:
        pipeline = Pipeline(Path(home), instance)
        pipeline.clock.turn(minutes=int(os.environ.get("POLL_MINUTES", "0")))
        pipeline.poll(all_feeds=True, progress=Death(step, int(advances[0]) if advances else None))


if __name__ == "__main__":
    main()
