-- A feed that its user prefers leads the stories that it is in.
ALTER TABLE subscriptions ADD COLUMN leads INTEGER NOT NULL DEFAULT 0;
