"""The content of a file as this process read them last, while neither the file nor a variable in it changes.

50,000 feeds take seconds to read, and the code server's sensor looks at them every half minute.
"""

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.models.registry import Registry

_SETTLED_NS = 2_000_000_000
"""A file that changed less than two seconds ago may change again within the same tick of its clock."""

Signature = tuple[int, int, int, int, int]


class UsedVariables(Mapping[str, str]):
    """An environment that records which of its variables are read."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.used: dict[str, str | None] = {}
        self._environ = environ

    def __getitem__(self, name: str) -> str:
        self.used[name] = self._environ.get(name)
        return self._environ[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


@dataclass(frozen=True, slots=True)
class _Read:
    signature: Signature
    used: Mapping[str, str | None]
    registry: Registry


_last: dict[Path, _Read] = {}


def signature(path: Path) -> Signature | None:
    """A value that changes with the file; None where that cannot be relied on, or there is no such file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < _SETTLED_NS:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def read_before(path: Path, *, environ: Mapping[str, str]) -> Registry | None:
    """The content of the file at `path` if this process has read it as it is; else None."""
    last = _last.get(path)
    if last is None or last.signature != signature(path):
        return None
    if any(environ.get(name) != value for name, value in last.used.items()):
        return None
    return last.registry


def keep(path: Path, before: Signature | None, environ: UsedVariables, registry: Registry) -> None:
    """Keep the registry just read, if the file is as it was `before` it was read."""
    if before is not None and before == signature(path):
        _last[path] = _Read(before, dict(environ.used), registry)
