-- What Postgres has besides schema.sql.

-- A shard's feeds in the order in which they are due: several machines claim. On D1 it would be a row more at each visit.
CREATE INDEX feeds_due_by_bucket ON feeds (coalesce(bucket, 0), next_fetch_at) WHERE registered = 1 AND enabled = 1;
