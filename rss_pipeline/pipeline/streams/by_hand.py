"""Streams that a person wants judged now, whether their selectors changed or not."""

from collections import defaultdict
from collections.abc import Sequence

from rss_pipeline.collector.models.topic import Member
from rss_pipeline.pipeline.streams.refresh import judge
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.items.streams import stream_states


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
