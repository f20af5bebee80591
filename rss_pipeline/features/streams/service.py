"""Stored items judged anew by streams with a changed selector, and the end of streams that left feeds.yaml.

For selectors by field, which need no document. Items are judged by XPath where a document is read: the
members of such a stream stay as they are until then, or until a replay.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass

from rss_pipeline.collector.models.feed import Feed, Member
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.streams.model import FieldMatcher, StreamSpec, streams_in, streams_of
from rss_pipeline.features.streams.sql import (
    Judgement,
    drop_streams,
    end_judgement,
    judge_again,
    judgement_of,
    note_errors,
    stored_items,
    unjudged,
)
from rss_pipeline.features.streams.states import stream_states
from rss_pipeline.storage.database import Database, Statement, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of a refresh."""

    keys: tuple[str, ...] = ()
    """The streams that were judged anew, as `feed/stream`."""
    items: int = 0
    """Items that were judged, of each feed once."""
    gone: int = 0
    """Streams that ended."""

    @property
    def streams(self) -> int:
        return len(self.keys)


def refresh(database: Database, feed_ids: Collection[str] | None = None) -> Refreshed:
    """Bring the members of all streams, or of those of these feeds, to their present selectors.

    May be killed anywhere, and done by two processes at once: a stream is due until all is written, and the
    same selector gives the same members. Without changed selectors it costs one query.
    """
    items = gone = 0
    keys: list[str] = []
    for feed in unjudged(database, feed_ids):
        if feed.gone:
            drop_streams(database, feed.feed_id, feed.gone)
            gone += len(feed.gone)
        by_field = [stream for stream in feed.streams if not stream.is_xpath]
        if by_field:
            items += judge(database, feed.feed_id, by_field)
            keys += [f"{feed.feed_id}/{stream.name}" for stream in by_field]
    return Refreshed(keys=tuple(keys), items=items, gone=gone)


def judge(database: Database, feed_id: str, streams: Sequence[StreamSpec]) -> int:
    """Judge all stored items of a feed by these streams, none of them by XPath; return their number."""
    matcher = FieldMatcher(streams)
    count = 0
    for page in stored_items(database, feed_id):
        streams_of = {
            item.id: matcher.match(
                title=item.title, link=item.link, authors=item.authors, categories=item.categories
            )
            for item in page
        }
        judgement = Judgement(feed_id=feed_id, judged=streams, streams_of=streams_of)
        for statements in judgement.groups(list(streams_of)):
            database.batch(statements)
        count += len(page)
    end_judgement(database, feed_id, streams)
    return count


# Streams that a person wants judged now, whether their selectors changed or not.


def judge_streams(database: Database, keys: Sequence[str]) -> dict[str, str]:
    """Judge all stored items by these streams (`feed/stream`); return the reason for each that failed.

    A selector by XPath needs documents: its stream is as the last documents, or a replay, have left it. That
    is an error only where its selector changed since, or could not be evaluated.
    """
    of_feed: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        of_feed[Member.of(key).feed_id].append(key)
    failed: dict[str, str] = {}
    for feed_id, wanted in of_feed.items():
        states = {f"{feed_id}/{state.name}": state for state in stream_states(database, feed_id)}
        judge(
            database,
            feed_id,
            [state.spec for key, state in states.items() if key in wanted and not state.spec.is_xpath],
        )
        for key in wanted:
            state = states.get(key)
            if state is None:
                failed[key] = "no feed has this stream in feeds.yaml"
            elif state.spec.is_xpath and (why := state.error or state.note) is not None:
                failed[key] = why
    return failed


# In a replay: what each backup shows of streams, and the end of their judgement.


class StreamsInReplay:
    """The streams of one feed in a replay (feature.py, `InReplay`)."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._shown: dict[str, tuple[str, ...]] = {}
        """The streams of items as earlier backups showed them, where that is written."""
        self._errors: dict[str, str] = {}
        """A sentence for each stream by which some backup could not be judged."""

    def inserting(
        self, parsed: Parsed, ids: Sequence[str], came: str, params: Sequence[Value]
    ) -> Iterator[list[Statement]]:
        judgement = judgement_of(self._feed, parsed)
        groups = judgement.groups(ids)
        yield [judge_again(self._feed.id, judgement.judged, came, params), *next(groups, [])]
        yield from groups

    def others(self, parsed: Parsed, ids: Sequence[str], inserted: Set[str]) -> Iterator[list[Statement]]:
        """Groups of statements where earlier backups did not show the same streams of an item."""
        judgement = judgement_of(self._feed, parsed)
        if not judgement.judged:
            return
        shown = {id: tuple(judgement.streams_of.get(id, ())) for id in ids}
        yield from judgement.groups(
            [id for id, names in shown.items() if id not in inserted and self._shown.get(id) != names]
        )
        if streams_in(parsed).errors:
            # Of some streams it is not known: the next backup writes all of them.
            for id in shown:
                self._shown.pop(id, None)
        else:
            self._shown.update(shown)

    def add(self, parsed: Parsed) -> None:
        self._errors |= streams_in(parsed).errors

    def end(self, database: Database) -> None:
        """Record that the feed's streams by XPath were judged by all of its backups: items that are in no
        backup cannot be judged."""
        xpaths = [stream for stream in streams_of(self._feed) if stream.is_xpath]
        done = [stream for stream in xpaths if stream.name not in self._errors]
        end_judgement(database, self._feed.id, done, during_visit=True)
        note_errors(database, self._feed.id, self._errors)
