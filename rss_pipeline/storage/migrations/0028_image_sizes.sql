-- The size in pixels of an archived image, read from its first bytes: a page keeps its room while the image comes. NULL
-- where they do not tell it, and for images that were archived before these columns.
ALTER TABLE image_tasks ADD COLUMN width INTEGER;
ALTER TABLE image_tasks ADD COLUMN height INTEGER;
