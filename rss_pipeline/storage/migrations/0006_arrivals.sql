-- The order in which items came in, for readers that remember how far they got: created_at is when a document
-- was fetched, so it repeats, runs backwards with a clock, and lies in the past where a replay brings an item in.
-- NULL for what was stored before there was this column: its fetch time stands in, for rewriting every row of a
-- large D1 would not end in time. See storage/arrivals.py.
ALTER TABLE items ADD COLUMN arrived INTEGER;
-- In the index that finds a feed's items by age, and not in one of its own, which would be a row more written
-- for each item: a reader looks through the index entries of a feed, and reads the rows it has not had yet.
DROP INDEX items_age;
CREATE INDEX items_age ON items (feed_id, created_at, arrived);

-- The highest number given so far; without it a number could be given again once its item is retired.
CREATE TABLE sequences (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
);
INSERT INTO sequences (name, value)
  SELECT 'items', newest FROM
    (SELECT max(CAST(strftime('%s', created_at) AS INTEGER)) * 1000000 AS newest FROM items)
  WHERE newest IS NOT NULL;
