-- Feeds of a lease whose requests have not begun: where its run dies, none of their documents can be the cause.
ALTER TABLE leases ADD COLUMN unbegun TEXT NOT NULL DEFAULT '[]';
-- How many feeds the last claim had: where it never ends in a close, it shows how many are visited together next.
ALTER TABLE feeds ADD COLUMN claimed_with INTEGER NOT NULL DEFAULT 0;
