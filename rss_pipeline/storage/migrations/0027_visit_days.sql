-- A feed's visits by day, for statistics: JSON, the day of the month to the date (UTC) and its visits with new items,
-- without, and failed: {"22": ["2026-11-22", 3, 40, 1]}. A day takes the place of that of the month before, so it is
-- never long, and the last 28 days are always in it. In the row that a visit writes anyway: a table of visits would be a
-- row more written for each.
ALTER TABLE feeds ADD COLUMN visit_days TEXT;
