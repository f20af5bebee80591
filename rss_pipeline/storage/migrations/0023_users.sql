-- The users of the reader. Names are lower case. `state_version` grows in the batch of every write to what a user sees
-- (subscriptions, read states, stars, preferences), so that an answer can be told from an older one without reading
-- either. `backed_up_version` is the state that the last backup of the user holds.
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  preferences TEXT NOT NULL DEFAULT '{}',
  state_version INTEGER NOT NULL DEFAULT 0,
  backed_up_version INTEGER,
  created_at TEXT NOT NULL
);

-- Passwords of single apps, which speak the Google Reader API. Their secrets are random and long, so a plain hash is
-- enough: nobody can try them all.
CREATE TABLE app_passwords (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (user_id, name)
);

-- Who is logged in. The id is the SHA-256 of a secret that only the client has; what is not in here is not logged in,
-- whatever it has signed. `last_used_at` is written every ten minutes at most. That no id is NULL is what ends the batch
-- of a request whose session has ended (storage/accounts/sessions.py).
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

-- Logins that were tried and did not succeed, by what they have in common: the account, or the address. Until `until`,
-- no login of this key is tried. A row is written before the password is looked at, and taken back if it was right.
CREATE TABLE login_failures (
  key TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_at TEXT NOT NULL,
  until TEXT
) WITHOUT ROWID;
CREATE INDEX login_failures_age ON login_failures (last_at);

-- Addresses from which users logged in lately: what others try elsewhere does not lock an account's owner out there.
CREATE TABLE known_clients (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  address TEXT NOT NULL,
  last_at TEXT NOT NULL,
  PRIMARY KEY (user_id, address)
) WITHOUT ROWID;
