"""A fleet on this machine: `rss-pipeline up --fleet` and workers with homes of their own, which share a
Postgres, a Redis and the folder of objects. All are real processes; all are ended for certain.

    with fleet(folder, postgres, redis) as fleet:
        fleet.start_main()
        fleet.start_worker("one")
"""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from rss_pipeline_tests.support.services.postgres import Postgres
from rss_pipeline_tests.support.up import PROGRAM, Up, free_port, kill_session, members
from rss_pipeline_tests.support.waiting import PATIENCE, soon


class Worker:
    """A running `rss-pipeline worker`; its processes are a session."""

    def __init__(
        self, folder: Path, name: str, environment: dict[str, str], *, inside: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.path = folder / f"{name}.log"
        self._log = self.path.open("ab")
        self.process = subprocess.Popen(
            [*inside, PROGRAM, "worker"],
            cwd=folder,
            env=environment,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        """As a machine that loses its power: every process at once."""
        # Stopped first, so that none is started, or sees that another is gone.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in members(self.process.pid):
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(number)
        self.process.wait()

    def stop(self) -> int:
        """As a person or a service manager does; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def end(self) -> None:
        self.kill()
        self._log.close()


class Fleet:
    """Its machines, and what they share."""

    def __init__(self, folder: Path, url: str, database: str, **environment: str) -> None:
        self.folder = folder
        self.database = database
        self.url = url
        self.environment = environment
        self.mains: list[Up] = []
        self.workers: dict[str, Worker] = {}
        self.of_machine: dict[str, dict[str, str]] = {}
        """Variables that one machine has otherwise than the others."""
        self.inside: dict[str, Sequence[str]] = {}
        """The words before the command of a worker that runs in a network namespace."""
        (folder / "objects").mkdir(exist_ok=True)

    def home(self, name: str) -> Path:
        """A machine's folder, with the objects of all in it."""
        home = self.folder / name / "home"
        if not home.exists():
            home.mkdir(parents=True)
            (home / "objects").symlink_to(self.folder / "objects")
        return home

    def variables(self, name: str, **more: str) -> dict[str, str]:
        """The environment of a machine."""
        return {
            **{key: value for key, value in os.environ.items() if not key.startswith(("RSS_", "DAGSTER_"))},
            "RSS_PIPELINE_HOME": str(self.home(name)),
            "RSS_FEEDS_FILE": str(self.folder / "feeds.yaml"),
            "RSS_WORKER_NAME": name,
            "RSS_PARSE_WORKERS": "1",
            **self.environment,
            **self.of_machine.get(name, {}),
            **more,
        }

    def command(self, *arguments: str, name: str = "main") -> subprocess.CompletedProcess[str]:
        """A command of a person at one of the machines."""
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env=self.variables(name),
            check=False,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def start_main(self, **more: str) -> Up:
        """The main machine."""
        self.home("main")
        up = Up(
            self.folder / "main",
            free_port(),
            options=["--fleet"],
            **{**self.variables("main"), **self.environment, **more},
        )
        self.mains.append(up)
        return up

    def start_worker(self, name: str, **more: str) -> Worker:
        """A worker; one of this name that was there has ended."""
        if name in self.workers:
            self.workers[name].end()
        inside = self.inside.get(name, ())
        self.workers[name] = Worker(self.folder, name, self.variables(name, **more), inside=inside)
        return self.workers[name]

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The result of a statement of Postgres's own dialect, once Postgres answers."""
        found: list[tuple[Any, ...]] = []

        def answers() -> bool:
            try:
                with psycopg.connect(self.url, autocommit=True) as connection:
                    found.extend(connection.execute(sql.encode()).fetchall())
            except psycopg.OperationalError:
                return False
            return True

        soon(answers)
        return found

    def end(self) -> None:
        for worker in self.workers.values():
            worker.end()
        for up in self.mains:
            end_main(up)


def end_main(up: Up) -> None:
    """As a machine that loses its power."""
    kill_session(up.process)
    up.log.close()


@contextmanager
def fleet(folder: Path, postgres: Postgres, broker_url: str, **environment: str) -> Iterator[Fleet]:
    """A fleet without machines, on an empty database of its own that is migrated."""
    name = f"fleet{free_port()}"
    postgres.create(name)
    found = Fleet(
        folder,
        postgres.url(name),
        name,
        DATABASE_URL=postgres.url(name),
        RSS_BROKER_URL=broker_url,
        **environment,
    )
    migrated = found.command("migrate")
    assert migrated.returncode == 0, migrated.stderr
    try:
        yield found
    except BaseException:
        for log in (*(folder / "main").glob("*.log"), *folder.glob("*.log")):
            print(f"--- {log.name}\n{log.read_text('utf-8', 'replace')[-6_000:]}")  # noqa: T201
        raise
    finally:
        found.end()
