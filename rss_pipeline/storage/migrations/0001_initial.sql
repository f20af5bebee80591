-- One set for SQLite and D1 alike: no BEGIN, TEMP, ATTACH, VACUUM or PRAGMA in here.
-- Instants are TEXT, YYYY-MM-DDTHH:MM:SSZ, UTC. Durations are INTEGER seconds.

CREATE TABLE feeds (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL UNIQUE,
  title TEXT,
  last_etag TEXT,
  last_modified TEXT,
  last_fetched_at TEXT,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  next_fetch_at TEXT NOT NULL,
  created_at TEXT NOT NULL,

  -- What the registry says of it. Headers and passwords are never stored, only that there are some.
  host TEXT NOT NULL,
  registered INTEGER NOT NULL DEFAULT 1,
  enabled INTEGER NOT NULL DEFAULT 1,
  registered_title TEXT,
  interval INTEGER,
  item_key TEXT NOT NULL DEFAULT 'guid',
  images INTEGER NOT NULL DEFAULT 1,
  allow_private INTEGER NOT NULL DEFAULT 0,
  needs_access INTEGER NOT NULL DEFAULT 0,

  -- What the last documents said.
  link TEXT,
  language TEXT,
  fetch_url TEXT,
  validators_url TEXT,
  content_hash TEXT,
  failed_hash TEXT,
  charset TEXT,
  rhythm TEXT,
  ttl INTEGER,
  skip_hours TEXT,
  skip_days TEXT,

  -- How the last visits went.
  last_visited_at TEXT,
  last_success_at TEXT,
  last_body_at TEXT,
  last_error_kind TEXT,
  last_error TEXT,
  host_answered INTEGER NOT NULL DEFAULT 0,
  schedule_reason TEXT,
  warning TEXT,

  -- A change is reported to Dagster exactly when change_count is ahead of reported_count. Counters and
  -- not instants decide: two changes may fall into one second.
  change_count INTEGER NOT NULL DEFAULT 0,
  changed_at TEXT,
  last_change TEXT,
  items_version TEXT,
  reported_count INTEGER NOT NULL DEFAULT 0,
  reported_at TEXT,

  -- Items were stored whose images were not looked for yet: set by the closing batch, so that nobody has
  -- to search the items for it and items need no index of their own (each index is a row written in D1).
  images_pending INTEGER NOT NULL DEFAULT 0,

  -- A claim ended without a close although the run could still write: the document may have its backup
  -- already, which a claim that was merely lost shows by unclosed_claims.
  backup_unsure INTEGER NOT NULL DEFAULT 0,

  lease_token TEXT,
  unclosed_claims INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX feeds_due ON feeds (next_fetch_at) WHERE registered = 1 AND enabled = 1;
CREATE INDEX feeds_unreported ON feeds (changed_at) WHERE change_count > reported_count;

CREATE TABLE items (
  id TEXT PRIMARY KEY,
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  guid TEXT NOT NULL,
  link TEXT,
  title TEXT,
  pub_date TEXT NOT NULL,
  content_html TEXT,
  created_at TEXT NOT NULL,

  author TEXT,
  updated_at TEXT,
  categories TEXT NOT NULL DEFAULT '[]',
  enclosures TEXT NOT NULL DEFAULT '[]',
  summary TEXT,
  base_url TEXT,
  guid_source TEXT NOT NULL,
  pub_date_source TEXT NOT NULL,
  pub_date_raw TEXT,
  backup_key TEXT,
  -- Says why content_html is NULL although the document had content: the item did not fit into a row.
  content_omitted TEXT,
  images_extracted_at TEXT,
  UNIQUE (feed_id, guid)
);

CREATE TABLE image_tasks (
  id TEXT PRIMARY KEY,
  item_id TEXT NOT NULL REFERENCES items (id),
  original_url TEXT NOT NULL,
  r2_key TEXT,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'success', 'failed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,

  host TEXT NOT NULL,
  position INTEGER NOT NULL,
  next_attempt_at TEXT,
  lease_token TEXT
);
-- With the status, so that counting tasks by it reads this index and not the whole table.
CREATE INDEX image_tasks_item ON image_tasks (item_id, status);

-- Hosts that asked for a pause (429, Retry-After).
CREATE TABLE hosts (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
);

-- One row a claim. `feeds` and `hosts` are JSON lists: what the claim took and which hosts it keeps to
-- itself. They stand here and not in an index on feeds, for that would be two rows written a visit.
CREATE TABLE leases (
  token TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  feeds TEXT NOT NULL,
  hosts TEXT NOT NULL
);
