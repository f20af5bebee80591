"""The rows of streams as the registry writes them, in the batch that writes their feeds.

Their members and the state that documents show are storage.items' (members.py, streams.py).
"""

from rss_pipeline.storage.database import Statement

_WANTED = """WITH wanted(feed_id, name, hash) AS MATERIALIZED (
  SELECT json_extract(f.value, '$.id'), s.key, s.value
  FROM json_each(?) AS f, json_each(f.value, '$.hashes') AS s)"""
# What was seen with a former selector says nothing of this one. Without selector_hash the stream is judged
# anew, also if it changes back before that: documents that came between were judged by the other selector.
_CHANGED = f"""{_WANTED} UPDATE streams SET registered_hash = wanted.hash, selector_hash = NULL,
  matched_at = NULL, unmatched_documents = 0, values_seen = NULL, error = NULL
  FROM wanted WHERE wanted.feed_id = streams.feed_id AND wanted.name = streams.name
    AND streams.registered_hash IS NOT wanted.hash"""
_GONE = f"""{_WANTED} UPDATE streams SET registered_hash = NULL
  WHERE registered_hash IS NOT NULL
    AND feed_id IN (SELECT json_extract(value, '$.id') FROM json_each(?))
    AND (feed_id, name) NOT IN (SELECT feed_id, name FROM wanted)"""
END_STREAMS = """UPDATE streams SET registered_hash = NULL WHERE registered_hash IS NOT NULL
  AND feed_id IN (SELECT id FROM feeds WHERE registered = 1 AND id IN (SELECT value FROM json_each(?)))"""
"""Mark the streams of these feeds as gone that stay scheduled, a JSON list of ids."""
_ADDED = f"""{_WANTED} INSERT INTO streams (feed_id, name, registered_hash)
  SELECT feed_id, name, hash FROM wanted WHERE true ON CONFLICT (feed_id, name) DO NOTHING"""


def register_streams(feeds: str) -> list[Statement]:
    """Make the streams of these feeds those of the registry: a JSON list of objects with `id`, and `hashes`
    by the name of the stream."""
    return [
        Statement(_CHANGED, [feeds], name="write changed streams"),
        Statement(_GONE, [feeds, feeds], name="mark streams gone"),
        Statement(_ADDED, [feeds], name="write new streams"),
    ]
