"""The costs and the outside world of a simulated fleet: each number, and where it comes from.

Measured by `python -m benchmarks.fleet.costs` on a shared Xeon of 2.5 GHz with two cores, unless another
source is named. An assumption says so. The rules of the pipeline are in plan.py, taken from the code.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds of processor time or of holding a lock, bytes, rows."""

    fetch_cpu: float = 0.006
    """A request that is answered 304: httpx, the outcome, its part of the close."""
    body_cpu: float = 0.004
    """The time that a body of 57 KB adds to a request that brought nothing new."""
    document_cpu: float = 0.009
    """A new document: backup, parser process, items, images, Dagster's event."""
    close_lock: float = 0.00025
    """Postgres, an unchanged visit: its part of the one statement that closes those of a run."""
    store_lock: float = 0.007
    """Postgres, a document of 20 items, two of them new: the batch that stores and closes it."""
    commit: float = 0.001
    """Assumption: the disk's part of a commit, while the writers' lock is held (a local NVMe has 0.1 ms, a
    network volume 1 to 3 ms)."""
    claim_lock: float = 0.04
    """Postgres, a claim of 500 feeds: its time under the claims' lock."""
    claims_beside: bool = True
    """Claims wait for other claims only, not for all batches that write (docs/postgres.md)."""
    run_starts: float = 1.3
    """A worker's process, from the message to the op `claim`: as Dagster logged it for a run on two cores
    that had other work. The daemon's part is `dequeue_every` and `launch`."""
    run_ends: float = 0.6
    """The ops that are left of a run once the last visit is closed."""
    dequeue_every: float = 2.0
    """Dagster's run queue daemon looks so often in a fleet (dequeue_interval_seconds)."""
    launch: float = 0.9
    """The daemon, to send a run to the workers; as many at once as dagster.yaml has threads."""
    launch_threads: int = 4
    create_run: float = 0.15
    """Assumption: the sensor daemon, for each run that a tick requests; one after the other."""
    registry_feed: float = 0.00016
    """A run reads the feeds.yaml of its machine: processor time for each feed."""
    put: float = 0.05
    """Assumption: a backup into an object store elsewhere."""
    store_threads: int = 16
    unchanged_wal: int = 1_010
    document_wal: int = 19_600
    claimed_wal: int = 710
    """Bytes of write-ahead log: an unchanged visit, a document, a claimed feed."""
    dagster_rows: int = 55
    """Rows that Dagster writes for a run: its events and its own row. Each changed feed adds one."""
    noticed: float = 60.0
    """A worker that was not seen for so long is dead; the daemon looks once a tick."""
    new_items: int = 2
    """The time of a new document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Behaviour of publishers. Shares of all visits; seconds."""

    response: float = 0.35
    """Assumption: the median of a visit's request on a new connection (name, TCP, TLS, answer)."""
    response_sigma: float = 1.0
    """Assumption: of the logarithm; the mean is then 1.65 times the median, the 99th percentile ten times."""
    no_connection: float = 0.005
    """Assumption: visits that end after `connect_seconds`. Few, for back-off makes them rare."""
    connect_seconds: float = 10.0
    no_answer: float = 0.002
    answer_seconds: float = 30.0
    changed: float = 0.05
    """Assumption: visits with a new document; at 48 visits a day, 2.4 of them for each feed."""
    same_bytes: float = 0.2
    """Assumption: visits with a whole document that is the known one, from servers without 304."""

    @property
    def mean_response(self) -> float:
        usual = self.response * math.exp(self.response_sigma**2 / 2)
        return usual + self.no_connection * self.connect_seconds + self.no_answer * self.answer_seconds
