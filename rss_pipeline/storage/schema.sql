-- The tables of rss_pipeline, as a new database gets them; `rss-pipeline schema` prints this page. One text for SQLite, D1
-- and Postgres: no BEGIN, TEMP, ATTACH, VACUUM or PRAGMA. An existing database gets what is new from migrations/.
--
-- A time is UTC text (2026-02-18T08:30:00Z), a span of time a whole number of seconds, a flag 0 or 1, a list or an object
-- JSON; NULL is none, or not known. Every index is a row more that D1 counts at each write, so each has its reason.

-- FEEDS

-- A feed: what feeds.yaml says of it, what its last documents said, how its last visits went, and when the next one is.
CREATE TABLE feeds (
  -- What claims read is first. Its id is the key of its partition, too. `url` is the registered address; `host` gets the
  -- request; `bucket` is a hash (0 to 1023) of the host at which the last visit ended, for shards. `registered`: in feeds.yaml,
  -- or subscribed by somebody; only such feeds are visited. `enabled` is 0 where feeds.yaml disables it, and where it is not
  -- `watched`: a name and a page without a source. `lease_token` is the
  -- lease of a run that visits it, `unclosed_claims` counts claims that ended without a close.
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL UNIQUE,
  host TEXT NOT NULL,
  bucket INTEGER,
  next_fetch_at TEXT NOT NULL,
  registered INTEGER NOT NULL DEFAULT 1,
  enabled INTEGER NOT NULL DEFAULT 1,
  watched INTEGER NOT NULL DEFAULT 1,
  consecutive_failures INTEGER NOT NULL DEFAULT 0,
  lease_token TEXT,
  unclosed_claims INTEGER NOT NULL DEFAULT 0,

  -- `listed`: in feeds.yaml. `unused_since`: the last subscriber of a feed that is not listed has left.
  listed INTEGER NOT NULL DEFAULT 0,
  unused_since TEXT,
  created_at TEXT NOT NULL,

  -- Its options in feeds.yaml. `interval` NULL is `auto`; `keep_days`, `max_size` NULL are the settings'. Headers and
  -- passwords are stored nowhere, only that there are some (`needs_access`). `allow_private` opens the host of `url`,
  -- `private_hosts` names others. `shared`: users may subscribe to it although it is private.
  registered_title TEXT,
  folder TEXT,
  interval INTEGER,
  item_key TEXT NOT NULL DEFAULT 'guid',
  images INTEGER NOT NULL DEFAULT 1,
  keep_days INTEGER,
  max_size INTEGER,
  streams TEXT,
  page TEXT,
  -- `on` or `auto` of feeds.yaml: the articles behind its items are shown. Items that arrived after `full_text_after` get theirs; for `auto`,
  -- `full_text_decision` has what the first pages showed (JSON).
  full_text TEXT,
  full_text_after INTEGER,
  full_text_decision TEXT,
  allow_private INTEGER NOT NULL DEFAULT 0,
  private_hosts TEXT,
  needs_access INTEGER NOT NULL DEFAULT 0,
  shared INTEGER NOT NULL DEFAULT 0,
  -- The shortest interval that one of its subscribers prefers.
  wished_interval INTEGER,

  -- Of the last stored document; its description is the last column.
  title TEXT,
  link TEXT,
  language TEXT,

  -- Of a page in place of a feed: the entries of its last documents, by which the next list is judged.
  page_known TEXT,

  -- Where it is requested: `fetch_url` in place of `url` after a permanent redirect; `network`, the /24 or /48 in which the
  -- host last answered. `answered_url` is the address that gave the last document or 304, if it is another one and the feed has
  -- no headers and no password. `move_url` is the target of a permanent redirect that is not adopted, or not yet.
  fetch_url TEXT,
  network TEXT,
  answered_url TEXT,
  move_url TEXT,
  move_since TEXT,
  -- Where a redirect has led that is not followed yet, for its Retry-After: {"source", "url", "permanent", "at", "fresh_until"}.
  led_to TEXT,

  -- Of the last stored document: its validators and the address that gave them, the SHA-256 of its bytes and of its
  -- Content-Type's charset, and for how long it said that it is fresh (a 304 that says nothing leaves it as it is).
  last_etag TEXT,
  last_modified TEXT,
  validators_url TEXT,
  -- Of the validators: the Date of the answer that gave `last_modified`, how many documents in a row came under the same ones,
  -- the time of a check of them that failed, and those of other addresses, [address, ETag, Last-Modified, Date, false] each
  -- ({"dated", "false", "checked_at", "others"}).
  validators_state TEXT,
  content_hash TEXT,
  max_age INTEGER,
  -- Of the last document if it was cut off, and how many in a row were. Validators stay those of the last whole one.
  cut_hash TEXT,
  cuts INTEGER NOT NULL DEFAULT 0,
  -- Of the last document that could not be read, and the version of the parsers that failed: a newer one tries it again.
  failed_hash TEXT,
  failed_version TEXT,
  -- The codec that decoded the last document, and the last other one before it: by both, stored items are recognized.
  charset TEXT,
  former_charset TEXT,
  -- The times of its newest items, and what the document says about visits.
  rhythm TEXT,
  ttl INTEGER,
  skip_hours TEXT,
  skip_days TEXT,

  -- Why the next visit is when it is: for people, and as a kind. `not_before`: the publisher wants no visit before it.
  -- `planned_at`: the next visit as the last success planned it.
  schedule_reason TEXT,
  schedule_kind TEXT,
  not_before TEXT,
  planned_at TEXT,

  -- The end of the last visit, answered or not; of the last that was answered, that succeeded, that got a document. The
  -- fetch time of the first stored document.
  last_visited_at TEXT,
  last_fetched_at TEXT,
  last_success_at TEXT,
  last_body_at TEXT,
  first_stored_at TEXT,

  -- Of the failures since the last success the time of the first, kind and sentence of the last; whether the host answered the
  -- last visit; visits in a row that an outage of our own network postponed.
  failing_since TEXT,
  last_error_kind TEXT,
  last_error TEXT,
  host_answered INTEGER NOT NULL DEFAULT 0,
  outage_pauses INTEGER NOT NULL DEFAULT 0,
  -- The time of the tenth failure, after which there is an alert; the failure of which Dagster has its last observation.
  prominent_at TEXT,
  failure_reported_kind TEXT,
  failure_reported_at TEXT,

  -- The warnings of the last visit: for people, and as kinds.
  warning TEXT,
  warning_kinds TEXT,

  -- Items in the last stored document; how often and when it had none in common with the one before; how often the interval
  -- is halved because of that, and since when.
  items_listed INTEGER,
  gaps INTEGER NOT NULL DEFAULT 0,
  last_gap_at TEXT,
  gap_halvings INTEGER NOT NULL DEFAULT 0,
  halved_at TEXT,

  -- Its visits of at least the last 28 days: the day of the month to the date and the visits with new items, without, and
  -- failed ({"22": ["2026-11-22", 3, 40, 1]}). A table of visits would be a row more written for each.
  visit_days TEXT,
  -- New items, bytes of images and bytes of new backups on `counted_day` (UTC), for the limits of one feed.
  counted_day TEXT,
  day_items INTEGER NOT NULL DEFAULT 0,
  day_image_bytes INTEGER NOT NULL DEFAULT 0,
  day_backup_bytes INTEGER NOT NULL DEFAULT 0,

  -- Its last change that is worth an event in Dagster, the number of such changes, and facts of the last one (items, bytes,
  -- status, codec, key of the backup). `items_version` grows with each change that has new items: the data version of the
  -- partition. Dagster has an event of change number `reported_count`: below `change_count`, one is to come. Counters and
  -- not times decide: two changes may be in one second.
  changed_at TEXT,
  change_count INTEGER NOT NULL DEFAULT 0,
  last_change TEXT,
  items_version TEXT,
  reported_count INTEGER NOT NULL DEFAULT 0,
  reported_at TEXT,

  -- What is unfinished: items that were not searched for images yet; a document that may have its backup already; how many
  -- feeds the last claim had; a `forget` half-way (its rows in other tables are deleted, its partition is next); a feed from
  -- backups that do not say how long to keep items.
  images_pending INTEGER NOT NULL DEFAULT 0,
  backup_unsure INTEGER NOT NULL DEFAULT 0,
  claimed_with INTEGER NOT NULL DEFAULT 0,
  forgotten INTEGER NOT NULL DEFAULT 0,
  keep_unknown INTEGER NOT NULL DEFAULT 0,

  -- Plain text, at most 2,000 characters.
  description TEXT
);
CREATE INDEX feeds_due ON feeds (next_fetch_at) WHERE registered = 1 AND enabled = 1;
CREATE INDEX feeds_unreported ON feeds (changed_at) WHERE change_count > reported_count;
-- For checks and alerts. A feed that keeps failing is requested once a day, so its place in here changes once a day.
CREATE INDEX feeds_failing ON feeds (last_visited_at) WHERE consecutive_failures >= 10;

CREATE INDEX feeds_full_text ON feeds (id) WHERE full_text_after IS NOT NULL;

-- A host that requested fewer requests (429, Retry-After), and until when; `times` in a row. The row goes when it answers.
CREATE TABLE hosts (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL,
  times INTEGER NOT NULL DEFAULT 1
);
-- The sensors look once a minute at what may have begun to wait; so for the next two tables.
CREATE INDEX hosts_held ON hosts (hold_until);

-- Likewise for images alone: the host's feeds are not concerned.
CREATE TABLE image_holds (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL,
  times INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX image_holds_held ON image_holds (hold_until);

-- A feed that waits because of its own Retry-After, or because it leads to a host that wants a pause. `host` said so;
-- `url_hash` is of the address that did: no other feed that leads there requests it before that.
CREATE TABLE feed_holds (
  feed_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL,
  url_hash TEXT
);
CREATE INDEX feed_holds_held ON feed_holds (hold_until);

-- The seconds between two requests to a host that limits their rate, as its 429 taught, for feeds (`kept` = 'hosts') and
-- images ('image_holds'). A host that begins with a point stands for all names of that domain. `since` is the last change.
CREATE TABLE host_gaps (
  kept TEXT NOT NULL,
  host TEXT NOT NULL,
  seconds INTEGER NOT NULL,
  since TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  PRIMARY KEY (kept, host)
);

-- The rules of a site's robots.txt for us, as JSON, requested at most once a day before a page is. Where it could not be read,
-- `refusal` says why, and no page of the site is requested.
CREATE TABLE robots (
  origin TEXT PRIMARY KEY,
  requested_at TEXT NOT NULL,
  rules TEXT,
  refusal TEXT
);

-- A claim of a run, for feeds or images: what it took and the hosts that it keeps to itself (lists). `awaited`: hosts that
-- a refresh by hand waits for. `seconds`: its length, by which a clock that was put back is noticed. `asked`, `image_asked`:
-- hosts that were requested right before they were freed, whose pace holds until the lease ends. `unbegun`: feeds whose
-- requests have not begun, so that none of their documents can be the cause where the run dies.
CREATE TABLE leases (
  token TEXT PRIMARY KEY,
  run_id TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  seconds INTEGER,
  feeds TEXT NOT NULL,
  hosts TEXT NOT NULL,
  image_tasks TEXT NOT NULL DEFAULT '[]',
  image_hosts TEXT NOT NULL DEFAULT '[]',
  awaited TEXT NOT NULL DEFAULT '[]',
  asked TEXT NOT NULL DEFAULT '[]',
  image_asked TEXT NOT NULL DEFAULT '[]',
  unbegun TEXT NOT NULL DEFAULT '[]'
);

-- ITEMS

-- An item, as it was published. Long columns are last, so that the others are read without them.
CREATE TABLE items (
  id TEXT PRIMARY KEY,
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  -- What identifies it in its feed; it never changes. `guid_source`: guid, link or hash.
  guid TEXT NOT NULL,
  guid_source TEXT NOT NULL,
  link TEXT,
  -- Plain text.
  title TEXT,
  -- `fetched` in `pub_date_source`: the feed gave no date that can be read, and it is the time of the fetch.
  pub_date TEXT NOT NULL,
  pub_date_source TEXT NOT NULL,
  pub_date_raw TEXT,
  -- The publisher's date of the last update when the item came. It is no time of a change of this row.
  updated_at TEXT,
  -- The fetch of its document, by this machine's clock.
  created_at TEXT NOT NULL,
  -- Grows in the order in which items came in, those of one document oldest first; no two items have the same.
  arrived INTEGER,
  images_extracted_at TEXT,
  backup_key TEXT,
  base_url TEXT,
  -- The page on which readers discuss it.
  comments_url TEXT,
  -- The first author that the item itself names; all of them (a list; NULL in rows from before there was one).
  author TEXT,
  authors TEXT,
  categories TEXT NOT NULL DEFAULT '[]',
  enclosures TEXT NOT NULL DEFAULT '[]',
  -- What did not fit into a row and is missing.
  content_omitted TEXT,
  summary TEXT,
  -- The content as published. It does not change after the first time.
  content_html TEXT,
  UNIQUE (feed_id, guid)
);
-- By age for retention, by arrival for readers, by date of publication for lists; a date ahead of the fetch counts as that.
-- Each holds all that is compared, so that no row is read of an item that is not shown.
CREATE INDEX items_age ON items (feed_id, created_at, arrived, pub_date);
CREATE INDEX items_of_feed ON items (feed_id, arrived, created_at, pub_date);
CREATE INDEX items_arrived ON items (arrived, feed_id);
CREATE INDEX items_published ON items
  (feed_id, (CASE WHEN pub_date < created_at THEN pub_date ELSE created_at END), arrived, created_at);

-- The highest arrival number so far (`items`), and other counters that survive the rows that they counted. `changes` counts
-- what users changed and which sessions ended: what a reader keeps is valid while the row is as it was.
CREATE TABLE sequences (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL,
  changes INTEGER NOT NULL DEFAULT 0
);

-- An older version of an item that `replay --repair` rewrote.
CREATE TABLE item_versions (
  item_id TEXT NOT NULL REFERENCES items (id),
  replaced_at TEXT NOT NULL,
  guid_source TEXT NOT NULL,
  link TEXT,
  title TEXT,
  pub_date TEXT NOT NULL,
  pub_date_source TEXT NOT NULL,
  pub_date_raw TEXT,
  updated_at TEXT,
  base_url TEXT,
  comments_url TEXT,
  author TEXT,
  authors TEXT,
  categories TEXT NOT NULL,
  enclosures TEXT NOT NULL,
  content_omitted TEXT,
  summary TEXT,
  content_html TEXT,
  PRIMARY KEY (item_id, replaced_at)
);

-- The HTML of an item as readers show it: sanitized, without archived images, compressed by zlib (`size` is before that). It
-- can be made again at any time, so it is in no backup; in D1, which takes no bytes, the table is empty. `rules` is the
-- version of the sanitizer, `feed_bases` the feed's link and URL where they are in it. `title` is made of the text of an item
-- without one. `files` are the enclosures that it does not show; NULL is all.
CREATE TABLE item_html (
  arrived INTEGER PRIMARY KEY,
  rules TEXT NOT NULL,
  feed_bases TEXT,
  title TEXT,
  files TEXT,
  size INTEGER NOT NULL,
  html BLOB NOT NULL
);

-- An item that was removed because of its age, so that it does not come back while the feed still lists it. By link, title
-- and date it is recognized when its guid is rewritten. `unlisted_documents` that have items, up to three and one a day since
-- `unlisted_since`, did not list it.
CREATE TABLE expired_items (
  feed_id TEXT NOT NULL,
  guid TEXT NOT NULL,
  expired_at TEXT NOT NULL,
  unlisted_since TEXT,
  unlisted_documents INTEGER NOT NULL DEFAULT 0,
  link TEXT,
  title TEXT,
  pub_date TEXT,
  PRIMARY KEY (feed_id, guid)
) WITHOUT ROWID;

-- A guid that a publisher gave later to a stored or expired item, which keeps `item_guid`; at most three of an item.
CREATE TABLE item_aliases (
  feed_id TEXT NOT NULL,
  guid TEXT NOT NULL,
  item_guid TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (feed_id, guid)
) WITHOUT ROWID;

-- The article of the page behind an item, requested once: sanitized `html` where it is shown, else the `verdict` on the page, or
-- the kind of its failure, and the reason for people. Its page is under `backup_key` as it was served. Characters of the text of
-- the feed and of the page are what `auto` decides by. `user_id`: the user whose switch or request wants it, where feeds.yaml
-- does not. `for_all`: 0 where it is shown to `article_readers` alone.
CREATE TABLE articles (
  item_id TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
  feed_id TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'shown', 'none')),
  verdict TEXT,
  reason TEXT,
  host TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at TEXT NOT NULL,
  requested_at TEXT,
  backup_key TEXT,
  own_characters INTEGER,
  page_characters INTEGER,
  html TEXT,
  user_id TEXT,
  for_all INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX articles_feed ON articles (feed_id, status);
CREATE INDEX articles_due ON articles (next_attempt_at) WHERE status = 'pending';
CREATE INDEX articles_requested ON articles (requested_at, host) WHERE requested_at IS NOT NULL;
CREATE INDEX articles_awaited ON articles (next_attempt_at) WHERE status = 'pending' AND for_all = 0;

-- IMAGES

-- An image of an item: its object's key and bytes, and its size in pixels where its first bytes have it; or the reason why
-- there is none. `attempts` counts failures: 0 after a success at once. `last_error_kind`: why a pending one was postponed.
-- `written`: the first reference to it in the item's content_html, as it is written there: relative, with `&amp;`, or a
-- candidate of a `srcset`. NULL where the text names none (a file beside it, an article), and in rows of before the column.
CREATE TABLE image_tasks (
  id TEXT PRIMARY KEY,
  item_id TEXT NOT NULL REFERENCES items (id),
  original_url TEXT NOT NULL,
  host TEXT NOT NULL,
  position INTEGER NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'success', 'failed')),
  r2_key TEXT,
  bytes INTEGER,
  width INTEGER,
  height INTEGER,
  attempts INTEGER NOT NULL DEFAULT 0,
  next_attempt_at TEXT,
  last_error TEXT,
  last_error_kind TEXT,
  lease_token TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  written TEXT
);
-- With the status, so that tasks are counted without the table.
CREATE INDEX image_tasks_item ON image_tasks (item_id, status);
-- What claims look through, the longest due first. Tasks that are done leave it.
CREATE INDEX image_tasks_due ON image_tasks (coalesce(next_attempt_at, created_at)) WHERE status = 'pending';
CREATE INDEX image_tasks_failed ON image_tasks (updated_at) WHERE status = 'failed';
CREATE INDEX image_tasks_requested ON image_tasks (item_id) WHERE status = 'pending' AND last_error_kind = 'requested';

-- The last request of an image's URL (a hash, for it may hold a secret), kept for a day: another item that shows it gets a
-- copy, or the same failure (`failed`, its kind). `inside`: private hosts that were requested on the way.
CREATE TABLE image_urls (
  day TEXT NOT NULL,
  url_hash TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  task_id TEXT NOT NULL,
  failed TEXT,
  inside TEXT,
  PRIMARY KEY (day, url_hash)
) WITHOUT ROWID;

-- A host that gave an image only with the page of its item as Referer; for 30 days.
CREATE TABLE image_referers (
  host TEXT PRIMARY KEY,
  learned_at TEXT NOT NULL
) WITHOUT ROWID;

-- STREAMS AND TOPICS

-- A stream of a feed: `registered_hash` of its selector in feeds.yaml (NULL once it is not there), `selector_hash` of the one
-- that its items were judged by, and what the last documents showed of it (`values_seen` is a list, for its warning).
CREATE TABLE streams (
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  name TEXT NOT NULL,
  registered_hash TEXT,
  selector_hash TEXT,
  matched_at TEXT,
  unmatched_documents INTEGER NOT NULL DEFAULT 0,
  values_seen TEXT,
  error TEXT,
  PRIMARY KEY (feed_id, name)
) WITHOUT ROWID;
CREATE INDEX streams_unjudged ON streams (feed_id)
  WHERE registered_hash IS NULL OR selector_hash IS NOT registered_hash;

-- An item that belongs to a stream.
CREATE TABLE item_streams (
  feed_id TEXT NOT NULL,
  stream TEXT NOT NULL,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  PRIMARY KEY (feed_id, stream, item_id)
) WITHOUT ROWID;
CREATE INDEX item_streams_item ON item_streams (item_id);

-- A topic: its definition (JSON of all keys), the changes since the last publication (`stale`, above 0 since `stale_at`), the
-- entries and the error of the last one, the lease of the process that publishes. `removed`: it left feeds.yaml.
CREATE TABLE topics (
  id TEXT PRIMARY KEY,
  definition TEXT NOT NULL,
  stale INTEGER NOT NULL DEFAULT 1,
  stale_at TEXT,
  published_at TEXT,
  entries INTEGER,
  error TEXT,
  lease_token TEXT,
  lease_until TEXT,
  removed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX topics_stale ON topics (id) WHERE stale > 0;

-- A feed of a topic, whole or by a stream.
CREATE TABLE topic_members (
  topic_id TEXT NOT NULL REFERENCES topics (id),
  feed_id TEXT NOT NULL,
  PRIMARY KEY (topic_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX topic_members_feed ON topic_members (feed_id);

-- A published document in the object store: it is written only where its bytes differ, without reading it.
CREATE TABLE published_files (
  key TEXT PRIMARY KEY,
  hash TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  published_at TEXT NOT NULL
);

-- An item of a story: of what several feeds write of one event. A story is named by the item that began it, and keeps its
-- name without it. `article`: the first of the members that are copies of one article. `lead` orders members: by arrival, those
-- without a full text last, and those that a newer item of their feed replaces behind these. `evidence`: why it stands there, as
-- JSON; NULL for the first one. `joins`: the earlier members with which it stands by itself, as JSON: `["id","kind"]` each, or one
-- entry `["","event","id","id"]` where it stands with these together alone; NULL for an older row, whose nearest item is its only
-- one. `ordinal`: the order of the decisions.
CREATE TABLE story_members (
  item_id TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  arrived INTEGER NOT NULL,
  article TEXT NOT NULL,
  lead INTEGER NOT NULL,
  evidence TEXT,
  decided_at TEXT NOT NULL,
  version INTEGER NOT NULL,
  joins TEXT,
  ordinal INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX story_members_story ON story_members (story_id, lead);
CREATE INDEX story_members_feed ON story_members (feed_id, arrived);

-- USERS

-- A user of the reader; the name is lower case, the password's hash Argon2id. `state_version` grows with every write to what
-- the user sees; `backed_up_version` is the one that the last backup of the user holds.
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  preferences TEXT NOT NULL DEFAULT '{}',
  state_version INTEGER NOT NULL DEFAULT 0,
  backed_up_version INTEGER,
  created_at TEXT NOT NULL,
  -- Feeds new to the installation that came with lists of the user on a day (UTC).
  new_feeds_day TEXT,
  new_feeds INTEGER NOT NULL DEFAULT 0
);

-- A password of a user's app, which speaks the Google Reader API. The secret is random and long, so a SHA-256 is enough.
CREATE TABLE app_passwords (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (user_id, name)
);

-- Who is logged in: the id is the SHA-256 of a secret that only the client has. `last_used_at` is written every ten minutes
-- at most. That no id is NULL ends the batch of a request whose session has ended.
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

-- Failed logins of an account, or of an address; until `until`, none of this key is tried.
CREATE TABLE login_failures (
  key TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_at TEXT NOT NULL,
  until TEXT
) WITHOUT ROWID;
CREATE INDEX login_failures_age ON login_failures (last_at);

-- An address from which a user has logged in: what others try elsewhere does not lock the owner out there.
CREATE TABLE known_clients (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  last_at TEXT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;

-- The code that whoever makes the first user has to know, unless they are at this machine, and wrong ones since `tried_at`.
-- One row while there is no user.
CREATE TABLE first_user_code (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  code TEXT NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  tried_at TEXT
);

-- A feed that a user subscribes to. Items up to the arrival number `read_up_to` are read, those above it are not;
-- item_states has the exceptions. `title` is the user's own, NULL the feed's; `position` is the place in the folder. `origin`
-- is `list` where it came with feeds.yaml.
CREATE TABLE subscriptions (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  title TEXT,
  folder TEXT,
  position INTEGER NOT NULL DEFAULT 0,
  wished_interval INTEGER,
  read_up_to INTEGER NOT NULL,
  last_read_at TEXT,
  added_at TEXT NOT NULL,
  origin TEXT,
  leads INTEGER NOT NULL DEFAULT 0,
  -- The user wants the articles of items that arrive after this number.
  full_text_after INTEGER,
  PRIMARY KEY (user_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX subscriptions_feed ON subscriptions (feed_id, wished_interval);
CREATE INDEX subscriptions_full_text ON subscriptions (feed_id) WHERE full_text_after IS NOT NULL;

-- A folder that a user made, which may be empty. One that only a subscription names has no row.
CREATE TABLE folders (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  PRIMARY KEY (user_id, name)
) WITHOUT ROWID;

-- An item that a user has read above that number, or kept unread below it (`is_read`), or starred. By feed and arrival, so
-- that unread items are counted and listed in indexes alone.
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

-- A feed of a mark of many items that its user can undo until `until`: the numbers of the items that became read, and
-- `read_up_to` before it. What is read or marked since is taken out of `items`.
CREATE TABLE undoable_marks (
  user_id TEXT NOT NULL,
  id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  until TEXT NOT NULL,
  read_up_to INTEGER NOT NULL,
  items TEXT NOT NULL,
  PRIMARY KEY (user_id, id, feed_id),
  FOREIGN KEY (user_id, feed_id) REFERENCES subscriptions (user_id, feed_id) ON DELETE CASCADE
) WITHOUT ROWID;

-- The users who requested the article of an item. One that is not for all is shown to them alone.
CREATE TABLE article_readers (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX article_readers_item ON article_readers (item_id);

-- The story of an item as a user has it, after "the same" or "not the same"; others keep that of `story_members`.
CREATE TABLE story_choices (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  act INTEGER NOT NULL,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX story_choices_story ON story_choices (user_id, story_id);
CREATE INDEX story_choices_item ON story_choices (item_id);

-- The story and the article of an item as a user has them by their own feeds, where they differ from those of `story_members`.
CREATE TABLE story_views (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  article TEXT NOT NULL,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX story_views_story ON story_views (user_id, story_id);
CREATE INDEX story_views_item ON story_views (item_id);

-- What a user said, the last one with the highest number; `before`: the choices that it replaced, for undo (JSON).
CREATE TABLE story_acts (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  act INTEGER NOT NULL,
  said TEXT NOT NULL CHECK (said IN ('apart', 'together')),
  item_id TEXT NOT NULL,
  said_at TEXT NOT NULL,
  before TEXT NOT NULL,
  PRIMARY KEY (user_id, act)
) WITHOUT ROWID;

-- A visit that users wait for: of a feed that they refresh, of one that is new (`first`), or the search for the feed of an
-- address (`find`); kept for a day after its end. `others` are users who joined. `seen_visit` is the feed's last visit at the
-- request: another one since then is what was waited for. `wishes`: title, folder and interval of the subscription to come.
-- Without foreign keys: a feed or a user may go while somebody waits, and the answer says so.
CREATE TABLE refresh_requests (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('refresh', 'first', 'find')),
  user_id TEXT NOT NULL,
  others TEXT NOT NULL DEFAULT '[]',
  feed_id TEXT,
  address TEXT,
  wishes TEXT NOT NULL DEFAULT '{}',
  begins_at TEXT,
  requested_at TEXT NOT NULL,
  requested_ms INTEGER NOT NULL,
  seen_visit TEXT,
  state TEXT NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done')),
  lease_token TEXT,
  attempts INTEGER NOT NULL DEFAULT 0,
  result TEXT,
  finished_at TEXT
) WITHOUT ROWID;
CREATE UNIQUE INDEX refresh_requests_open ON refresh_requests (feed_id) WHERE state <> 'done' AND feed_id IS NOT NULL;
CREATE INDEX refresh_requests_waiting ON refresh_requests (requested_ms) WHERE state <> 'done';
CREATE INDEX refresh_requests_feed ON refresh_requests (feed_id, requested_at);
CREATE INDEX refresh_requests_user ON refresh_requests (user_id, requested_at);
CREATE INDEX refresh_requests_finished ON refresh_requests (finished_at) WHERE finished_at IS NOT NULL;

-- A feed or a search that is new to the installation, with the time from which it is requested for its user: only some an
-- hour are. A row is kept for an hour after its turn.
CREATE TABLE new_addresses (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  begins_at TEXT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;
CREATE INDEX new_addresses_begin ON new_addresses (begins_at);

-- What is kept of lists is valid no more when a feed changes for its readers, and when a user or a session does. Not at a
-- visit that finds nothing. SQLite and D1 only: where rows that are read cost nothing, nothing is kept.
CREATE TRIGGER feeds_seen AFTER UPDATE ON feeds
WHEN OLD.url IS NOT NEW.url OR OLD.title IS NOT NEW.title OR OLD.description IS NOT NEW.description
  OR OLD.link IS NOT NEW.link OR OLD.language IS NOT NEW.language OR OLD.changed_at IS NOT NEW.changed_at
  OR OLD.first_stored_at IS NOT NEW.first_stored_at
  OR OLD.registered <> NEW.registered OR OLD.enabled <> NEW.enabled OR OLD.forgotten <> NEW.forgotten
  OR OLD.unused_since IS NOT NEW.unused_since OR OLD.fetch_url IS NOT NEW.fetch_url
  OR OLD.warning IS NOT NEW.warning OR (OLD.last_visited_at IS NULL) <> (NEW.last_visited_at IS NULL)
  OR (OLD.consecutive_failures > 0) <> (NEW.consecutive_failures > 0) OR OLD.failing_since IS NOT NEW.failing_since
  OR OLD.last_error_kind IS NOT NEW.last_error_kind OR OLD.last_error IS NOT NEW.last_error
BEGIN
  INSERT INTO sequences (name, value) VALUES ('items', 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1;
END;
CREATE TRIGGER feeds_source_seen AFTER UPDATE ON feeds
WHEN OLD.watched <> NEW.watched OR OLD.listed <> NEW.listed OR OLD.page IS NOT NEW.page
  OR OLD.warning_kinds IS NOT NEW.warning_kinds
BEGIN
  INSERT INTO sequences (name, value) VALUES ('items', 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1;
END;
CREATE TRIGGER users_changed AFTER UPDATE OF state_version ON users
BEGIN
  UPDATE sequences SET changes = changes + 1 WHERE name = 'items';
END;
CREATE TRIGGER sessions_ended AFTER DELETE ON sessions
BEGIN
  UPDATE sequences SET changes = changes + 1 WHERE name = 'items';
END;

-- THE INSTALLATION

-- A value of this installation by its name: `uuid` is the base of the ids of its topics; others are the cursor of alerts, the
-- contact for publishers, and the dates of answers that are far from this machine's clock.
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- A machine of a fleet, by name. Each start has a new `incarnation`. `seen_at` is by the database's clock, the only one that
-- all share; `clock_offset` is its own minus that one. `machine` tells whether a `pid` can be looked up here. Since
-- `steady_since` it was seen without a gap: while the database is away, nobody is seen, and nobody is dead because of that.
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

-- A run that a worker executes now, in a process of its own. What a killed worker left goes when its run is ended.
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
