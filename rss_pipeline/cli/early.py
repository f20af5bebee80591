"""The first start of the process that `up` keeps running (services.py), before `up` imports, checks and
syncs: its own imports take half of the time until the reader's first page, and need nothing of that.

It waits at a socket for its command, its environment and the files that it inherits. Where that closes
instead, `up` has ended, and it ends as well.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from rss_pipeline.orchestration.serving.child import Child

EARLY = "--early"
"""The argument of a command that waits for its others, before the number of its socket."""
_MOST_FILES = 16


def services() -> list[str]:
    """The command that `up` keeps running, but for what it is sent."""
    return [sys.executable, "-W", "ignore", "-m", "rss_pipeline.cli.services", str(os.getpid())]


class Early(Child):
    """A command that has begun, and waits at the other end of this socket."""

    def __init__(self, pid: int, sender: socket.socket) -> None:
        super().__init__(pid)
        self.sender = sender
        self._popen: subprocess.Popen[bytes] | None = None

    @classmethod
    def begun(cls, command: Sequence[str]) -> "Early | None":
        """This command, begun in a process group of its own; None where it cannot be."""
        sender, listener = socket.socketpair()
        with listener:
            number = listener.fileno()
            try:
                popen = subprocess.Popen([*command, EARLY, str(number)], process_group=0, pass_fds=[number])
            except OSError:
                sender.close()
                return None
        early = cls(popen.pid, sender)
        # Forgotten, it would be waited for by the next Popen.
        early._popen = popen
        return early

    def send(self, command: Sequence[str], *, environment: Mapping[str, str], files: Sequence[int]) -> None:
        """Send it the whole command. Where it has ended meanwhile, its exit code says so."""
        sent = json.dumps({"command": command, "environment": dict(environment), "files": files})
        with suppress(OSError), self.sender:
            socket.send_fds(self.sender, [b" "], files)
            self.sender.sendall(sent.encode())

    def cancel(self) -> None:
        """End it, unless it has ended."""
        self.sender.close()
        self.kill()
        self.wait()


_at_start: list[Early] = []
"""The one that began before anything was imported, until `up` takes it."""


@contextmanager
def begun_at_start(arguments: Sequence[str]) -> Iterator[None]:
    """Begin the services if these are the arguments of `up`; at the end of the block, end them if nobody has
    taken them. Where there is an .env they begin later: they need its values when they begin."""
    is_up = arguments[:1] == ["up"] and not {"-h", "--help"}.intersection(arguments)
    if sys.platform == "linux" and is_up and not os.path.exists(".env"):
        # What they write is this user's alone, as with all commands.
        os.umask(0o077)
        if (early := Early.begun(services())) is not None:
            _at_start.append(early)
    try:
        yield
    finally:
        while _at_start:
            _at_start.pop().cancel()


def taken() -> Early | None:
    """The services that began at the start, if they did; they are the caller's from now on."""
    return _at_start.pop() if _at_start else None


def received(number: int) -> tuple[list[str], Mapping[int, int]] | None:
    """The command sent to this socket, and the numbers of its files here by those in it. The environment is
    this process's from now on. None where `up` has ended."""
    with socket.socket(fileno=number) as listener, listener.makefile("rb") as rest:
        _, files, _, _ = socket.recv_fds(listener, 1, _MOST_FILES)
        said = rest.read()
    try:
        found = json.loads(said)
    except ValueError:
        return None
    os.environ.clear()
    os.environ.update(found["environment"])
    return found["command"], dict(zip(found["files"], files, strict=True))
