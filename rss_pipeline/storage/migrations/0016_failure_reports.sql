-- Since when a feed fails: the time of the first of its failures in a row. Reports show it; a success leaves it as it
-- is, so that only failures write it. For feeds that fail now it is not known, and the last success is the nearest.
ALTER TABLE feeds ADD COLUMN failing_since TEXT;
UPDATE feeds SET failing_since = coalesce(last_success_at, created_at) WHERE consecutive_failures > 0;

-- The kind and the time of the failure that Dagster last had an observation of. An event at each failure would cost
-- more than the visit: there is one when the kind changes, and then one a day.
ALTER TABLE feeds ADD COLUMN failure_reported_kind TEXT;
ALTER TABLE feeds ADD COLUMN failure_reported_at TEXT;
