-- What the user wishes of the subscription that a search leads to: title, folder, interval in seconds. JSON.
ALTER TABLE refresh_requests ADD COLUMN wishes TEXT NOT NULL DEFAULT '{}';
