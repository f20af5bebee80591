"""Imports of Dagster fail: `pytest -p rss_pipeline_tests.support.no_dagster`, for tests that need none.

`make quick` runs with it, so that no test of these rooms comes to need Dagster unnoticed. Of features' tests,
those that need it are skipped.
"""

import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest


class Refusing:
    """A finder on the meta path that refuses these packages."""

    def __init__(self, *packages: str) -> None:
        self._packages = packages
        self.skips = False
        """A module of tests that imports one is skipped, and no failure."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in self._packages:
            if self.skips:
                pytest.skip(f"needs {name}", allow_module_level=True)
            raise ImportError(f"{name} must not be loaded here")
        return None


def refuse(*packages: str) -> Refusing:
    """Make every import of these packages an ImportError from now on; none may be loaded yet."""
    loaded = [package for package in packages if package in sys.modules]
    assert not loaded, f"already loaded: {', '.join(loaded)}"
    refusing = Refusing(*packages)
    sys.meta_path.insert(0, refusing)
    return refusing


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(OfFeatures(refuse("dagster")))


class OfFeatures:
    """Skips modules while those of features are collected."""

    def __init__(self, refusing: Refusing) -> None:
        self._refusing = refusing

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        self._refusing.skips = "features" in collector.path.parts
        try:
            return (yield)
        finally:
            self._refusing.skips = False
