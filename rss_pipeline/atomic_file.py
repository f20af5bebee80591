"""The replacement of a file in one step: whoever reads it sees the old or the new one, whole."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

_NEW = 0o644
"""Permissions of a new file: others read it, as node_exporter the metrics. The home keeps them out of it."""


def replace_file(path: Path, body: bytes) -> None:
    """Write `body` to `path` and have it on the disk. The file keeps its permissions and, as far as this
    process may, its owner; a link is followed. Raises OSError; the file is then as it was."""
    path = path.resolve()
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        _keep_permissions(path, temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    # The file is replaced; some file systems cannot flush a folder.
    with suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _keep_permissions(path: Path, temporary: Path) -> None:
    if not path.exists():
        temporary.chmod(_NEW)
        return
    shutil.copymode(path, temporary)
    with suppress(OSError):
        os.chown(temporary, path.stat().st_uid, path.stat().st_gid)
