-- The page on which readers discuss an item, as its feed names it. NULL where it names none, and in rows from before,
-- until `replay --repair` reads their documents again.
ALTER TABLE items ADD COLUMN comments_url TEXT;
ALTER TABLE item_versions ADD COLUMN comments_url TEXT;
