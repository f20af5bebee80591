"""The points of extension: all that a feature may add to the rest, on one page.

A feature is a package in this folder. Its docstring is its front page, and its `FEATURE` is the one list of
what it adds. A part is named, not imported: nothing of a feature is loaded before it is used, and the rest of
the project asks `FEATURES` and names no feature. To remove a feature, remove its folder, its line in
`FEATURES`, and the features that name it in `needs`.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    import click
    import dagster as dg

    from rss_pipeline.collector.models.feed import Feed, FeedSpec
    from rss_pipeline.collector.models.item import ParsedFeed
    from rss_pipeline.collector.models.outcome import DocumentPart, Parsed
    from rss_pipeline.collector.registry.yaml_nodes import Mistake, Node
    from rss_pipeline.pipeline.registry.sync import RegistrySync
    from rss_pipeline.pipeline.session.parser_tasks import ParseTask
    from rss_pipeline.storage.database import Database, Statement

    EventBatches = Iterator[list[dg.AssetMaterialization]]

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
class FeedKey:
    """A key of a feed in feeds.yaml, with a column of the same name in the table of feeds.

    Its value is a text. `needs_tree` to `at_close` are for feeds with the key: visits of others load nothing.
    """

    read: "Part[Callable[[Node, str, Mapping[str, str], list[Mistake]], str | None]]"
    """The value of a node at a place as text, None for none; with the environment and the mistakes so far."""
    register: "Part[Callable[[Sequence[FeedSpec]], list[Statement]]]"
    """Statements in the batch that writes these feeds of feeds.yaml, if one of them has the key or had it."""
    leave: "Part[Callable[[str], list[Statement]]]"
    """Statements in the batch that takes feeds out of feeds.yaml, a JSON list of ids."""
    needs_tree: "Part[Callable[[Feed], bool]]"
    """True if `parse` needs the tree of the document."""
    parse: "Part[Callable[[ParseTask, ParsedFeed, ParsedFeed], DocumentPart]]"
    """The work of the parser process beside the items: of the document as it was read, with its tree and with
    secrets, and of the one without them."""
    with_items: "Part[Callable[[Feed, str, Parsed], Callable[[Sequence[str]], Iterator[list[Statement]]]]]"
    """Groups of statements for these items of a document that is stored under a lease: the first one goes
    into the batch that inserts them."""
    at_close: "Part[Callable[[Feed, str, Parsed], list[Statement]]]"
    """Statements in the batch that closes the visit, before that."""


@dataclass(frozen=True)
class Feature:
    """The list of what one feature adds. Each field is a point of extension; most features use a few."""

    name: str
    """The name of its package."""
    needs: tuple[str, ...] = ()
    """The features that it uses: they cannot be removed without it. There are no circles."""
    commands: Mapping[str, "Part[click.Command]"] = field(default_factory=dict)
    """Commands of `rss-pipeline`, by name."""
    feed_keys: Mapping[str, FeedKey] = field(default_factory=dict)
    """Keys of a feed in feeds.yaml, by name."""
    partition_keys: "Part[Callable[[Database, dg.DagsterInstance, RegistrySync], None]] | None" = None
    """Adds the partition keys that a synced registry needs, and removes the others."""
    poll_events: "Part[Callable[[Database, dg.DagsterInstance, Collection[str]], EventBatches]] | None" = None
    """Events in a poll's report after those of these feeds, which changed (in a backfill: were read)."""
