"""A clean in a process that kills itself at a given place: `python -m ... PLACE`.

It dies by SIGKILL before or after the objects of a slice are deleted (`objects`, `objects+`), when so many
of their keys were handed over (`key 3`), before or after the rows are (`rows`, `rows+`), when the first
backup is about to be put again (`renew`), or is killed by others (`never`). `forget FEED` forgets a feed
instead. Settings are the environment's, CLEAN_NOW the instant it is. Started by test_clean_faults.py.
"""

import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rss_pipeline.features.retention.service import clean
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.storage.database import Database, Result, Statement
from rss_pipeline.storage.feeds.forget import begin_forget


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """Another object, but for the methods below."""

    def __init__(self, real: Any, place: str) -> None:
        self._real = real
        self._place = place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class DeadlyDatabase(Deadly):
    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        retiring = any(statement.sql.startswith("DELETE") for statement in statements)
        if retiring and self._place == "rows":
            die()
        results: list[Result] = self._real.batch(statements)
        if retiring and self._place == "rows+":
            die()
        return results


class DeadlyObjects(Deadly):
    def delete_many(self, keys: Iterable[str]) -> dict[str, str]:
        if self._place == "objects":
            die()
        refused: dict[str, str] = {}
        for some in self._handed(keys):
            refused |= self._real.delete_many(some)
        if self._place == "objects+":
            die()
        return refused

    def _handed(self, keys: Iterable[str]) -> Iterator[list[str]]:
        name, _, number = self._place.partition(" ")
        wanted = list(keys)
        if name == "key":
            yield wanted[: int(number)]
            die()
        yield wanted

    def copy(self, source: str, target: str) -> None:
        if self._place == "renew":
            die()
        self._real.copy(source, target)


def main() -> None:
    settings = Settings.from_environ(os.environ, cwd=Path.cwd())
    now = datetime.fromisoformat(os.environ["CLEAN_NOW"])
    with open_database(settings) as opened:
        if sys.argv[1] == "forget":
            begin_forget(opened, sys.argv[2])
            return
        database: Database = DeadlyDatabase(opened, sys.argv[1])
        objects: Any = DeadlyObjects(open_objects(settings), sys.argv[1])
        clean(database, objects, settings, now=now)


if __name__ == "__main__":
    main()
