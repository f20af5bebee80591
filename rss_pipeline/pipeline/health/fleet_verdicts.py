"""The health of several machines: are workers alive, and what to add where feeds wait. Pure.

The machines are read by storage/fleet; the other health checks are verdicts.py's.
"""

from rss_pipeline.collector.models.clock import instant, rough
from rss_pipeline.pipeline.health.findings import SKEW_FAILURE, SKEW_WARNING, Check, State, counted
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.fleet.machines import HIGH, Fleet, Seen

POLL_FEEDS = "poll_feeds"
CHECK_HEALTH = "check_health"
"""The job that evaluates these checks takes a place of a worker for a moment."""


def judge_workers(fleet: Fleet) -> Check:
    """Workers that are alive, with one version and one clock."""
    alive = fleet.living_workers
    dead = [seen for seen in fleet.workers if not seen.is_alive(fleet.now)]
    figures = {
        "workers": len(alive),
        "dead": len(dead),
        "places": fleet.places(),
        "runs": sum(len(fleet.runs_of(seen)) for seen in alive),
    }
    rows = [_row(seen, fleet) for seen in fleet.machines]
    found: list[tuple[State, str, str]] = []
    if not alive:
        found.append(
            ("failure", "No worker is alive: no run begins", "Start `rss-pipeline worker` on a machine.")
        )
    if dead:
        names = ", ".join(f"{seen.member.name} {rough(fleet.now - seen.seen_at)} ago" for seen in dead[:5])
        word = "worker was" if len(dead) == 1 else "workers were"
        found.append(
            (
                "warning",
                f"{len(dead)} {word} last seen: {names}",
                "Start them again if you need them; each is forgotten after a day. Other workers have taken"
                " over their feeds and runs.",
            )
        )
    if fleet.main is None:
        found.append(
            ("warning", "The main machine was not seen for a minute", "Look at the log of `rss-pipeline up`.")
        )
    elif others := [s for s in alive if s.member.code_version != fleet.main.member.code_version]:
        names = ", ".join(seen.member.name for seen in others[:5])
        found.append(
            (
                "warning",
                f"Their code is not the main machine's: {names}",
                "They begin no run: update them and start them again.",
            )
        )
    if wrong := [seen for seen in fleet.alive if abs(seen.clock_offset) >= SKEW_WARNING.total_seconds()]:
        worst = max(abs(seen.clock_offset) for seen in wrong)
        names = ", ".join(f"{seen.member.name} {seen.clock_offset:+d} s" for seen in wrong[:5])
        found.append(
            (
                "failure" if worst >= SKEW_FAILURE.total_seconds() else "warning",
                f"Clocks differ from the database's: {names}",
                "Set them (NTP): visits come at wrong times.",
            )
        )
    name = "workers_alive"
    if not found:
        sentence = f"{counted(len(alive), 'worker is', 'workers are')} alive, with {figures['places']} places"
        return Check(name, "ok", sentence, figures=figures, rows=rows)
    state: State = "failure" if any(each[0] == "failure" for each in found) else "warning"
    what = "; ".join(text for _, text, _ in found)
    return Check(name, state, what, " ".join(fix for _, _, fix in found), figures, rows)


def what_to_add(fleet: Fleet, *, shards: int) -> str:
    """Advice for a fleet in which feeds wait, by the figures: workers, shards or connections."""
    alive = fleet.living_workers
    if not alive:
        return "No worker is alive: start `rss-pipeline worker` on a machine."
    there = fleet.places()
    begun = [run for seen in alive for run in fleet.runs_of(seen)]
    runs = [run for run in begun if run.queue != HIGH and run.job != CHECK_HEALTH]
    polls = sum(run.job == POLL_FEEDS for run in runs)
    free = max(there - len(runs), 0)
    taken = f"{len(runs)} of {there} places of {counted(len(alive), 'worker', 'workers')} are taken"
    polled = f"{polls} of {counted(shards, 'shard', 'shards')} {'is' if polls == 1 else 'are'} polled"
    if not free:
        return (
            f"{taken}, and {polled}: start another worker, or raise RSS_WORKER_RUNS on one with idle"
            " processors."
        )
    if polls >= shards:
        return (
            f"{polled}, and {taken}: raise RSS_SHARDS to {max(there, shards + 1)} on the main machine, or"
            " RSS_FETCH_CONCURRENCY on the workers."
        )
    return (
        f"{taken}, and {polled}: more workers would not help. Is the sensor `poll_feeds_when_due` on, do its"
        " runs fail or wait in the queue?"
    )


def _row(seen: Seen, fleet: Fleet) -> Row:
    member = seen.member
    return {
        "name": member.name,
        "role": member.role,
        "host": member.host,
        "last_seen": instant(seen.seen_at),
        "runs": len(fleet.runs_of(seen)),
        "version": member.code_version,
        "clock_offset_seconds": seen.clock_offset,
    }
