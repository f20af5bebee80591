-- A permanent redirect that is not believed yet, and the instant from which on each answer said so. Where it
-- is never to be believed (it would give up https, or a password's server), it stays here, to be shown.
ALTER TABLE feeds ADD COLUMN move_url TEXT;
ALTER TABLE feeds ADD COLUMN move_since TEXT;

-- How many items the last stored document listed, and when the last visit that went well meant the next one
-- to be: without both, a document in which all is new does not tell whether items were missed. NULL is not
-- known, and then nothing is concluded.
ALTER TABLE feeds ADD COLUMN items_listed INTEGER;
ALTER TABLE feeds ADD COLUMN planned_at TEXT;

-- Documents that had no item in common with the one before; how often the interval is halved for it, and
-- since when, for it recovers by itself.
ALTER TABLE feeds ADD COLUMN gaps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN last_gap_at TEXT;
ALTER TABLE feeds ADD COLUMN gap_halvings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN halved_at TEXT;
