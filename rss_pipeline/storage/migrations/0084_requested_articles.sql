-- A user may want the article of one item, whatever its feed: who requested it sees it, and nobody else does. `for_all` is 0
-- for an article that is there because of such requests alone.
ALTER TABLE articles ADD COLUMN for_all INTEGER NOT NULL DEFAULT 1;
CREATE TABLE article_readers (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX article_readers_item ON article_readers (item_id);
CREATE INDEX articles_awaited ON articles (next_attempt_at) WHERE status = 'pending' AND for_all = 0;
