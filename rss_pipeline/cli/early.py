"""The first start of the process that `up` keeps running (services.py), while `up` checks and syncs: its
imports take half of the time until the reader's first page, and need nothing of that.

It waits at a socket for its command, its environment and the files that it inherits. Where that closes
instead, `up` has ended, and it ends as well.
"""

import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from rss_pipeline.orchestration.serving.child import Child

EARLY = "--early"
"""The argument of a command that waits for its others, before the number of its socket."""
_MOST_FILES = 16


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
