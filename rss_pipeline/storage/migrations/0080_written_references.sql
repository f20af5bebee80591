-- Who replaces the images in content_html by SQL needs the characters by which it names them: a reference may be relative, have
-- `&amp;`, or be one of a `srcset`, while original_url is absolute. Older rows get it from `replay --repair`.
ALTER TABLE image_tasks ADD COLUMN written TEXT;
