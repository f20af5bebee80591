"""Streams in a replay: what each backup shows of them, and the end of their judgement."""

from collections.abc import Iterator, Sequence, Set

from rss_pipeline.collector.models.feed import Feed
from rss_pipeline.collector.models.outcome import Parsed
from rss_pipeline.features.streams.model import streams_in, streams_of
from rss_pipeline.features.streams.sql import end_judgement, judge_again, judgement_of, note_errors
from rss_pipeline.storage.database import Database, Statement, Value


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
