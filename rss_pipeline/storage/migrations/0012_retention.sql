-- 1: the feed comes from backups that do not say how long its items are kept, and feeds.yaml does not list it.
-- Retention leaves it alone: `keep: forever` must not end with a lost database.
ALTER TABLE feeds ADD COLUMN keep_unknown INTEGER NOT NULL DEFAULT 0;

-- 1: `forget` has deleted its rows in the other tables, and its partition key is next. The next sync completes
-- it: a killed process would leave a key without a feed, and nothing would show which one.
ALTER TABLE feeds ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0;

-- Since when documents that have items do not list a retired item any more, and in how many, up to three and one
-- a day. One empty or cut document proves nothing. A tombstone that is listed costs no write.
ALTER TABLE expired_items ADD COLUMN unlisted_since TEXT;
ALTER TABLE expired_items ADD COLUMN unlisted_documents INTEGER NOT NULL DEFAULT 0;

-- The lease's length: one that ends later than this from now was taken by a clock that has been put back since.
-- NULL is not known, as for leases from before this column.
ALTER TABLE leases ADD COLUMN seconds INTEGER;
