-- Why a feed is next when it is, as a kind: schedule_reason is a sentence for people, and no statement compares
-- it any more. interval, failure, hold, our_outage, unreadable_registry or skip_hours; NULL is not known, as for
-- feeds last scheduled before there was this column. Of those only one kind decides anything, and has one
-- sentence: a feed that failed together with all others is not counted as failing by itself the next time.
ALTER TABLE feeds ADD COLUMN schedule_kind TEXT;
UPDATE feeds SET schedule_kind = 'our_outage' WHERE schedule_reason = 'our network was down: 5 min';

-- Likewise last_error of an image task that was postponed without an attempt being counted: our_outage, or NULL.
-- Only pending tasks matter, and the index that holds them alone finds them: a large archive is not read.
ALTER TABLE image_tasks ADD COLUMN last_error_kind TEXT;
UPDATE image_tasks SET last_error_kind = 'our_outage' WHERE id IN (
  SELECT id FROM image_tasks INDEXED BY image_tasks_due
  WHERE status = 'pending' AND coalesce(next_attempt_at, created_at) > ''
    AND substr(last_error, 1, 24) = 'our own network was down');
