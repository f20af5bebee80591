-- A feed's description, as plain text; NULL until a document has one.
ALTER TABLE feeds ADD COLUMN description TEXT;

-- Time at which the user last marked an item of the feed as read; NULL if never since this is known.
ALTER TABLE subscriptions ADD COLUMN last_read_at TEXT;
