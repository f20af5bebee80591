"""A `forget` in a process that kills itself, with the arguments HOME FEED PLACE.

It dies before or after the feed's items are deleted and the feed is marked (`rows`, `rows+`), its partition
key is (`key`, `key+`), and the feed's row is (`feed`, `feed+`). Started by test_forget_feed.py.
"""

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg

from rss_pipeline.orchestration.instance.forget_feed import forget_feed
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement


class Deadly:
    """Another object, but its calls named here may end the process."""

    def __init__(self, real: Any, place: str) -> None:
        self._real = real
        self._place = place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def _pass(self, place: str) -> None:
        if self._place == place:
            os.kill(os.getpid(), signal.SIGKILL)

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        place = "feed" if statements[-1].sql.startswith("DELETE FROM feeds") else "rows"
        self._pass(place)
        results: list[Result] = self._real.batch(statements)
        self._pass(f"{place}+")
        return results

    def delete_dynamic_partition(self, partitions: str, key: str) -> None:
        self._pass("key")
        self._real.delete_dynamic_partition(partitions, key)
        self._pass("key+")


def main() -> None:
    home, feed, place = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    database: Any = Deadly(SqliteDatabase(home / "rss.sqlite"), place)
    with dg.DagsterInstance.from_config(str(home / "dagster")) as real:
        instance: Any = Deadly(real, place)
        forget_feed(database, instance, feed)
