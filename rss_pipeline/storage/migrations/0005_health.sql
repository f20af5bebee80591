-- What the health checks and alerts look for: written only when a feed or an image has gone wrong.
-- A feed that keeps failing is asked once a day, so its place in here changes once a day.
CREATE INDEX feeds_failing ON feeds (last_visited_at) WHERE consecutive_failures >= 10;
CREATE INDEX image_tasks_failed ON image_tasks (updated_at) WHERE status = 'failed';
