-- A shard's feeds in the order in which they are due, bucket by bucket: its claim reads as many rows as it needs, and
-- not those of all shards. Postgres only, where several machines claim; D1 is paid by written rows, of indexes too.
CREATE INDEX feeds_due_by_bucket ON feeds (coalesce(bucket, 0), next_fetch_at) WHERE registered = 1 AND enabled = 1;
