-- A page without a feed is a source: how its list is found, and the entries of its last documents, as one text.
ALTER TABLE feeds ADD COLUMN page TEXT;
ALTER TABLE feeds ADD COLUMN page_known TEXT;
