-- Visits that users wait for: of a feed that they refresh, of one that is new, or the search for the feed of an address.
-- A run takes what is open; `lease_token` is its lease then, and a row whose lease is over is open again. A second user
-- who wants the same joins the open row (`others`, a JSON list of ids). `seen_visit` is the feed's last visit when it was
-- requested: another one since then, whosever, is what was waited for. `result` is JSON; rows are kept for a day after it.
-- Without foreign keys: a feed or a user may go while somebody waits, and the answer says so.
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
) WITHOUT ROWID;
CREATE UNIQUE INDEX refresh_requests_open ON refresh_requests (feed_id) WHERE state <> 'done' AND feed_id IS NOT NULL;
CREATE INDEX refresh_requests_waiting ON refresh_requests (requested_ms) WHERE state <> 'done';
CREATE INDEX refresh_requests_feed ON refresh_requests (feed_id, requested_at);
CREATE INDEX refresh_requests_user ON refresh_requests (user_id, requested_at);
CREATE INDEX refresh_requests_finished ON refresh_requests (finished_at) WHERE finished_at IS NOT NULL;
