-- Documents in a row that came cut off: from the third one on the feed is asked less often, for each is fetched whole.
ALTER TABLE feeds ADD COLUMN cuts INTEGER NOT NULL DEFAULT 0;
-- The address that gave the last document or 304, if it is not the one that was requested: two feeds may lead to one. NULL
-- for feeds with headers or a password, for which one address may have other documents.
ALTER TABLE feeds ADD COLUMN answered_url TEXT;
