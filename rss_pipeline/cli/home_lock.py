"""The lock that `rss-pipeline up` has on its home: two of them would collect the same feeds twice.

It is the kernel's and ends with the process, however that ended. The file says who has it.
"""

import errno
import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from rss_pipeline.errors import AlreadyRunning, HomeNotLockable, SettingMistake, SettingsError, file_error
from rss_pipeline.put_aside import put_aside

NAME = "up.lock"

_IS_TAKEN = frozenset({errno.EWOULDBLOCK, errno.EACCES})


class HomeLock:
    """The lock of this process on a home, until `release` or the end of the process.

    Child processes do not inherit it.

    Raises:
        AlreadyRunning: another process has it.
        HomeNotLockable: the file system has no locks.
        SettingsError: the home cannot be made or written.
    """

    def __init__(self, home: Path, *, address: str) -> None:
        path = home / NAME
        try:
            home.mkdir(parents=True, exist_ok=True)
            if path.is_dir():
                put_aside(path)
            # For writing: NFS gives an exclusive lock on nothing less.
            self.file = _opened(path)
        except OSError as error:
            sentence = file_error(f"{path} cannot be written", error, home)
            mistake = SettingMistake(("RSS_PIPELINE_HOME",), f"{sentence}; name another folder")
            raise SettingsError(mistake) from error
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(self.file)
            os.close(self.file)
            if error.errno not in _IS_TAKEN:
                raise HomeNotLockable(
                    f"{home} is on a file system without locks ({error.strerror}), so that a second"
                    " `rss-pipeline up` would not be noticed: start only one, or set RSS_PIPELINE_HOME to a"
                    " folder on a disk of this machine"
                ) from error
            raise AlreadyRunning(
                f"rss-pipeline is already running in {home}{owner}: use that one, or stop it first. To run a"
                " second installation, set RSS_PIPELINE_HOME to another folder, RSS_PORT and RSS_READER_PORT"
                " to other ports"
            ) from error
        own = {"pid": os.getpid(), "host": socket.gethostname(), "address": address}
        # A full disk takes nothing: the lock is the kernel's, and holds without it.
        with suppress(OSError):
            os.ftruncate(self.file, 0)
            os.pwrite(self.file, json.dumps(own).encode(), 0)

    def release(self) -> None:
        """Release it. The file stays: removed, it could be locked twice."""
        os.close(self.file)


def _opened(path: Path) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_RDWR, 0o644)
    except PermissionError:
        if path.is_symlink():
            raise
        # Our own, with rights that somebody took: a new file would be a second lock.
        path.chmod(0o644)
        return os.open(path, os.O_RDWR)


def owner_is_gone(home: Path) -> bool:
    """True if the process of this machine that had the lock last does not exist any more. The lock is not
    touched: an `up` that starts would be refused."""
    try:
        said = json.loads((home / NAME).read_bytes())
        if said["host"] != socket.gethostname():
            return False
        os.kill(int(said["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return False


def _owner(file: int) -> str:
    """The process that has the lock, in brackets; nothing if it has not said yet."""
    try:
        said = json.loads(os.pread(file, 4096, 0))
        pid, host, address = int(said["pid"]), str(said["host"]), str(said["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    where = "" if host == socket.gethostname() else f" on {host}"
    return f" (process {pid}{where}, {address})"
