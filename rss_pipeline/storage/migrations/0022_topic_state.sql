-- For people: the entries of a topic's documents, why its last publication failed (NULL after one that did not), and
-- since when it waits for one (NULL where it does not). `stale` alone does not tell a change of this minute from one
-- that no publication has come to for a day.
ALTER TABLE topics ADD COLUMN entries INTEGER;
ALTER TABLE topics ADD COLUMN error TEXT;
ALTER TABLE topics ADD COLUMN stale_at TEXT;
UPDATE topics SET stale_at = strftime('%Y-%m-%dT%H:%M:%SZ') WHERE stale > 0;
