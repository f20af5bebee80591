"""The version of the parsers: it changes with their code and their libraries, and with nothing else.

A document that they could not read is read again by another version. No parser is imported here.
"""

import hashlib
import platform
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path

from rss_pipeline import features
from rss_pipeline.features import FEATURES

_LIBRARIES = ("feedparser", "charset-normalizer", "beautifulsoup4")


@cache
def parser_version() -> str:
    """12 hex digits: of this folder's code and that of features with formats of their own, of Python's
    version (with its XML parser) and the libraries'."""
    folders = [Path(__file__).parent]
    for feature in FEATURES:
        if any(key.reads is not None for key in feature.feed_keys.values()):
            folders.append(Path(features.__file__).parent / feature.name)
    return code_version(chain(*(folder.rglob("*.py") for folder in folders)), libraries=_LIBRARIES)


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
