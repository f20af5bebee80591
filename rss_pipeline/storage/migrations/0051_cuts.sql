-- Documents in a row that came cut off: from the third one on the feed is asked less often, for each is fetched whole.
ALTER TABLE feeds ADD COLUMN cuts INTEGER NOT NULL DEFAULT 0;
