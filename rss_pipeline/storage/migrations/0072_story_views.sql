-- Where the story of a user differs from that of `story_members`, because only an item of other feeds ties its members.
CREATE TABLE story_views (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  article TEXT NOT NULL,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX story_views_story ON story_views (user_id, story_id);
CREATE INDEX story_views_item ON story_views (item_id);
