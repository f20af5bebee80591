-- A user may want the articles of a feed, as feeds.yaml may; the requests count as new addresses of that user.
ALTER TABLE subscriptions ADD COLUMN full_text_after INTEGER;
CREATE INDEX subscriptions_full_text ON subscriptions (feed_id) WHERE full_text_after IS NOT NULL;
ALTER TABLE articles ADD COLUMN user_id TEXT;
CREATE INDEX articles_feed ON articles (feed_id, status);
DROP INDEX feeds_full_text;
CREATE INDEX feeds_full_text ON feeds (id) WHERE full_text_after IS NOT NULL;
