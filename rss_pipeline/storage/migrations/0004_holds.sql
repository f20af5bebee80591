-- Feeds that were told to stay away for a time (Retry-After), and feeds that lead to a host that asked for a
-- pause: apart from `feeds`, so that a visit without any of it writes nothing for it.
CREATE TABLE feed_holds (
  feed_id TEXT PRIMARY KEY,
  -- The one that said so.
  host TEXT NOT NULL,
  hold_until TEXT NOT NULL,
  reason TEXT NOT NULL
);

-- How often the host asked for a pause with no other answer in between: the first one is an hour at most. The
-- row goes when the host answers as usual.
ALTER TABLE hosts ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
ALTER TABLE image_holds ADD COLUMN times INTEGER NOT NULL DEFAULT 1;

-- Hosts that a refresh by hand waits for while another run has them: that run lets go of them, and no poll
-- claims them in between.
ALTER TABLE leases ADD COLUMN awaited TEXT NOT NULL DEFAULT '[]';
