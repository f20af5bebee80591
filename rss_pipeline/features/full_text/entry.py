"""The key `full_text` of a feed in feeds.yaml: `off`, `auto` or `on`.

A visit does nothing for it: which items get their article is decided when articles are fetched (service.py).
"""

from collections.abc import Mapping, Sequence

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.registry.yaml_nodes import Mistake, Node, ScalarNode
from rss_pipeline.features.full_text.sql import begin_articles, leave_articles
from rss_pipeline.storage.database import Statement
from rss_pipeline.storage.sql import compact

_VALUES = {"on": "on", "true": "on", "auto": "auto", "off": None, "false": None}


def read_full_text(
    node: Node,
    place: str,
    environ: Mapping[str, str],  # noqa: ARG001 - it may name no variable
    mistakes: list[Mistake],
) -> str | None:
    """`on`, `auto`, or None for `off`."""
    if isinstance(node, ScalarNode) and (text := node.text.strip().lower()) in _VALUES:
        return _VALUES[text]
    mistakes.append(Mistake(node.line, place, "is none of its values; write `off`, `auto` or `on`"))
    return None


def register_full_text(specs: Sequence[FeedSpec]) -> list[Statement]:
    """Statements by which these feeds get articles for the items that come from now on, or none any more."""
    return begin_articles(compact([spec.id for spec in specs]))


def leave_full_text(ids: str) -> list[Statement]:
    """Statements by which feeds, a JSON list of ids, get no more articles; those they have stay."""
    return leave_articles(ids)
