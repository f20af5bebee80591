-- A Last-Modified of 2041 validates nothing, nor does one of 1970. Whether it is of the future is told by the Date of the answer
-- that gave it (`dated`): by the clock it would become true some day. Validators under which another document came are not sent
-- until one of them changes (`false`). A check of them that failed (`checked_at`) would otherwise be repeated at each second
-- visit, for a 304 ends the failure. An address that leads to one mirror after the other was requested without conditions at
-- every second visit: each mirror has an ETag of its own (`others`). One column for all: D1 takes 100 a table.
ALTER TABLE feeds ADD COLUMN validators_state TEXT;
