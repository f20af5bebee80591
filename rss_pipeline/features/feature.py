"""The points of extension: all that a feature may add to the rest, on one page.

A feature is a package in this folder. Its docstring is its front page, and its `FEATURE` is the one list of
what it adds. A part is named, not imported: nothing of a feature is loaded before it is used, and the rest of
the project asks `FEATURES` and names no feature. To remove a feature, remove its folder, its line in
`FEATURES`, and the features that name it in `needs`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    import click
    import dagster as dg

    from rss_pipeline.collector.models.registry import KnownFeeds
    from rss_pipeline.collector.registry.yaml_nodes import Mistake, Node
    from rss_pipeline.orchestration.parts import Building, DagsterParts
    from rss_pipeline.pipeline.registry.sync import KeyChanges, RegistrySync
    from rss_pipeline.storage.database import Database, Row, Statement

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
class AfterPoll:
    """A last step of each poll, such as the publication of what changed."""

    op: "Part[dg.OpDefinition]"
    """The op after `report`. Its configuration has `later`: leave it to the job."""
    job: "Part[dg.JobDefinition]"
    """The same work by itself: `rss-pipeline poll` runs it after its last round, if it is due."""
    is_due: "Part[Callable[[Database, datetime], bool]]"
    """True if the job has work at this instant; a small query."""


@dataclass(frozen=True)
class RegistryKey:
    """A key of feeds.yaml besides `feeds`, such as `topics`, with values of its own."""

    name: str
    read: "Part[Callable[[Node | None, KnownFeeds, Mapping[str, str], list[Mistake]], tuple[Any, ...]]]"
    """The values, from the key's node, the feeds that they may name, and the environment; mistakes are added
    to the list."""
    stored: "Part[Statement]"
    """The query of what the database has of them: each sync reads it, with the feeds, in one batch."""
    write: "Part[Callable[[Database, tuple[Any, ...], Sequence[Row]], KeyChanges]]"
    """Write the values, as far as they are others than the rows of `stored`."""
    refuses_url: "Part[Callable[[str, Mapping[str, str]], str | None]] | None" = None
    """The sentence about a feed that may not be in feeds.yaml, by its URL and the environment."""


@dataclass(frozen=True)
class Feature:
    """The list of what one feature adds. Each field is a point of extension; most features use a few."""

    name: str
    """The name of its package."""
    needs: tuple[str, ...] = ()
    """The features that it uses: they cannot be removed without it. There are no circles."""
    after_poll: AfterPoll | None = None
    """A step at the end of each poll."""
    commands: Mapping[str, "Part[click.Command]"] = field(default_factory=dict)
    """Commands of `rss-pipeline`, by name."""
    dagster: "Part[Callable[[Building], DagsterParts]] | None" = None
    """Assets, checks, jobs, schedules, sensors and resources, for all definitions."""
    partition_keys: "Part[Callable[[Database, dg.DagsterInstance, RegistrySync], None]] | None" = None
    """Partition keys of its own, brought up to date after each sync of feeds.yaml."""
    registry_key: RegistryKey | None = None
    """A key of feeds.yaml."""
    stale: "Part[Statement] | None" = None
    """A statement for each batch that changes what items of some feeds show. `{feeds}` in it becomes the
    condition on a feed's id, such as `= ?` (storage/stale.py)."""
