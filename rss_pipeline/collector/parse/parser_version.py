"""The version of the parsers: it changes with their code and their libraries, and with nothing else.

A document that they could not read is read again by another version. No parser is imported here.
"""

import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

_LIBRARIES = ("feedparser", "charset-normalizer", "beautifulsoup4")


@cache
def parser_version() -> str:
    """12 hex digits: of this folder's code, Python's version (with its XML parser) and the libraries'."""
    return code_version(Path(__file__).parent.rglob("*.py"), libraries=_LIBRARIES)


def code_version(files: Iterable[Path], *, libraries: Iterable[str]) -> str:
    """12 hex digits: of the contents of `files`, Python's version and those of `libraries`.

    Not the package's version: who runs a clone gets new code by `git pull`, between two releases.
    """
    digest = hashlib.sha256(platform.python_version().encode())
    for name in libraries:
        digest.update(f"\0{name} {_version(name)}".encode())
    for path in sorted(files):
        digest.update(b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
