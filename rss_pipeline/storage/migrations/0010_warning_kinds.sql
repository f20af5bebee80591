-- The kinds of a feed's warnings, as a JSON list: `warning` is for people, and no statement compares it. NULL is
-- no warning. Up to now there was one kind.
ALTER TABLE feeds ADD COLUMN warning_kinds TEXT;
UPDATE feeds SET warning_kinds = '["unstable_guids"]' WHERE warning IS NOT NULL;
