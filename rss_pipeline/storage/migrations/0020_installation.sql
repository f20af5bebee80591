-- What this installation is, by name. `uuid` is the base of the ids of published topics: without one of its own, two
-- installations would publish two topics under one id. It is copied, and also in topics/index.json, from which a
-- database that was lost takes it back: readers take a feed with another id for another feed.
CREATE TABLE installation (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;
