-- Marks of many items at once that their user can take back until `until`: of each feed the items that were unread and
-- became read, as their arrival numbers, and `read_up_to` as it was before. One row a feed and not one an item, since a
-- row written is what D1 counts. What is read or marked since is taken out of `items`.
CREATE TABLE undoable_marks (
  user_id TEXT NOT NULL,
  id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  until TEXT NOT NULL,
  read_up_to INTEGER NOT NULL,
  items TEXT NOT NULL,
  PRIMARY KEY (user_id, id, feed_id),
  FOREIGN KEY (user_id, feed_id) REFERENCES subscriptions (user_id, feed_id) ON DELETE CASCADE
) WITHOUT ROWID;

-- Lists by date of publication: of all items of a feed the newest are in the last index, without a search. A date ahead of
-- the time at which an item was found counts as that time. Of unread items, and of first documents, the others have the
-- dates too, so that no row is read of an item that is not shown.
DROP INDEX items_of_feed;
CREATE INDEX items_of_feed ON items (feed_id, arrived, created_at, pub_date);
DROP INDEX items_age;
CREATE INDEX items_age ON items (feed_id, created_at, arrived, pub_date);
CREATE INDEX items_published ON items
  (feed_id, (CASE WHEN pub_date < created_at THEN pub_date ELSE created_at END), arrived, created_at);

-- The order by date of publication is the default of new users. Who is there keeps the one by arrival.
UPDATE users SET preferences = json_patch('{"order": "newest"}', preferences);
