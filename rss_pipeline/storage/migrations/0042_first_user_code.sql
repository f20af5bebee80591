-- The code that whoever makes the first user has to know, unless they sit at this machine: a reverse proxy lets
-- everybody reach the page. One row while there is no user. In the database, so that it survives a restart and any
-- machine that has the database can print it. `tries` counts wrong codes since `tried_at`.
CREATE TABLE first_user_code (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  code TEXT NOT NULL,
  tries INTEGER NOT NULL DEFAULT 0,
  tried_at TEXT
);
