"""Tasks for parser processes that end, stop, or take what they are given.

No test is in here, and little is imported: each worker that is started does it anew.
"""

import mmap
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path


def ends_by(path: Path) -> int:
    """Do to this worker what the first line of the file says, and take the line away; else its process id."""
    lines = path.read_text().split()
    if not lines:
        return os.getpid()
    path.write_text("\n".join(lines[1:]))
    if lines[0] == "exit":
        os._exit(1)
    os.kill(os.getpid(), getattr(signal, lines[0]))
    time.sleep(60)
    return 0


@dataclass(frozen=True)
class Reading:
    """A task that knows the bytes that it reads."""

    bytes: int
    seconds: float = 0.0
    memory: int = 0

    def size(self) -> int:
        return self.bytes


def take(task: Reading) -> str:
    """So many seconds of processor time, and so many bytes of address space."""
    try:
        mmap.mmap(-1, max(task.memory, 1)).close()
    except OSError:
        raise MemoryError from None
    end = time.process_time() + task.seconds
    while time.process_time() < end:
        pass
    return "done"


def die() -> None:
    os._exit(1)
