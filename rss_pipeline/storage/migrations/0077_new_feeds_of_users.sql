-- Lists that are imported, left and imported anew made 8,700 rows of feeds in a minute, which stay for days: how many came with
-- lists of a user on a day has a limit.
ALTER TABLE users ADD COLUMN new_feeds_day TEXT;
ALTER TABLE users ADD COLUMN new_feeds INTEGER NOT NULL DEFAULT 0;
