"""Publications in processes that kill themselves: `python -m ... HOMES BASE`.

For N from 0 on, a copy HOMES/N of the home BASE in which a process dies by SIGKILL before its write number N,
to either store; the last one publishes to the end. Prints their exit codes as a JSON list. Started by
test_faults.py.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rss_pipeline.features.topics.publish import PublicationStores, publish
from rss_pipeline.storage.backends.folder.backend import FolderStore
from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase
from rss_pipeline.storage.database import Result, Statement, Value
from rss_pipeline_tests.support.pipeline import Pipeline


class Death:
    def __init__(self, writes: int) -> None:
        self._left = writes

    def before_write(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


class DyingDatabase(SqliteDatabase):
    def __init__(self, path: Path, death: Death) -> None:
        super().__init__(path)
        self._death = death

    def query(self, sql: str, params: Sequence[Value] = (), *, name: str = "") -> Result:
        return self.batch([Statement(sql, params, name=name)])[0]

    def batch(self, statements: Sequence[Statement]) -> list[Result]:
        if any(not statement.sql.lstrip().startswith("SELECT") for statement in statements):
            self._death.before_write()
        return super().batch(statements)


class DyingStore(FolderStore):
    def __init__(self, root: Path, death: Death) -> None:
        super().__init__(root)
        self._death = death

    def put(self, *args: Any, **kwargs: Any) -> bool:
        self._death.before_write()
        return super().put(*args, **kwargs)


def run(home: Path, writes: int) -> None:
    pipeline = Pipeline(home)
    pipeline.clock.turn(hours=1)
    death = Death(writes)
    database = DyingDatabase(pipeline.settings.database_path, death)
    objects = DyingStore(pipeline.settings.objects_path, death)
    publish(PublicationStores.of(pipeline.settings, database, objects), clock=pipeline.clock)


def main() -> None:
    homes, base = map(Path, sys.argv[1:])
    codes: list[int] = []
    while not codes or codes[-1] != 0:
        home = homes / str(len(codes))
        shutil.copytree(base, home)
        child = os.fork()
        if child == 0:
            run(home, len(codes))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        codes.append(os.waitstatus_to_exitcode(status))
    sys.stdout.write(json.dumps(codes))


if __name__ == "__main__":
    main()
