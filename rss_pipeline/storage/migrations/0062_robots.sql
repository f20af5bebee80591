-- A page is requested only if its site's robots.txt allows it, which is requested at most once a day.
CREATE TABLE robots (
  origin TEXT PRIMARY KEY,
  requested_at TEXT NOT NULL,
  rules TEXT,
  refusal TEXT
);
