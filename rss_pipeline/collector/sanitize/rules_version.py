"""The version of the sanitizer's rules: HTML that was sanitized by another version is sanitized again.

It changes with the code that decides what is shown, and with its libraries. Nothing of them is imported here.
"""

from functools import cache
from pathlib import Path

from rss_pipeline.collector.parse.parser_version import code_version

_LIBRARIES = ("nh3", "lxml")
_OF_PARSERS = ("links.py", "image_references.py", "pictures.py", "sections.py")
"""Modules of collector/parse by which references are resolved, images chosen and texts divided."""


@cache
def rules_version() -> str:
    """12 hex digits: of the code in this folder, in collector/images and in those modules of the parsers, and
    of the versions of Python, nh3 and lxml."""
    collector = Path(__file__).parents[1]
    files = (path for name in ("sanitize", "images") for path in (collector / name).rglob("*.py"))
    of_parsers = (collector / "parse" / name for name in _OF_PARSERS)
    return code_version((*files, *of_parsers), libraries=_LIBRARIES)
