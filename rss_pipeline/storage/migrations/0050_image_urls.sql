-- The last request of each image URL, kept for a day: another item that shows the URL gets a copy of the image, or the
-- same failure, and no request is made. By day, so that what is over is found without reading the rest.
CREATE TABLE image_urls (
  day TEXT NOT NULL,
  -- A hash, for a URL may hold a secret.
  url_hash TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  task_id TEXT NOT NULL,
  -- The kind of the failure; NULL for an image, whose key is in its task.
  failed TEXT,
  -- A JSON list of the private hosts that were requested because the feed of the task opens them, or NULL: what came from
  -- there is for no feed that does not.
  inside TEXT,
  PRIMARY KEY (day, url_hash)
) WITHOUT ROWID;
-- Hosts that gave an image only to a request with the page of its item as Referer.
CREATE TABLE image_referers (
  host TEXT PRIMARY KEY,
  learned_at TEXT NOT NULL
) WITHOUT ROWID;
