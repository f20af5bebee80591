-- The most bytes of a feed's document that are read (max_size in feeds.yaml); NULL is the setting's.
ALTER TABLE feeds ADD COLUMN max_size INTEGER;
