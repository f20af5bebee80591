-- A Last-Modified of 2041 validates nothing, nor does one of 1970. Whether it is of the future is told by the Date of the answer
-- that gave it: by the clock it would become true some day. Validators under which another document came are not sent until one
-- of them changes. A check of them that failed would otherwise be repeated at each second visit, for a 304 ends the failure.
ALTER TABLE feeds ADD COLUMN validators_dated TEXT;
ALTER TABLE feeds ADD COLUMN false_validators INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN checked_at TEXT;
