-- When a feed's failures in a row became prominent (the tenth). The count goes on, and an alert that could not
-- be delivered then is still owed later. Feeds that were failing before have none: their time to be told is over.
ALTER TABLE feeds ADD COLUMN prominent_at TEXT;
