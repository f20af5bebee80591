-- The instant before which the publisher wants no visit (max-age, ttl and Retry-After of its last answer): a shorter
-- interval, of feeds.yaml or wished by a reader's user, brings the next visit no nearer than this.
ALTER TABLE feeds ADD COLUMN not_before TEXT;
UPDATE feeds SET not_before = strftime('%Y-%m-%dT%H:%M:%SZ', last_success_at,
  '+' || CAST(min(86400, max(coalesce(max_age, 0), coalesce(ttl, 0))) AS INTEGER) || ' seconds')
  WHERE last_success_at IS NOT NULL AND max(coalesce(max_age, 0), coalesce(ttl, 0)) > 0;
