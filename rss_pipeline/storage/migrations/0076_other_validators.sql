-- An address that leads to one mirror after the other was requested without conditions at every second visit: each mirror has an
-- ETag of its own, and only the last one's was known.
ALTER TABLE feeds ADD COLUMN other_validators TEXT;
