"""A feed's authors and categories, and what its streams select of all that is stored.

Streams by field are judged here as feeds.yaml has them now, so that a selector can be tried before a poll
uses it; streams by XPath are as documents judged them. Reads only.
"""

import difflib
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rss_pipeline.features.streams.fields import FieldMatcher, names_of
from rss_pipeline.features.streams.model import FieldSelector, SelectorField, StreamSpec
from rss_pipeline.features.streams.patterns import PatternSet, normal
from rss_pipeline.features.streams.proposal import Counted, Tally, proposed_streams
from rss_pipeline.features.streams.sql import StreamState, stream_states
from rss_pipeline.features.streams.stream_changes import stored_members
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.unjudged import stored_items

_HINTS = 3
_COMPARED = 200
"""Authors that a pattern is compared with for a hint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSurvey:
    """One stream of feeds.yaml, with what it selects of the stored items."""

    spec: StreamSpec
    items: int | None
    """None where that is not known: for an XPath that no document was judged by."""
    state: StreamState | None
    """As the last poll left it; None where the stream is new in feeds.yaml, or has another selector there."""
    near: tuple[str, ...]
    """Authors in no stream that its patterns nearly fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedSurvey:
    """All that a person needs to know of a feed to write its streams."""

    items: int
    authors: tuple[Counted, ...]
    """The authors of all items, most frequent first, as `categories`."""
    categories: tuple[Counted, ...]
    streams: tuple[StreamSurvey, ...]
    unmatched: int
    """Items that belong to no stream."""
    proposed: tuple[StreamSpec, ...]
    """Streams for what no stream has so far."""


def survey(database: Database, feed_id: str, streams: Sequence[StreamSpec]) -> FeedSurvey:
    """The feed's items beside these streams, which are those of feeds.yaml now."""
    states = {each.spec: each for each in stream_states(database, feed_id)}
    matcher = FieldMatcher(streams)
    by_xpath = [each.name for each in streams if each.is_xpath and each in states]
    stored = stored_members(database, feed_id) if by_xpath else {}
    items_of = dict.fromkeys((each.name for each in streams), 0)
    every, rest = _Values(), _Values()
    for item in itertools.chain.from_iterable(stored_items(database, feed_id)):
        found = [
            *matcher.match(
                title=item.title, link=item.link, authors=item.authors, categories=item.categories
            ),
            *(name for name in by_xpath if item.id in stored.get(name, ())),
        ]
        for name in found:
            items_of[name] += 1
        for values in (every,) if found else (every, rest):
            values.add(item.authors, item.categories)
    authors_left, categories_left = rest.authors.counted(), rest.categories.counted()
    everyone, all_categories = every.authors.counted(), every.categories.counted()
    # A stream of the feed's only author, or only category, would be the feed once more.
    field: SelectorField = "author" if len(everyone) > 1 else "category"
    left = authors_left if field == "author" else categories_left if len(all_categories) > 1 else ()
    selected = _patterns(streams, field)
    return FeedSurvey(
        items=every.items,
        authors=everyone,
        categories=all_categories,
        streams=tuple(
            StreamSurvey(
                spec=each,
                items=None if each.is_xpath and each not in states else items_of[each.name],
                state=states.get(each),
                near=() if items_of[each.name] else near(each, authors_left),
            )
            for each in streams
        ),
        unmatched=rest.items,
        proposed=proposed_streams(
            field,
            # What a stream selects, and leaves out by another of its keys, needs no second one.
            [each for each in left if not selected.matching(each.value)],
            taken=[each.name for each in streams],
        ),
    )


def without_items(
    feed_id: str, streams: Iterable[StreamSpec], states: Iterable[StreamState]
) -> tuple[StreamSurvey, ...]:
    """These streams of a feed as the last poll left them: no item is read."""
    left = {each.spec: each for each in states if each.feed_id == feed_id}
    return tuple(
        StreamSurvey(spec=spec, items=None if state is None else state.members, state=state, near=())
        for spec in streams
        for state in [left.get(spec)]
    )


def _patterns(streams: Iterable[StreamSpec], field: SelectorField) -> PatternSet:
    return PatternSet(
        (pattern, 0)
        for each in streams
        if isinstance(each.selector, FieldSelector)
        for pattern in getattr(each.selector, field)
    )


class _Values:
    """The authors and categories of some items."""

    def __init__(self) -> None:
        self.items = 0
        self.authors = Tally()
        self.categories = Tally()

    def add(self, authors: Iterable[str], categories: Iterable[str]) -> None:
        self.items += 1
        # The shortest text that selects an author: of `mail (Name)` it is `Name`.
        self.authors.add([names_of(author)[-1] for author in authors])
        self.categories.add(categories)


def near(stream: StreamSpec, authors: Iterable[Counted]) -> tuple[str, ...]:
    """Authors that are spelled almost as a pattern of the stream, or have one in them."""
    if not isinstance(stream.selector, FieldSelector):
        return ()
    spelled = {normal(each.value): each.value for each in list(authors)[:_COMPARED]}
    found: dict[str, None] = {}
    for pattern in stream.selector.author:
        text = normal(pattern).strip("*")
        found |= dict.fromkeys(each for each in spelled if text and text in each)
        found |= dict.fromkeys(difflib.get_close_matches(text, spelled, n=_HINTS, cutoff=0.7))
    return tuple(spelled[each] for each in found)[:_HINTS]
