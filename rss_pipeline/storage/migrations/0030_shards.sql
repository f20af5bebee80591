-- The bucket of the host that a feed is asked at, 0 to 1023 (collector/models/shard.py): of the last redirect's target
-- where a visit ended there, so that all who ask one host are of one shard. NULL, which counts as 0, until the registry
-- is synced: a hash cannot be computed in here.
ALTER TABLE feeds ADD COLUMN bucket INTEGER;
-- Hosts that a run asked right before it freed them, feeds' and images': until the lease expires the next run waits for
-- their pace. It holds them no longer.
ALTER TABLE leases ADD COLUMN asked TEXT NOT NULL DEFAULT '[]';
ALTER TABLE leases ADD COLUMN image_asked TEXT NOT NULL DEFAULT '[]';
