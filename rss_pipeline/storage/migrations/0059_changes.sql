-- Whatever a reader keeps of what a user sees is still so while one row is as it was (accounts.users.read_changes): that
-- of the arrivals, with the changes of users and the ends of sessions counted in it. Postgres has no such triggers (0052).
ALTER TABLE sequences ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER users_changed AFTER UPDATE OF state_version ON users
BEGIN
  UPDATE sequences SET changes = changes + 1 WHERE name = 'items';
END;
CREATE TRIGGER sessions_ended AFTER DELETE ON sessions
BEGIN
  UPDATE sequences SET changes = changes + 1 WHERE name = 'items';
END;
