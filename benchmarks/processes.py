"""One command run and measured from outside: wall time, and the memory of its whole process tree.

What is run, and what the figures are held against, is the caller's.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

_SAMPLE_SECONDS = 0.05
_TREE_EVERY = 4
"""Samples between two looks for new children, which takes a walk over all processes of the machine."""
_PSS_EVERY = 20
"""Samples between two readings of the proportional size: the kernel walks page tables for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a command took and said."""

    seconds: float
    """Of the whole process, from before its start until it has ended."""
    peak_rss: int
    """The largest sum, over the process tree at one moment, of resident bytes; shared pages count in each."""
    peak_pss: int | None
    """The same with shared pages divided by their users; None where the system does not say (not Linux)."""
    exit_code: int
    stdout: str
    stderr: str


def environment(**ours: str) -> dict[str, str]:
    """This process's environment with `ours`, without proxies and settings of the pipeline or of Dagster.

    Compiled modules are kept, as where it is installed: the peers' are.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RSS_", "DAGSTER_", "PYTHONDONTWRITEBYTECODE"))
        and not name.lower().endswith("_proxy")
    }
    return {**kept, **ours}


def rss_pipeline() -> str:
    """The `rss-pipeline` command of this interpreter's environment."""
    return str(Path(sys.executable).with_name("rss-pipeline"))


def measure(command: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Measured:
    """Run a command to its end."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    )  # fmt: skip
    sampler = _Sampler(process.pid)
    sampler.start()
    try:
        stdout, stderr = process.communicate()
        seconds = time.perf_counter() - started
    except BaseException:
        process.terminate()
        raise
    finally:
        sampler.stop()
    return Measured(
        seconds=seconds,
        peak_rss=sampler.peak_rss,
        peak_pss=sampler.peak_pss,
        exit_code=process.returncode,
        stdout=stdout,
        stderr=stderr,
    )


class _Sampler(threading.Thread):
    def __init__(self, pid: int) -> None:
        super().__init__(name="memory", daemon=True)
        self.peak_rss = 0
        self.peak_pss: int | None = None
        self._root = psutil.Process(pid)
        self._over = threading.Event()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        sample = 0
        tree: list[psutil.Process] = []
        while not self._over.wait(_SAMPLE_SECONDS):
            if sample % _TREE_EVERY == 0:
                tree = self._tree()
            self.peak_rss = max(self.peak_rss, sum(map(_rss, tree)))
            if sample % _PSS_EVERY == _PSS_EVERY - 1:
                sizes = [size for process in tree if (size := _pss(process)) is not None]
                self.peak_pss = max(self.peak_pss or 0, sum(sizes)) if sizes else self.peak_pss
            sample += 1

    def _tree(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.Error:
            return []


def _rss(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _pss(process: psutil.Process) -> int | None:
    try:
        return getattr(process.memory_full_info(), "pss", None)
    except psutil.Error:
        return None
