"""The points of extension: all that a feature may add to the rest, on one page.

A feature is a package in this folder. Its docstring is its front page, and its `FEATURE` is the one list of
what it adds. A part is named, not imported: nothing of a feature is loaded before it is used, and the rest of
the project asks `FEATURES` and names no feature. To remove a feature, remove its folder, its line in
`FEATURES`, and the features that name it in `needs`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    import click

T = TypeVar("T")


@dataclass(frozen=True)
class Part(Generic[T]):
    """An object of a feature, such as `Part("topics.cli:publish")`, imported when it is asked for."""

    name: str
    """The module below rss_pipeline.features, a colon, and the name there."""

    def load(self) -> T:
        """Return the object. Raise ImportError or AttributeError where there is none."""
        return cast("T", _load(self.name))


@cache
def _load(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(import_module(f"rss_pipeline.features.{module}"), attribute)


@dataclass(frozen=True)
class Feature:
    """The list of what one feature adds. Each field is a point of extension; most features use a few."""

    name: str
    """The name of its package."""
    needs: tuple[str, ...] = ()
    """The features that it uses: they cannot be removed without it. There are no circles."""
    commands: Mapping[str, "Part[click.Command]"] = field(default_factory=dict)
    """Commands of `rss-pipeline`, by name."""
