-- The machines of a fleet: the main machine (`up --fleet`) and the workers, by name. Each start of one has a new
-- `incarnation`, so that what an earlier one ran can be told from what this one runs. `seen_at` is the database's clock,
-- the only one that all machines share; `clock_offset` is a machine's own clock minus that one, in seconds. `machine` tells
-- whether a `pid` can be looked up here: machines and containers may share a host name. Since `steady_since` a machine was
-- seen without a gap: while the database is away, nobody is seen, and nobody is dead for that.
CREATE TABLE workers (
  role TEXT NOT NULL CHECK (role IN ('main', 'worker')),
  name TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  host TEXT NOT NULL,
  machine TEXT NOT NULL,
  pid INTEGER NOT NULL,
  code_version TEXT NOT NULL,
  schema_version INTEGER NOT NULL,
  queues TEXT NOT NULL,
  runs_at_once INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  seen_at TEXT NOT NULL,
  steady_since TEXT NOT NULL,
  clock_offset INTEGER NOT NULL,
  PRIMARY KEY (role, name)
) WITHOUT ROWID;

-- What workers run now, each in a process of its own. A row that a killed worker left is removed when its run is
-- ended.
CREATE TABLE worker_runs (
  run_id TEXT PRIMARY KEY,
  worker TEXT NOT NULL,
  incarnation TEXT NOT NULL,
  job TEXT NOT NULL,
  queue TEXT NOT NULL,
  detail TEXT,
  pid INTEGER NOT NULL,
  started_at TEXT NOT NULL
) WITHOUT ROWID;
