-- An entry of feeds.yaml with `watch: false` is a name and a page in lists of feeds, without any source. Lists show whether a
-- feed is such a one, or a page that is collected: what is kept of them is valid no more when that changes.
ALTER TABLE feeds ADD COLUMN watched INTEGER NOT NULL DEFAULT 1;
CREATE TRIGGER feeds_source_seen AFTER UPDATE ON feeds
WHEN OLD.watched <> NEW.watched OR OLD.listed <> NEW.listed OR OLD.page IS NOT NEW.page
  OR OLD.warning_kinds IS NOT NEW.warning_kinds
BEGIN
  INSERT INTO sequences (name, value) VALUES ('items', 1) ON CONFLICT (name) DO UPDATE SET value = sequences.value + 1;
END;
