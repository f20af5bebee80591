"""Folders that belong to one living process: a killed process leaves its own, and a later one removes it.

A lock file shows that the process lives: the kernel releases the lock with the process, however that ended.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

SOCKETS = "rss-pipeline-sockets-"
"""Start of the names of folders with the sockets of parser processes, in the system's folder for temporary
files: the path of a socket has at most 108 bytes, so it cannot be in the home."""

OF_UP = "rss-pipeline-up-"
"""Start of the names of folders for the temporary files and sockets of `up`, Dagster's among them."""

_LONGEST_ROOT = 60
"""Bytes of a folder in which sockets can be: the path of one has 107 at most, and the rest of it some 45."""

LEFTOVER_AGE = timedelta(days=1)
"""A file or folder that shows no owner is left alone for so long."""

_LOCK = "lock"


def socket_root() -> Path:
    """The folder for folders of sockets: the system's for temporary files, or /tmp where TMPDIR is too long.

    Raises OSError if neither will do.
    """
    for root in (Path(tempfile.gettempdir()), Path("/tmp")):
        if len(os.fsencode(root)) <= _LONGEST_ROOT and os.access(root, os.W_OK):
            return root
    raise OSError(
        errno.ENAMETOOLONG,
        f"TMPDIR has more than {_LONGEST_ROOT} bytes, too long for sockets; set it to a shorter path",
    )


class HeldFolder:
    """A new folder of this process below `root`. Raises OSError if it cannot be made."""

    def __init__(self, root: Path, *, prefix: str) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        unnamed = self.path / "unlocked"
        self.lock = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        """The descriptor of the lock: a process that has inherited it holds the folder as well."""
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        # It has its name only now that it is locked: an unlocked one is of a killed process.
        unnamed.rename(self.path / _LOCK)

    def remove(self) -> None:
        """Remove it with all files in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):
            os.close(self.lock)


def sweep(root: Path, *, before: datetime | None = None, prefix: str = "", dry_run: bool = False) -> int:
    """Remove the folders below `root` that no living process holds; return their number.

    A folder without a lock file is of an older version of ours, or is being made: it stays unless it was last
    changed before `before`, if that is given.
    """
    removed = 0
    for path in sorted(root.glob(f"{prefix}*")) if root.is_dir() else ():
        with suppress(OSError):
            found = path.lstat()
            if not path.is_dir() or path.is_symlink() or found.st_uid != os.geteuid():
                continue
            lock = path / _LOCK
            if not lock.exists():
                if before is None or found.st_mtime >= before.timestamp():
                    continue
                if not dry_run:
                    shutil.rmtree(path)
                removed += 1
                continue
            held = os.open(lock, os.O_RDWR)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # An error: its process lives.
                if not dry_run:
                    _remove_but(path, lock)
                removed += 1
            finally:
                os.close(held)
    return removed


def _remove_but(path: Path, lock: Path) -> None:
    """Remove a folder, the lock file last: a sweep that is killed leaves what the next one finds."""
    for each in path.iterdir():
        if each != lock:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    shutil.rmtree(path)
