-- Addresses that a user has brought and nobody had before, with the instant from which each may be requested: so many
-- an hour, whatever door they came by. `address` is the id of a feed, which is held until then, or that of a search,
-- which waits until then (`begins_at`). A row is kept for an hour after its turn: until then it counts. Without it a
-- user could make this machine request thousands of strangers' addresses in two minutes.
CREATE TABLE new_addresses (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  begins_at TEXT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;
CREATE INDEX new_addresses_begin ON new_addresses (begins_at);
ALTER TABLE refresh_requests ADD COLUMN begins_at TEXT;
