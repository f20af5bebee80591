-- An entry of feeds.yaml with `watch: false` is a name and a page in lists of feeds, without any source. Lists show whether a
-- feed is such a one, or a page that is collected: what is kept of them is valid no more when that changes.
ALTER TABLE feeds ADD COLUMN watched INTEGER NOT NULL DEFAULT 1;
CREATE TRIGGER feeds_source_seen AFTER UPDATE OF watched, page ON feeds
WHEN OLD.watched <> NEW.watched OR OLD.page IS NOT NEW.page
BEGIN
  INSERT INTO sequences (name, value) VALUES ('items', 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1;
END;
