"""Documents with items that belong to streams, stored by the statements of a visit, and what the tables say
then.

No test is in here.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.item import FeedHeader, Item, item_id
from rss_pipeline.collector.models.outcome import Document, Parsed
from rss_pipeline.features.streams import sql as streams
from rss_pipeline.features.streams import states
from rss_pipeline.features.streams.model import FieldSelector, StreamsOfDocument, StreamSpec, streams_to_json
from rss_pipeline.storage.database import Database
from rss_pipeline_tests.storage.values import NOW, claim_one, closing, inserts, response

JANE = FieldSelector(author=("Jane",))


def by(author: str) -> FieldSelector:
    return FieldSelector(author=(author,))


def keys(*streams: StreamSpec) -> dict[str, str]:
    """The keys of a feed with these streams."""
    text = streams_to_json(streams)
    return {} if text is None else {"streams": text}


def stream_keys(**selectors: FieldSelector | str) -> dict[str, str]:
    """The keys of a feed with streams of these names."""
    return keys(*(StreamSpec(name=name, selector=selector) for name, selector in selectors.items()))


def parsed(
    some: Sequence[Item],
    members: Mapping[str, Iterable[str]],
    *,
    at: datetime = NOW,
    cut_off: bool = False,
    **found: Any,
) -> Parsed:
    """A document of the feed `a` with these items; `members` are guids by the name of the stream."""
    ids = {name: tuple(item_id("a", guid) for guid in guids) for name, guids in members.items()}
    return Parsed(
        document=Document(response=response(at=at), path=Path("body"), body_bytes=9, content_hash="hash"),
        path=Path("rows"),
        header=FeedHeader(format="rss20", title=None, link=None, charset="utf-8", charset_rule="utf-8"),
        items_seen=len(some),
        duplicate_guids=0,
        dropped_items=0,
        bad_dates=(),
        cut_off=cut_off,
        parts={"streams": StreamsOfDocument(members=ids, **found)},
    )


def store(
    database: Database,
    some: Sequence[Item],
    members: Mapping[str, Iterable[str]],
    *,
    at: datetime = NOW,
    claimed: tuple[Feed, str] | None = None,
    **fields: Any,
) -> None:
    """Visit the feed `a`: the statements of the op store, in one batch."""
    feed, token = claimed or claim_one(database, now=at)
    document = parsed(some, members, at=at, **fields)
    judgement = streams.judgement_of(feed, document, token=token)
    ids = [item_id("a", each.guid) for each in some]
    groups = [statement for group in judgement.groups(ids) for statement in group]
    note = streams.note_document(feed, token, document)
    database.batch([*inserts(feed, token, some, at=at), *groups, *note, closing(feed, token, some, at=at)])


def rows(database: Database) -> dict[str, list[str]]:
    """The guids of the members of each stream."""
    found: dict[str, list[str]] = {}
    for row in database.query(
        """SELECT stream, guid FROM item_streams JOIN items ON items.id = item_id
        AND items.feed_id = item_streams.feed_id ORDER BY stream, guid"""
    ).rows:
        found.setdefault(row["stream"], []).append(row["guid"])
    return found


def state(database: Database, name: str = "jane") -> states.StreamState:
    return {each.name: each for each in states.stream_states(database, "a")}[name]
