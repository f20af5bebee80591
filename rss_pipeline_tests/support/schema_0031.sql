-- The tables of schema 31, as migrations 1 to 31 made them: what the oldest installation has that this code brings up
-- to date.

CREATE TABLE schema_migrations (
  version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at TEXT NOT NULL);
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
  host TEXT NOT NULL,
  registered INTEGER NOT NULL DEFAULT 1,
  enabled INTEGER NOT NULL DEFAULT 1,
  registered_title TEXT,
  interval INTEGER,
  item_key TEXT NOT NULL DEFAULT 'guid',
  images INTEGER NOT NULL DEFAULT 1,
  allow_private INTEGER NOT NULL DEFAULT 0,
  needs_access INTEGER NOT NULL DEFAULT 0,
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
  last_visited_at TEXT,
  last_success_at TEXT,
  last_body_at TEXT,
  last_error_kind TEXT,
  last_error TEXT,
  host_answered INTEGER NOT NULL DEFAULT 0,
  schedule_reason TEXT,
  warning TEXT,
  change_count INTEGER NOT NULL DEFAULT 0,
  changed_at TEXT,
  last_change TEXT,
  items_version TEXT,
  reported_count INTEGER NOT NULL DEFAULT 0,
  reported_at TEXT,
  images_pending INTEGER NOT NULL DEFAULT 0,
  backup_unsure INTEGER NOT NULL DEFAULT 0,
  lease_token TEXT,
  unclosed_claims INTEGER NOT NULL DEFAULT 0
, keep_days INTEGER, move_url TEXT, move_since TEXT, items_listed INTEGER, planned_at TEXT, gaps INTEGER NOT NULL DEFAULT 0, last_gap_at TEXT, gap_halvings INTEGER NOT NULL DEFAULT 0, halved_at TEXT, max_age INTEGER, prominent_at TEXT, schedule_kind TEXT, warning_kinds TEXT, folder TEXT, keep_unknown INTEGER NOT NULL DEFAULT 0, forgotten INTEGER NOT NULL DEFAULT 0, cut_hash TEXT, failed_version TEXT, private_hosts TEXT, counted_day TEXT, day_items INTEGER NOT NULL DEFAULT 0, day_image_bytes INTEGER NOT NULL DEFAULT 0, failing_since TEXT, failure_reported_kind TEXT, failure_reported_at TEXT, former_charset TEXT, streams TEXT, first_stored_at TEXT, listed INTEGER NOT NULL DEFAULT 0, shared INTEGER NOT NULL DEFAULT 0, wished_interval INTEGER, unused_since TEXT, visit_days TEXT, bucket INTEGER, not_before TEXT);
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
  content_omitted TEXT,
  images_extracted_at TEXT, arrived INTEGER, authors TEXT,
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
, bytes INTEGER, last_error_kind TEXT, width INTEGER, height INTEGER);
CREATE INDEX image_tasks_item ON image_tasks (item_id, status);
CREATE TABLE hosts (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
, times INTEGER NOT NULL DEFAULT 1);
CREATE TABLE leases (
  token TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  feeds TEXT NOT NULL,
  hosts TEXT NOT NULL
, image_tasks TEXT NOT NULL DEFAULT '[]', image_hosts TEXT NOT NULL DEFAULT '[]', awaited TEXT NOT NULL DEFAULT '[]', seconds INTEGER, asked TEXT NOT NULL DEFAULT '[]', image_asked TEXT NOT NULL DEFAULT '[]');
CREATE INDEX image_tasks_due ON image_tasks (coalesce(next_attempt_at, created_at)) WHERE status = 'pending';
CREATE TABLE image_holds (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
, times INTEGER NOT NULL DEFAULT 1);
CREATE TABLE expired_items (
  feed_id TEXT NOT NULL,
  guid TEXT NOT NULL,
  expired_at TEXT NOT NULL, unlisted_since TEXT, unlisted_documents INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (feed_id, guid)
) WITHOUT ROWID;
CREATE TABLE item_versions (
  item_id TEXT NOT NULL REFERENCES items (id),
  replaced_at TEXT NOT NULL,
  link TEXT,
  title TEXT,
  pub_date TEXT NOT NULL,
  content_html TEXT,
  author TEXT,
  updated_at TEXT,
  categories TEXT NOT NULL,
  enclosures TEXT NOT NULL,
  summary TEXT,
  base_url TEXT,
  guid_source TEXT NOT NULL,
  pub_date_source TEXT NOT NULL,
  pub_date_raw TEXT,
  content_omitted TEXT, authors TEXT,
  PRIMARY KEY (item_id, replaced_at)
);
CREATE TABLE feed_holds (
  feed_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
);
CREATE INDEX feeds_failing ON feeds (last_visited_at) WHERE consecutive_failures >= 10;
CREATE INDEX image_tasks_failed ON image_tasks (updated_at) WHERE status = 'failed';
CREATE INDEX items_age ON items (feed_id, created_at, arrived);
CREATE TABLE sequences (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
);
CREATE TABLE streams (
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  name TEXT NOT NULL,
  selector_hash TEXT,
  matched_at TEXT,
  unmatched_documents INTEGER NOT NULL DEFAULT 0,
  values_seen TEXT,
  error TEXT, registered_hash TEXT,
  PRIMARY KEY (feed_id, name)
) WITHOUT ROWID;
CREATE TABLE item_streams (
  feed_id TEXT NOT NULL,
  stream TEXT NOT NULL,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  PRIMARY KEY (feed_id, stream, item_id)
) WITHOUT ROWID;
CREATE INDEX item_streams_item ON item_streams (item_id);
CREATE TABLE topics (
  id TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  stale INTEGER NOT NULL DEFAULT 1,
  published_at TEXT,
  lease_token TEXT,
  lease_until TEXT,
  removed INTEGER NOT NULL DEFAULT 0
, entries INTEGER, error TEXT, stale_at TEXT);
CREATE INDEX topics_stale ON topics (id) WHERE stale > 0;
CREATE TABLE topic_members (
  topic_id TEXT NOT NULL REFERENCES topics (id),
  feed_id TEXT NOT NULL,
  PRIMARY KEY (topic_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX topic_members_feed ON topic_members (feed_id);
CREATE TABLE published_files (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  published_at TEXT NOT NULL
);
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX streams_unjudged ON streams (feed_id)
  WHERE registered_hash IS NULL OR selector_hash IS NOT registered_hash;
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  preferences TEXT NOT NULL DEFAULT '{}',
  state_version INTEGER NOT NULL DEFAULT 0,
  backed_up_version INTEGER,
  created_at TEXT NOT NULL
);
CREATE TABLE app_passwords (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (user_id, name)
);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('login', 'google_reader')),
  app_password_id TEXT REFERENCES app_passwords (id) ON DELETE CASCADE,
  client TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  last_used_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sessions_user ON sessions (user_id);
CREATE TABLE login_failures (
  key TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_at TEXT NOT NULL,
  until TEXT
) WITHOUT ROWID;
CREATE INDEX login_failures_age ON login_failures (last_at);
CREATE TABLE known_clients (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  last_at TEXT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;
CREATE INDEX items_of_feed ON items (feed_id, arrived);
CREATE INDEX items_arrived ON items (arrived, feed_id);
CREATE TABLE subscriptions (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  title TEXT,
  folder TEXT,
  position INTEGER NOT NULL DEFAULT 0,
  wished_interval INTEGER,
  read_up_to INTEGER NOT NULL,
  added_at TEXT NOT NULL,
  PRIMARY KEY (user_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX subscriptions_feed ON subscriptions (feed_id, wished_interval);
CREATE TABLE folders (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  PRIMARY KEY (user_id, name)
) WITHOUT ROWID;
CREATE TABLE item_states (
  user_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  arrived INTEGER NOT NULL,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  is_read INTEGER CHECK (is_read IN (0, 1)),
  starred_at TEXT,
  PRIMARY KEY (user_id, feed_id, arrived),
  FOREIGN KEY (user_id, feed_id) REFERENCES subscriptions (user_id, feed_id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX item_states_item ON item_states (item_id);
CREATE INDEX item_states_starred ON item_states (user_id, arrived) WHERE starred_at IS NOT NULL;
CREATE INDEX item_states_kept ON item_states (feed_id, arrived) WHERE starred_at IS NOT NULL;
CREATE TABLE refresh_requests (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('refresh', 'first', 'find')),
  user_id TEXT NOT NULL,
  others TEXT NOT NULL DEFAULT '[]',
  feed_id TEXT,
  address TEXT,
  requested_at TEXT NOT NULL,
  requested_ms INTEGER NOT NULL,
  seen_visit TEXT,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done')),
  lease_token TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  result TEXT,
  finished_at TEXT
, wishes TEXT NOT NULL DEFAULT '{}') WITHOUT ROWID;
CREATE UNIQUE INDEX refresh_requests_open ON refresh_requests (feed_id) WHERE state <> 'done' AND feed_id IS NOT NULL;
CREATE INDEX refresh_requests_waiting ON refresh_requests (requested_ms) WHERE state <> 'done';
CREATE INDEX refresh_requests_feed ON refresh_requests (feed_id, requested_at);
CREATE INDEX refresh_requests_user ON refresh_requests (user_id, requested_at);
CREATE INDEX refresh_requests_finished ON refresh_requests (finished_at) WHERE finished_at IS NOT NULL;
CREATE TABLE workers (
  role TEXT NOT NULL CHECK (role IN ('main', 'worker')),
  name TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  host TEXT NOT NULL,
  machine TEXT NOT NULL,
  pid INTEGER NOT NULL,
  code_version TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  queues TEXT NOT NULL,
  runs_at_once INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  steady_since TEXT NOT NULL,
  clock_offset INTEGER NOT NULL,
  PRIMARY KEY (role, name)
) WITHOUT ROWID;
CREATE TABLE worker_runs (
  run_id TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  job TEXT NOT NULL,
  queue TEXT NOT NULL,
  detail TEXT,
  pid INTEGER NOT NULL,
  started_at TEXT NOT NULL
) WITHOUT ROWID;

INSERT INTO schema_migrations (version, name, applied_at) VALUES (1, '0001_initial.sql', '2026-11-22T03:33:16Z');
INSERT INTO schema_migrations (version, name, applied_at) VALUES (31, '0031_not_before.sql', '2026-11-22T03:33:16Z');
