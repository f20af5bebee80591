-- Bytes of new backups on the feed's `counted_day`: a feed that differs at each visit could fill the store, so the
-- next visit waits once there are too many (RSS_BACKUP_MB_PER_DAY).
ALTER TABLE feeds ADD COLUMN day_backup_bytes INTEGER NOT NULL DEFAULT 0;
