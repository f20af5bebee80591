-- A hash of the address that asked for the hold: no other feed that leads there requests it before that.
ALTER TABLE feed_holds ADD COLUMN url_hash TEXT;

-- The seconds to leave between two requests to a host that limits their rate, as its 429 taught: for feeds ('hosts') and
-- for images ('image_holds'). A host that begins with a point stands for all names of that domain.
CREATE TABLE host_gaps (
  kept TEXT NOT NULL,
  host TEXT NOT NULL,
  seconds INTEGER NOT NULL,
  -- The last change of the gap, and the last request.
  since TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  PRIMARY KEY (kept, host)
);
