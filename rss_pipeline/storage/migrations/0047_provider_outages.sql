-- The network (/24, /48) that the feed's host was in when it last answered: hosts of one provider prove no outage of ours.
ALTER TABLE feeds ADD COLUMN network TEXT;
-- Visits in a row that an outage of our own network postponed: each pause is twice the last one, up to an hour.
ALTER TABLE feeds ADD COLUMN outage_pauses INTEGER NOT NULL DEFAULT 0;
