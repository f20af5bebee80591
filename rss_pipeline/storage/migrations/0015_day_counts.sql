-- New items and bytes of images of a feed on one UTC day, so that a feed cannot fill the disk: at its limit, items
-- are left out, with a warning, and images wait for the next day (image_tasks.last_error_kind is then day_full).
-- They are counted here because adding up a feed's items and images at every visit would read all of them.
ALTER TABLE feeds ADD COLUMN counted_day TEXT;
ALTER TABLE feeds ADD COLUMN day_items INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feeds ADD COLUMN day_image_bytes INTEGER NOT NULL DEFAULT 0;
