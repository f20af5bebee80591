"""Processes that have our code imported when they begin: forked from one that imports it once.

The import of Dagster and of the pipeline takes four seconds of processor time, more than most of what a test
does in a process of its own. A test has threads and must not fork; the process that is forked here has none.
It is `python -m rss_pipeline_tests.support.prepared REPLIES MODULE...`, which reads orders from its input, a
line of JSON each, and writes to the descriptor REPLIES.
"""

import importlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rss_pipeline_tests.support.waiting import PATIENCE

_ROOT = Path(__file__).parents[2]


def program(module: str) -> list[str]:
    """The command that runs `main()` of a module: as `-m` does it, but each parser process that comes of it
    would import the module, with all that this imports."""
    return [sys.executable, "-W", "ignore", "-c", f"from {module} import main; main()"]


class PreparedProcess:
    """A forked process, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, server: "Prepared", pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server

    def wait(self, timeout: float = PATIENCE) -> int:
        """Wait for its end; return the exit code, or a signal's number below 0.

        Raises an AssertionError if it has not ended within so many seconds.
        """
        if self.returncode is None:
            self.returncode = self._server.ask({"wait": self.pid, "seconds": timeout})
            assert self.returncode is not None, f"it has not ended within {timeout:g} s"
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal. It is there, if only as a zombie, until it is waited for."""
        assert self.returncode is None, "it has ended"
        os.kill(self.pid, number)


class Prepared:
    """The process that is forked, started at the first `start`. A context manager; leaving it kills what was
    not waited for."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules
        self._server: subprocess.Popen[bytes] | None = None
        self._replies = -1
        self._said = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            assert self._server.stdin is not None
            self._server.stdin.close()
            self._server.wait(timeout=PATIENCE)
            os.close(self._replies)

    def start(
        self,
        module: str,
        *arguments: str,
        folder: Path = _ROOT,
        environment: Mapping[str, str] | None = None,
        quiet: bool = False,
    ) -> PreparedProcess:
        """A process in which `main()` of this module runs, one of those imported, with these arguments.

        `environment` takes the place of the test's; the output of a quiet one goes nowhere.
        """
        assert module in self._modules
        order = {
            "module": module,
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(os.environ if environment is None else environment),
            "quiet": quiet,
        }
        pid = self.ask(order)
        assert pid is not None
        return PreparedProcess(self, pid)

    def ask(self, order: Mapping[str, Any]) -> int | None:
        """The answer to an order."""
        stdin = self._started().stdin
        assert stdin is not None
        stdin.write(json.dumps(order).encode() + b"\n")
        stdin.flush()
        while b"\n" not in self._said:
            # It answers by itself in time, unless it cannot import what it should.
            assert select.select([self._replies], [], [], 2 * PATIENCE)[0], "no answer"
            some = os.read(self._replies, 4096)
            assert some, "it has ended"
            self._said += some
        line, _, self._said = self._said.partition(b"\n")
        answer: int | None = json.loads(line)
        return answer

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._server is None:
            self._replies, theirs = os.pipe()
            command = [sys.executable, "-W", "ignore", "-m", __name__, str(theirs), *self._modules]
            self._server = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, pass_fds=[theirs])
            os.close(theirs)
        return self._server


def _serve(replies: int) -> dict[str, Any] | None:
    """Fork for each order to start something; return the order in the forked process, None at the end."""
    alive: set[int] = set()
    for line in iter(sys.stdin.buffer.readline, b""):
        order: dict[str, Any] = json.loads(line)
        if "wait" in order:
            answer = _ended(order["wait"], order["seconds"])
            if answer is not None:
                alive.discard(order["wait"])
        else:
            answer = os.fork()
            if answer == 0:
                os.close(replies)
                return order
            alive.add(answer)
        os.write(replies, json.dumps(answer).encode() + b"\n")
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, 9)
    return None


def _ended(pid: int, seconds: float) -> int | None:
    until = time.monotonic() + seconds
    while (found := os.waitpid(pid, os.WNOHANG))[0] == 0:
        if time.monotonic() > until:
            return None
        time.sleep(0.02)
    return os.waitstatus_to_exitcode(found[1])


def _become(order: Mapping[str, Any]) -> None:
    """Make this process one that was started for the order alone."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2) if order["quiet"] else (0,):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = [order["module"], *order["arguments"]]


def _main(replies: int, modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)
    order = _serve(replies)
    # In the forked process: it returns from here, and so ends as one of its own does.
    if order is not None:
        _become(order)
        sys.modules[order["module"]].main()


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
