"""Some room on the disk of the home that is kept for what makes room there: `clean`, `forget` and `purge`.

SQLite, ours and Dagster's, needs room to delete rows, and even to open a database that nobody has open. Until
then a file has it.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rss_pipeline.errors import ROOM_OF_A_RUN

_NAME = "reserve"
_BYTES = 4_000_000
"""Less than a run takes: none starts in it while it is released."""
_LITTLE = 500_000
"""Not worth a change."""


def keep_reserve(home: Path) -> None:
    """Make the file where it is missing or small, as far as it leaves a run room."""
    _make(home, beside=ROOM_OF_A_RUN)


@contextmanager
def reserve_released(home: Path) -> Iterator[None]:
    """Within, a full disk has room. Behind it the file is made again of what others have not taken, and whole
    by the next run."""
    if home.is_dir() and _free(home) < ROOM_OF_A_RUN:
        release_reserve(home)
    try:
        yield
    finally:
        _make(home, beside=0)


def release_reserve(home: Path) -> None:
    """Release it, until the next run that has room makes it."""
    with suppress(OSError):
        (home / _NAME).unlink(missing_ok=True)


def _make(home: Path, *, beside: int) -> None:
    if not home.is_dir():
        return
    path = home / _NAME
    with suppress(OSError):
        has = path.stat().st_size if path.exists() else 0
        wanted = min(_BYTES, has + _free(home) - beside)
        if wanted < has + _LITTLE:
            return
        try:
            # Zeros take no room where the file system packs what is written.
            path.write_bytes(os.urandom(wanted))
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _free(home: Path) -> int:
    return shutil.disk_usage(home).free
