-- Where a subscription came from: `list` if it came with feeds.yaml (the first user's tick, `user add --subscribe`, `add`,
-- `import`), NULL if the user chose the feed, or if it is from before this was recorded.
ALTER TABLE subscriptions ADD COLUMN origin TEXT;
