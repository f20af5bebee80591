"""The section of `status` on a fleet: its machines, when each was seen, what each runs."""

from datetime import timedelta

from rich.text import Text

from rss_pipeline.cli.output.status_table import StatusLook, StatusSection
from rss_pipeline.cli.output.terminal import new_console
from rss_pipeline.collector.models.clock import duration, instant
from rss_pipeline.features.fleet.checks import check_machines
from rss_pipeline.features.fleet.model import Fleet, SeenMachine
from rss_pipeline.features.fleet.settings import FleetSettings
from rss_pipeline.features.fleet.sql import fleet as read_fleet
from rss_pipeline.features.health.model import Finding


def status_section(look: StatusLook) -> StatusSection | None:
    """The machines, in the list of all feeds."""
    if look.settings.of(FleetSettings) is None or look.feed_id is not None:
        return None
    found = read_fleet(look.database)
    check = check_machines(look.database, found, look.settings, now=look.now)
    return StatusSection(
        as_json={"fleet": fleet_as_json(found, check)}, show=lambda: show_fleet(found, check), is_above=True
    )


def fleet_as_json(fleet: Fleet, check: Finding) -> dict[str, object]:
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


def show_fleet(fleet: Fleet, check: Finding) -> None:
    """A sentence, then a line for each machine, and one for each of its runs."""
    console = new_console()
    console.print()
    console.print(Text(check.sentences, style="" if check.state == "ok" else "yellow"))
    for seen in fleet.machines:
        console.print(Text(_machine_line(seen, fleet), style="" if seen.is_alive(fleet.now) else "red"))
        for run in fleet.runs_of(seen):
            detail = "" if run.detail is None else f" {run.detail}"
            age = duration(max(fleet.now - run.started_at, timedelta()))
            console.print(Text(f"    {run.job}{detail}, since {age} ({run.run_id[:8]})"))


def _machine_line(seen: SeenMachine, fleet: Fleet) -> str:
    member = seen.member
    where = "" if member.host == member.name else f" on {member.host}"
    count = len(fleet.runs_of(seen))
    what = (
        "the main machine" if member.role == "main" else f"{count} of {member.runs_at_once + 1} places taken"
    )
    return f"  {member.name}{where}: {what}, seen {duration(max(fleet.now - seen.seen_at, timedelta()))} ago"
