-- The sensors look once a minute at what may have begun to wait: one row each, whatever waits already.
CREATE INDEX hosts_held ON hosts (hold_until);
CREATE INDEX feed_holds_held ON feed_holds (hold_until);
CREATE INDEX image_holds_held ON image_holds (hold_until);
CREATE INDEX image_tasks_requested ON image_tasks (item_id) WHERE status = 'pending' AND last_error_kind = 'requested';
