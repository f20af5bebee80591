-- What users see of a feed in their lists is others now: no result that a reader keeps is valid any more, as after new
-- items (accounts.users.read_version). Not for a visit that finds nothing new, of which there is one every few minutes.
-- For SQLite and D1: where rows that are read cost nothing, none is kept, and Postgres has no such trigger.
CREATE TRIGGER feeds_seen AFTER UPDATE ON feeds
WHEN OLD.url IS NOT NEW.url OR OLD.title IS NOT NEW.title OR OLD.description IS NOT NEW.description
  OR OLD.link IS NOT NEW.link OR OLD.language IS NOT NEW.language OR OLD.changed_at IS NOT NEW.changed_at
  OR OLD.first_stored_at IS NOT NEW.first_stored_at
  OR OLD.registered <> NEW.registered OR OLD.enabled <> NEW.enabled OR OLD.forgotten <> NEW.forgotten
  OR OLD.unused_since IS NOT NEW.unused_since OR OLD.fetch_url IS NOT NEW.fetch_url
  OR OLD.warning IS NOT NEW.warning OR (OLD.last_visited_at IS NULL) <> (NEW.last_visited_at IS NULL)
  OR (OLD.consecutive_failures > 0) <> (NEW.consecutive_failures > 0) OR OLD.failing_since IS NOT NEW.failing_since
  OR OLD.last_error_kind IS NOT NEW.last_error_kind OR OLD.last_error IS NOT NEW.last_error
BEGIN
  INSERT INTO sequences (name, value) VALUES ('items', 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1;
END;
