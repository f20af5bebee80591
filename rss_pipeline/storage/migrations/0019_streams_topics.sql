-- Parts of a feed, as feeds.yaml describes them below it: a JSON list, NULL for none. They travel with the claim, for
-- a document's items are judged where it is parsed, which reads no feeds.yaml.
ALTER TABLE feeds ADD COLUMN streams TEXT;

-- The time of the first document that was stored: of its items, a topic shows only a few. For feeds from before it is
-- that of their oldest item, which retention may have removed since, so it may be too late and never too early.
ALTER TABLE feeds ADD COLUMN first_stored_at TEXT;
UPDATE feeds SET first_stored_at = (SELECT min(created_at) FROM items WHERE feed_id = feeds.id);

-- A stream's state: the selector that its items were judged by, and what the last documents showed of it. `values_seen`
-- is a JSON list, for the warning of a stream that matches nothing.
CREATE TABLE streams (
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  name TEXT NOT NULL,
  selector_hash TEXT,
  matched_at TEXT,
  unmatched_documents INTEGER NOT NULL DEFAULT 0,
  values_seen TEXT,
  error TEXT,
  PRIMARY KEY (feed_id, name)
) WITHOUT ROWID;

-- The items of each stream. An item that goes takes its rows with it; for that, it needs an index of its own.
CREATE TABLE item_streams (
  feed_id TEXT NOT NULL,
  stream TEXT NOT NULL,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  PRIMARY KEY (feed_id, stream, item_id)
) WITHOUT ROWID;
CREATE INDEX item_streams_item ON item_streams (item_id);

-- Topics of feeds.yaml: `definition` is the canonical JSON of all keys. `stale` counts the changes since the last
-- publication: whatever changes what a topic shows adds one in its own batch, so that a killed process loses none.
-- The lease keeps two processes from publishing one topic at a time. `removed`: it left feeds.yaml; its documents stay.
CREATE TABLE topics (
  id TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  stale INTEGER NOT NULL DEFAULT 1,
  published_at TEXT,
  lease_token TEXT,
  lease_until TEXT,
  removed INTEGER NOT NULL DEFAULT 0
);
-- Each poll looks for topics to publish, and mostly there are none.
CREATE INDEX topics_stale ON topics (id) WHERE stale > 0;

-- The feeds of each topic, whole or by a stream, to find the topics of a feed with news.
CREATE TABLE topic_members (
  topic_id TEXT NOT NULL REFERENCES topics (id),
  feed_id TEXT NOT NULL,
  PRIMARY KEY (topic_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX topic_members_feed ON topic_members (feed_id);

-- What lies in the object store, so that a document is written only where its bytes differ, without reading it.
CREATE TABLE published_files (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  published_at TEXT NOT NULL
);
