"""Imports of Dagster fail: `pytest -p rss_pipeline_tests.support.no_dagster`, for tests that need none.

`make quick` runs with it, so that no test of these rooms comes to need Dagster unnoticed.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class Refusing:
    """A finder on the meta path that refuses these packages."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self._packages:
            raise ImportError(f"{name} must not be loaded here")
        return None


def refuse(*packages: str) -> None:
    """Make every import of these packages an ImportError from now on; none may be loaded yet."""
    loaded = [package for package in packages if package in sys.modules]
    assert not loaded, f"already loaded: {', '.join(loaded)}"
    sys.meta_path.insert(0, Refusing(*packages))


def pytest_configure() -> None:
    refuse("dagster")
