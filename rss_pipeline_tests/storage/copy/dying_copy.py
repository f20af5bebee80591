"""A copy in a process that kills itself at a given place: `python -m ... FROM TO STEP ADVANCES`.

It dies by SIGKILL after so many pages of the table STEP, or so many objects. Settings are the environment's.
Started by test_copying.py.
"""

import os
import signal
import sys
from pathlib import Path

from rss_pipeline.settings import Settings
from rss_pipeline.storage.copy.stores import SideName, copy, open_side


class Death:
    """A Progress that ends the process."""

    def __init__(self, step: str, advances: int) -> None:
        self._step = step
        self._left = advances

    def begin(self, step: str, total: int) -> None:
        pass

    def advance(self, step: str, by: int = 1) -> None:
        if step == self._step:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    source: SideName = "embedded" if sys.argv[1] == "embedded" else "cloudflare"
    target: SideName = "embedded" if sys.argv[2] == "embedded" else "cloudflare"
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    with open_side(settings, source) as ours, open_side(settings, target) as theirs:
        copy(ours, theirs, progress=Death(sys.argv[3], int(sys.argv[4])))


if __name__ == "__main__":
    main()
