"""A poll in a process that kills itself at a given place: `python -m ... HOME STEP [ADVANCES]`.

It dies by SIGKILL when STEP begins, or after so many feeds are done with it; for the STEP `deadly document`,
when the run parses a document with the word DEADLY, as one that exhausts the machine would. POLL_MINUTES of
the environment says how late after noon it is, DATABASE_URL names a Postgres for the tables. Started by
test_crashes.py and soak/test_polls.py.
"""

import os
import signal
import sys
from pathlib import Path

from rss_pipeline.progress import Progress
from rss_pipeline.storage.backends.postgres.backend import PostgresBackend
from rss_pipeline_tests.support.pipeline import Pipeline


class Death:
    """A Progress that ends the process."""

    def __init__(self, step: str, advances: int | None) -> None:
        self._step = step
        self._left = advances

    def begin(self, step: str, total: int) -> None:
        if step == self._step and self._left is None:
            os.kill(os.getpid(), signal.SIGKILL)

    def advance(self, step: str, by: int = 1) -> None:
        if step == self._step and self._left is not None:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DeadlyDocument:
    """A Progress that ends the process as soon as a certain document of this run is parsed."""

    def __init__(self, spool: Path) -> None:
        self._spool = spool
        self._of_dead_runs = set(spool.glob("*"))

    def begin(self, step: str, total: int) -> None:
        folders = set(self._spool.glob("*")) - self._of_dead_runs
        documents = [path.read_bytes() for folder in folders for path in folder.iterdir() if path.is_file()]
        if step == "parse" and any(b"DEADLY" in document for document in documents):
            os.kill(os.getpid(), signal.SIGKILL)

    def advance(self, step: str, by: int = 1) -> None: ...


def main() -> None:
    home, step, *advances = sys.argv[1:]
    url = os.environ.get("DATABASE_URL")
    pipeline = Pipeline(Path(home), database_server=None if url is None else PostgresBackend(url=url))
    pipeline.clock.turn(minutes=int(os.environ.get("POLL_MINUTES", "0")))
    progress: Progress = Death(step, int(advances[0]) if advances else None)
    if step == "deadly document":
        progress = DeadlyDocument(pipeline.settings.spool_path)
    pipeline.poll(all_feeds=True, progress=progress)


if __name__ == "__main__":
    main()
