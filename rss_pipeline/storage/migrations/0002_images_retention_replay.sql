-- Images. A claim takes tasks and their hosts as it takes feeds and theirs; the two sorts of hosts are apart,
-- for downloading a site's images is no reason to leave its feed alone.
ALTER TABLE leases ADD COLUMN image_tasks TEXT NOT NULL DEFAULT '[]';
ALTER TABLE leases ADD COLUMN image_hosts TEXT NOT NULL DEFAULT '[]';

-- What lies at r2_key, so that the archive's size is a sum and no listing.
ALTER TABLE image_tasks ADD COLUMN bytes INTEGER;
-- What a claim looks through, the longest due first. Tasks that are done leave it.
CREATE INDEX image_tasks_due ON image_tasks (coalesce(next_attempt_at, created_at)) WHERE status = 'pending';

-- Hosts that asked for a pause when an image was asked for; their feeds are not concerned.
CREATE TABLE image_holds (
  host TEXT PRIMARY KEY,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
);

-- Retention. Days the registry keeps a feed's items; NULL is what the settings say.
ALTER TABLE feeds ADD COLUMN keep_days INTEGER;
-- What is old is found feed by feed, for each may have its own age; without the index a daily clean would
-- read every item's content to reach the date behind it.
CREATE INDEX items_age ON items (feed_id, created_at);

-- What retention removed: it does not come back while the feed still lists it.
CREATE TABLE expired_items (
  feed_id TEXT NOT NULL,
  guid TEXT NOT NULL,
  expired_at TEXT NOT NULL,
  PRIMARY KEY (feed_id, guid)
) WITHOUT ROWID;

-- What items were before a repair rewrote them: what the reading of a document gives, nothing else.
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
  content_omitted TEXT,
  PRIMARY KEY (item_id, replaced_at)
);
