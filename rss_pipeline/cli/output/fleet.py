"""The lines of `status` about a fleet: its machines, when each was seen, what each runs."""

from datetime import timedelta
from typing import TYPE_CHECKING

from rich.text import Text

from rss_pipeline.cli.output.terminal import new_console
from rss_pipeline.collector.models.clock import duration, instant
from rss_pipeline.storage.fleet.machines import Fleet, Seen

if TYPE_CHECKING:
    from rss_pipeline.pipeline.health.findings import Check


def as_json(fleet: Fleet, check: "Check") -> dict[str, object]:
    """The fleet for programs. `check` says what is wrong with it."""
    return {
        "state": check.state,
        "found": check.found,
        "places": fleet.places(),
        "machines": [
            {
                "role": seen.member.role,
                "name": seen.member.name,
                "host": seen.member.host,
                "pid": seen.member.pid,
                "version": seen.member.code_version,
                "runs_at_once": seen.member.runs_at_once,
                "started_at": instant(seen.started_at),
                "seen_at": instant(seen.seen_at),
                "is_alive": seen.is_alive(fleet.now),
                "clock_offset_seconds": seen.clock_offset,
                "runs": [
                    {
                        "id": run.run_id,
                        "job": run.job,
                        "queue": run.queue,
                        "detail": run.detail,
                        "started_at": instant(run.started_at),
                    }
                    for run in fleet.runs_of(seen)
                ],
            }
            for seen in fleet.machines
        ],
    }


def show_fleet(fleet: Fleet, check: "Check") -> None:
    """A sentence, then a line for each machine, and one for each of its runs."""
    console = new_console()
    console.print()
    console.print(Text(check.sentences, style="" if check.state == "ok" else "yellow"))
    for seen in fleet.machines:
        console.print(Text(_line(seen, fleet), style="" if seen.is_alive(fleet.now) else "red"))
        for run in fleet.runs_of(seen):
            detail = "" if run.detail is None else f" {run.detail}"
            age = duration(max(fleet.now - run.started_at, timedelta()))
            console.print(Text(f"    {run.job}{detail}, since {age} ({run.run_id[:8]})"))


def _line(seen: Seen, fleet: Fleet) -> str:
    member = seen.member
    where = "" if member.host == member.name else f" on {member.host}"
    count = len(fleet.runs_of(seen))
    what = (
        "the main machine" if member.role == "main" else f"{count} of {member.runs_at_once + 1} places taken"
    )
    return f"  {member.name}{where}: {what}, seen {duration(max(fleet.now - seen.seen_at, timedelta()))} ago"
