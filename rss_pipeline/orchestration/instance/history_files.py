"""The files of runs and ticks in Dagster's home, by their names. No Dagster is imported."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

RUN_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Only such an id becomes part of a path."""
_LOG = re.compile(r"([0-9]{1,18}|[0-9]{8}_[0-9]{6})\.(out|err|complete)(\.partial)?")
"""A tick's id, or the time of a test in the UI. Files of users' assets may be in the same folder."""


def ids_in(folder: Path) -> Iterator[tuple[str, float]]:
    """Run ids in the names of files and folders, with the time of their last change."""
    with os.scandir(folder) as entries:
        for entry in entries:
            id = entry.name.partition(".")[0]
            with suppress(FileNotFoundError):
                if RUN_ID.fullmatch(id):
                    yield id, entry.stat().st_mtime


def logs_in(folder: Path, before: datetime) -> Iterator[tuple[Path, int | None]]:
    """Log files last written before then, with the tick's id if the name of the file has it."""
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            named = _LOG.fullmatch(entry.name)
            with suppress(FileNotFoundError):
                if (
                    named is not None
                    and entry.is_file(follow_symlinks=False)
                    and entry.stat(follow_symlinks=False).st_mtime < before.timestamp()
                ):
                    yield Path(entry.path), int(named[1]) if named[1].isdigit() else None
