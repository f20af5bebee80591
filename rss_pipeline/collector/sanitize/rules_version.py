"""The version of the sanitizer's rules: HTML that was sanitized by another version is sanitized again.

It changes with the code that decides what is shown, and with its libraries. Nothing of them is imported here.
"""

from functools import cache
from pathlib import Path

from rss_pipeline.collector.parse.parser_version import code_version

_LIBRARIES = ("nh3", "lxml")


@cache
def rules_version() -> str:
    """12 hex digits: of the code in this folder and in collector/images, of parse/links.py, by which
    references are resolved, and of the versions of Python, nh3 and lxml."""
    collector = Path(__file__).parents[1]
    files = (path for name in ("sanitize", "images") for path in (collector / name).rglob("*.py"))
    return code_version((*files, collector / "parse" / "links.py"), libraries=_LIBRARIES)
