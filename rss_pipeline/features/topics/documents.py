"""The two documents of a topic, from its definition and rows of items.

Pure: no database, no clock, no published document. Equal values give equal bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from rss_pipeline.features.topics.atom import atom_document, atom_entry, with_source_date
from rss_pipeline.features.topics.choice import Chosen, choose
from rss_pipeline.features.topics.entry import Entry, entry_of
from rss_pipeline.features.topics.feed_head import feed_head
from rss_pipeline.features.topics.html_cache import PublishedHtml, published_html
from rss_pipeline.features.topics.json_feed import json_document, json_item
from rss_pipeline.features.topics.model import TopicContent, TopicSpec
from rss_pipeline.features.topics.values import Candidate, PublicImage, PublicUrls

FULL_CONTENT_BYTES = 250_000
"""The size of a document up to which items are in it with their content."""
MOST_BYTES = 1_000_000
"""The size of a document up to which there are items in it at all."""
NEVER = datetime(2000, 1, 1, tzinfo=UTC)
"""The date of a topic without items: Atom requires one, and the present would be another one each time."""
_SHORTENED: Mapping[TopicContent, tuple[TopicContent, ...]] = {
    "full": ("full", "summary", "none"),
    "summary": ("summary", "none"),
    "none": ("none",),
}
"""The forms of an item that are tried until one has room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The bytes of both documents, which show the same entries."""

    atom: bytes
    json: bytes
    entries: int
    feeds: int
    """Feeds that the entries come from."""


def build(
    topic: TopicSpec,
    candidates: Iterable[Candidate],
    *,
    installation: UUID,
    image: PublicImage = lambda *_: None,
    html: PublishedHtml = published_html,
    urls: PublicUrls | None = None,
    expired: bool = False,
) -> Documents:
    """The documents of a topic. `candidates` are as `choose` needs them, in any order; `html` cleans HTML."""
    return build_chosen(
        topic,
        choose(topic, candidates),
        installation=installation,
        image=image,
        html=html,
        urls=urls,
        expired=expired,
    )


def build_chosen(
    topic: TopicSpec,
    chosen: Iterable[Chosen],
    *,
    installation: UUID,
    image: PublicImage,
    html: PublishedHtml,
    urls: PublicUrls | None,
    expired: bool,
) -> Documents:
    """The same of items that `choose` has chosen."""
    head = feed_head(topic, installation=installation, urls=urls, expired=expired)
    atom_size = len(atom_document(head, NEVER, ()))
    json_size = len(json_document(head, ()))
    entries: list[Entry] = []
    written: list[bytes] = []
    items: list[bytes] = []
    for each in chosen:
        for content in _SHORTENED[topic.content]:
            limit = FULL_CONTENT_BYTES if content == "full" else MOST_BYTES
            if max(atom_size, json_size) >= limit:
                continue
            entry = entry_of(topic, each, content=content, image=image, html=html)
            element, item = atom_entry(entry), json_item(entry)
            sizes = atom_size + len(element), json_size + len(item) + len(",\n")
            if max(sizes) <= limit:
                entries.append(entry)
                written.append(element)
                items.append(item)
                atom_size, json_size = sizes
                break
    newest = _newest(entries)
    updated = max(newest.values(), default=NEVER)
    dated = [
        with_source_date(element, newest[entry.source.id])
        for element, entry in zip(written, entries, strict=True)
    ]
    return Documents(
        atom=atom_document(head, updated, dated),
        json=json_document(head, items),
        entries=len(entries),
        feeds=len(newest),
    )


def _newest(entries: Sequence[Entry]) -> dict[str, datetime]:
    """The date of the newest entry of each source."""
    newest: dict[str, datetime] = {}
    for entry in entries:
        newest[entry.source.id] = max(newest.get(entry.source.id, entry.updated), entry.updated)
    return newest
