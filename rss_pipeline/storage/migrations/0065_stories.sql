-- What several feeds write of one event is one story; a person may say otherwise.
CREATE TABLE story_members (
  item_id TEXT PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  feed_id TEXT NOT NULL,
  arrived INTEGER NOT NULL,
  article TEXT NOT NULL,
  lead INTEGER NOT NULL,
  evidence TEXT,
  decided_at TEXT NOT NULL,
  version INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX story_members_story ON story_members (story_id, lead);
CREATE INDEX story_members_feed ON story_members (feed_id, arrived);
CREATE TABLE story_choices (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  item_id TEXT NOT NULL REFERENCES items (id) ON DELETE CASCADE,
  story_id TEXT NOT NULL,
  act INTEGER NOT NULL,
  PRIMARY KEY (user_id, item_id)
) WITHOUT ROWID;
CREATE INDEX story_choices_story ON story_choices (user_id, story_id);
CREATE INDEX story_choices_item ON story_choices (item_id);
CREATE TABLE story_acts (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  act INTEGER NOT NULL,
  said TEXT NOT NULL CHECK (said IN ('apart', 'together')),
  item_id TEXT NOT NULL,
  said_at TEXT NOT NULL,
  before TEXT NOT NULL,
  PRIMARY KEY (user_id, act)
) WITHOUT ROWID;
