"""The tables `workers` and `worker_runs`, as machines write them, and the fleet as they say it is.

The values are model.py's. Times are the database's: it has the only clock that all machines share. What
follows from them is decided in model.py and membership.py.
"""

import json
from collections.abc import Collection
from datetime import datetime, timedelta

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.features.fleet.model import DISOWNED, Fleet, FleetMember, SeenMachine, WorkerRun
from rss_pipeline.storage.database import Database, Row, Statement
from rss_pipeline.storage.sql import DB_NOW, NOW, compact, storable


def fleet(database: Database) -> Fleet:
    """The fleet as it is now."""
    machines, runs, clock = database.batch(
        [
            Statement("SELECT * FROM workers ORDER BY role, name", name="list workers"),
            Statement(
                "SELECT * FROM worker_runs ORDER BY worker, started_at, run_id", name="list their runs"
            ),
            Statement(f"SELECT {NOW} AS now", name="read the clock"),
        ]
    )
    return Fleet(
        now=_at(clock.rows[0]["now"]),
        machines=tuple(_seen(row) for row in machines.rows),
        runs=tuple(_run(row) for row in runs.rows),
    )


def join(
    database: Database,
    member: FleetMember,
    *,
    clock_offset: int,
    instead_of: SeenMachine | None = None,
    now: datetime | None = None,
) -> bool:
    """Add a machine, instead of the dead one of its name if there is one; False if the name is taken.

    `instead_of` is the row as it was when it was found dead: one that was seen since is not replaced.
    """
    clock = None if now is None else instant(now)
    old = None if instead_of is None else [instead_of.member.incarnation, instant(instead_of.seen_at)]
    return bool(
        database.query(
            f"""INSERT INTO workers (role, name, incarnation, host, machine, pid, code_version,
              schema_version, queues, runs_at_once, started_at, seen_at, steady_since,
              clock_offset)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {DB_NOW}, {DB_NOW}, {DB_NOW}, ?)
            ON CONFLICT (role, name) DO UPDATE SET incarnation = excluded.incarnation, host = excluded.host,
              machine = excluded.machine, pid = excluded.pid, code_version = excluded.code_version,
              schema_version = excluded.schema_version, queues = excluded.queues,
              runs_at_once = excluded.runs_at_once, started_at = excluded.started_at,
              seen_at = excluded.seen_at, steady_since = excluded.steady_since,
              clock_offset = excluded.clock_offset
            WHERE workers.incarnation = ? AND workers.seen_at = ?""",
            [
                member.role,
                storable(member.name),
                member.incarnation,
                storable(member.host),
                member.machine,
                member.pid,
                member.code_version,
                member.schema_version,
                compact(list(member.queues)),
                member.runs_at_once,
                clock,
                clock,
                clock,
                clock_offset,
                *(old or ["", ""]),
            ],
            name="join the fleet",
        ).changes
    )


def beat(
    database: Database,
    member: FleetMember,
    *,
    clock_offset: int,
    steady_since: datetime | None = None,
    now: datetime | None = None,
) -> bool:
    """Note that a machine is alive; False if another one has its name now, or it was forgotten.

    `steady_since` is given after a gap.
    """
    return bool(
        database.query(
            f"""UPDATE workers SET seen_at = {DB_NOW}, clock_offset = ?,
              steady_since = coalesce(?, steady_since)
            WHERE role = ? AND name = ? AND incarnation = ?""",
            [
                None if now is None else instant(now),
                clock_offset,
                None if steady_since is None else instant(steady_since),
                member.role,
                member.name,
                member.incarnation,
            ],
            name="beat",
        ).changes
    )


def leave(database: Database, *members: FleetMember) -> None:
    """Take machines out of the fleet. One that is alive after all joins again at its next beat."""
    if members:
        database.batch(
            [
                Statement(
                    "DELETE FROM workers WHERE role = ? AND name = ? AND incarnation = ?",
                    [member.role, member.name, member.incarnation],
                    name="leave the fleet",
                )
                for member in members
            ]
        )


def begin_run(
    database: Database,
    *,
    run_id: str,
    worker: str,
    incarnation: str,
    job: str,
    queue: str,
    pid: int,
    detail: str | None = None,
    now: datetime | None = None,
) -> bool:
    """Note that a worker begins a run; False if that run was begun already: a task may be delivered twice."""
    return bool(
        database.query(
            f"""INSERT INTO worker_runs (run_id, worker, incarnation, job, queue, detail, pid, started_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, {DB_NOW}) ON CONFLICT (run_id) DO NOTHING""",
            [
                run_id,
                storable(worker),
                incarnation,
                storable(job),
                queue,
                None if detail is None else storable(detail),
                pid,
                None if now is None else instant(now),
            ],
            name="begin a run",
        ).changes
    )


def end_runs(database: Database, run_ids: Collection[str]) -> None:
    """Note that these runs have ended."""
    database.query(
        "DELETE FROM worker_runs WHERE run_id IN (SELECT value FROM json_each(?))",
        [compact(sorted(run_ids))],
        name="end runs of workers",
    )


def disown(database: Database, run_ids: Collection[str]) -> None:
    """Note that the processes of these runs no longer exist: they are no run of a worker that is alive."""
    database.query(
        f"UPDATE worker_runs SET incarnation = '{DISOWNED}' WHERE run_id IN (SELECT value FROM json_each(?))",
        [compact(sorted(run_ids))],
        name="disown runs",
    )


def last_renewals(database: Database, run_ids: Collection[str]) -> dict[str, datetime]:
    """Runs with leases to the time at which one of these was claimed or last renewed."""
    rows = database.query(
        """SELECT run_id, expires_at, seconds FROM leases
        WHERE run_id IN (SELECT value FROM json_each(?))""",
        [compact(sorted(run_ids))],
        name="read when leases were renewed",
    ).rows
    found: dict[str, datetime] = {}
    for row in rows:
        at = _at(row["expires_at"]) - timedelta(seconds=int(row["seconds"] or 0))
        found[row["run_id"]] = max(at, found.get(row["run_id"], at))
    return found


def _seen(row: Row) -> SeenMachine:
    return SeenMachine(
        member=FleetMember(
            role=row["role"],
            name=row["name"],
            incarnation=row["incarnation"],
            host=row["host"],
            machine=row["machine"],
            pid=int(row["pid"]),
            code_version=row["code_version"],
            schema_version=int(row["schema_version"]),
            queues=tuple(json.loads(row["queues"])),
            runs_at_once=int(row["runs_at_once"]),
        ),
        started_at=_at(row["started_at"]),
        steady_since=_at(row["steady_since"]),
        seen_at=_at(row["seen_at"]),
        clock_offset=int(row["clock_offset"]),
    )


def _run(row: Row) -> WorkerRun:
    return WorkerRun(**{**row, "pid": int(row["pid"]), "started_at": _at(row["started_at"])})


def _at(text: str) -> datetime:
    at = from_instant(text)
    assert at is not None
    return at
