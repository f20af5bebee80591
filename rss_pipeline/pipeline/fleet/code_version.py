"""The version of the code: equal on two machines only where both run the same.

The package's own version changes with releases only, and a fleet may be updated from a clone.
"""

import hashlib
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable


@cache
def code_version() -> str:
    """As `0.1.0+3f2a9c04d1be, Dagster 1.13.27`: the package, a hash over its files, and Dagster.

    Cached: a process runs the files that were there when it started, so call this at the start.
    """
    digest = hashlib.sha256()
    for path, content in sorted(_sources("", files("rss_pipeline"))):
        digest.update(f"{path}\0{len(content)}\0".encode() + content)
    return f"{version('rss_pipeline')}+{digest.hexdigest()[:12]}, Dagster {version('dagster')}"


def _sources(path: str, folder: Traversable) -> list[tuple[str, bytes]]:
    found = []
    for entry in folder.iterdir():
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            found += [] if entry.name == "__pycache__" else _sources(inner, entry)
        elif entry.name.endswith((".py", ".sql", ".yaml")):
            found.append((inner, entry.read_bytes()))
    return found
