-- The sanitized HTML of items, without archived images: contents are served from it. It can be made again at any time, so it
-- is in no backup, and in D1, which takes no bytes from us, the table stays empty. `arrived` is the item's; its rows come in
-- that order. `rules` is the version of the sanitizer. `feed_bases` are the feed's link and URL where they are in it, NULL
-- where it depends on neither. `title` is made of the text of an item without one. `files` are
-- the enclosures that it does not show (JSON), NULL where those are all. `size` counts the bytes of `html` before
-- zlib compressed them.
CREATE TABLE item_html (
  arrived INTEGER PRIMARY KEY,
  rules TEXT NOT NULL,
  feed_bases TEXT,
  title TEXT,
  files TEXT,
  size INTEGER NOT NULL,
  html BLOB NOT NULL
);
