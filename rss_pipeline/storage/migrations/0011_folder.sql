-- The folder of feeds.yaml in which readers show a feed, `News/Europe` for nested ones: exports and streams go by it
-- without the file. NULL is none.
ALTER TABLE feeds ADD COLUMN folder TEXT;
