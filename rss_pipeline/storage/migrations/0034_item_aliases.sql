-- Guids that a publisher gave to stored items later, when it rewrote those of a whole document: the item keeps
-- `item_guid`, which is in `items` or in `expired_items`. `created_at` is the fetch time of that document.
CREATE TABLE item_aliases (
  feed_id TEXT NOT NULL,
  guid TEXT NOT NULL,
  item_guid TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (feed_id, guid)
) WITHOUT ROWID;

-- What a retired item is recognized by when its guid is rewritten: else it would come back as news. NULL for those that
-- were retired before there were these columns; `pub_date` also where the feed gave none.
ALTER TABLE expired_items ADD COLUMN link TEXT;
ALTER TABLE expired_items ADD COLUMN title TEXT;
ALTER TABLE expired_items ADD COLUMN pub_date TEXT;
