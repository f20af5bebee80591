-- A feed is visited while feeds.yaml lists it (`listed`) or somebody subscribes it: `registered` is 1 then, and claims,
-- reports and checks go by it as before. `shared`: feeds.yaml lets users subscribe it although it is private (headers, a
-- password, private addresses). `wished_interval` is the shortest that its subscribers wish, in seconds. `unused_since`:
-- the last subscriber of a feed that is not listed has left; retention removes the feed some days later.
ALTER TABLE feeds ADD COLUMN listed INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN shared INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN wished_interval INTEGER;
ALTER TABLE feeds ADD COLUMN unused_since TEXT;
UPDATE feeds SET listed = 1 WHERE registered = 1;

-- What users see is found by arrival: the items of a feed behind a number, and items by their numbers, which are the ids
-- that Google Reader clients have. Rows from before there were numbers get theirs from `migrate` (old_items.py).
-- Both hold all that is compared, so that no row is read for it: in a row, `arrived` is behind the content.
CREATE INDEX items_of_feed ON items (feed_id, arrived);
CREATE INDEX items_arrived ON items (arrived, feed_id);

-- A user's feeds. Items up to the arrival number `read_up_to` are read, those above it are not; item_states has the
-- exceptions. `title` is the user's own, NULL for the feed's. `folder` is NULL for none; `position` is the place in it.
CREATE TABLE subscriptions (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  feed_id TEXT NOT NULL REFERENCES feeds (id),
  title TEXT,
  folder TEXT,
  position INTEGER NOT NULL DEFAULT 0,
  wished_interval INTEGER,
  read_up_to INTEGER NOT NULL,
  added_at TEXT NOT NULL,
  PRIMARY KEY (user_id, feed_id)
) WITHOUT ROWID;
CREATE INDEX subscriptions_feed ON subscriptions (feed_id, wished_interval);

-- Folders that a user made, which may be empty. A folder that only a subscription names has no row here.
CREATE TABLE folders (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  PRIMARY KEY (user_id, name)
) WITHOUT ROWID;

-- Items that are read above the user's number, or kept unread below it (`is_read`; NULL where the number decides), and
-- items with a star. A state goes with its item, and with its subscription. By feed and arrival and not by the item's id,
-- so that unread items are counted and listed in indexes alone; an item never changes its number.
CREATE TABLE item_states (
  user_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  arrived INTEGER NOT NULL,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  is_read INTEGER CHECK (is_read IN (0, 1)),
  starred_at TEXT,
  PRIMARY KEY (user_id, feed_id, arrived),
  FOREIGN KEY (user_id, feed_id) REFERENCES subscriptions (user_id, feed_id) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX item_states_item ON item_states (item_id);
-- The starred items of a user, and for retention, which leaves them, those of a feed.
CREATE INDEX item_states_starred ON item_states (user_id, arrived) WHERE starred_at IS NOT NULL;
CREATE INDEX item_states_kept ON item_states (feed_id, arrived) WHERE starred_at IS NOT NULL;
