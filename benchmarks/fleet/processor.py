"""Processor time of groups of processes, from outside, also of those that have ended meanwhile.

Linux only: it reads /proc each second. Of a process that ends, what it took since it was last seen is
missing: a percent or two where processes last some ten seconds.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_LOOK_SECONDS = 1.0
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process as it was seen first."""

    pid: int
    parent: int
    session: int
    command: str


class Processor:
    """The seconds of each group of processes; `group` names that of a process, None for one of others."""

    def __init__(self, group: Callable[[Process], str | None]) -> None:
        self._group = group
        self._groups: dict[tuple[int, str], str | None] = {}
        """By pid and time of birth: a pid may be another process's later."""
        self._ticks: dict[tuple[int, str], int] = {}
        self._others: set[int] = set()
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="processor", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def seconds(self) -> Counter[str]:
        """Those taken until now, by group."""
        self._look()
        ticks: Counter[str] = Counter()
        for process, taken in self._ticks.items():
            ticks[str(self._groups[process])] += taken
        return Counter({group: taken / _TICKS for group, taken in ticks.items()})

    def _watch(self) -> None:
        while not self._over.wait(_LOOK_SECONDS):
            self._look()

    def _look(self) -> None:
        with self._lock:
            pids = set(map(int, filter(str.isdigit, os.listdir("/proc"))))
            # Those of others are looked at once: each look takes the kernel as long as a small query.
            self._others &= pids
            for pid in pids - self._others:
                with suppress(OSError):
                    self._see(pid)

    def _see(self, pid: int) -> None:
        _, _, text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(") ")
        fields = text.split(" ")
        process = (pid, fields[19])
        if process not in self._groups:
            command = (
                Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            )
            seen = Process(pid=pid, parent=int(fields[1]), session=int(fields[3]), command=command)
            self._groups[process] = self._group(seen)
        if self._groups[process] is None:
            self._others.add(pid)
        else:
            self._ticks[process] = int(fields[11]) + int(fields[12])
