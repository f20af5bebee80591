-- All authors of an item, a JSON list: streams select by any of them, and topics name all. `author` stays the first that
-- the item itself names. NULL in rows from before, where [author] counts: filling them in would be a row written for
-- every stored item, which is what D1 counts.
ALTER TABLE items ADD COLUMN authors TEXT;
ALTER TABLE item_versions ADD COLUMN authors TEXT;
