-- The article of the page behind an item of a feed that asks for it (`full_text`), requested once for all.
ALTER TABLE feeds ADD COLUMN full_text TEXT;
ALTER TABLE feeds ADD COLUMN full_text_after INTEGER;
ALTER TABLE feeds ADD COLUMN full_text_decision TEXT;
CREATE INDEX feeds_full_text ON feeds (id) WHERE full_text IS NOT NULL;
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
  html TEXT
);
CREATE INDEX articles_due ON articles (next_attempt_at) WHERE status = 'pending';
CREATE INDEX articles_requested ON articles (requested_at, host) WHERE requested_at IS NOT NULL;
