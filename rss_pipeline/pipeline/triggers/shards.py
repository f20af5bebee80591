"""The decisions which shards' polls start now: one run of each shard at a time.

Pure functions, as in poll.py, which decides for one shard as for all feeds where there is one poll for all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time

from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.pipeline.triggers.poll import (
    claim_config,
    decide,
    decide_sweep,
    poll_the_rest,
    polling_all_since,
)
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, is_alive, reason_to_wait
from rss_pipeline.storage.feeds.due import DueSummary

SHARD_TAG = "rss_pipeline/shard"
"""A tag of a poll of one shard: `3 of 8`."""
_SHARDS_NAMED = 4


def look_seconds(shards: int, *, is_paid: bool = False) -> int:
    """Return the seconds between two looks at what is due, with so many shards; `is_paid`: by request, on D1.

    A shard's run ends after two minutes or more, and the next one begins after a look, a look of the daemon's
    queue and its start: in a minute between two looks a third of a worker's time would go by. The daemon goes
    through its sensors every 5 s.
    """
    return 10 if shards > 1 and not is_paid else 60


def decide_by_shard(
    due: Mapping[Shard, DueSummary], runs: Sequence[JobRun], *, left: Mapping[Shard, datetime], now: datetime
) -> list[Start] | Wait:
    """Start a poll for each shard that has something to do and no run in progress.

    `runs` are the newest poll runs, newest first; `left` are the shards in which a poll of all feeds, begun
    at that instant, left some.
    """
    starts: list[Start] = []
    waits: list[str] = []
    for shard, counts in due.items():
        match _decide(shard, counts, runs, left.get(shard), due, now):
            case Start() as start:
                starts.append(_of_shard(shard, start))
            case Wait(reason=reason) if counts.due or shard in left:
                waits.append(f"Shard {shard}: {reason}")
            case Wait():
                pass
    if starts:
        return starts
    more = f" {len(waits) - _SHARDS_NAMED} more shards wait." if len(waits) > _SHARDS_NAMED else ""
    if not waits:
        is_idle = not any(counts.live_run_ids or counts.waits_for_turn for counts in due.values())
        return Wait(reason="No feed is due.", is_idle=is_idle)
    return Wait(reason=" ".join(waits[:_SHARDS_NAMED]) + more)


def _decide(
    shard: Shard,
    counts: DueSummary,
    runs: Sequence[JobRun],
    since: datetime | None,
    shards: Iterable[Shard],
    now: datetime,
) -> Start | Wait:
    for run in runs:
        alive = run.state == "waiting" or (run.state == "running" and is_alive(run, counts.live_run_ids, now))
        if alive and _is_of_every(run, shards):
            # A poll of the shard would be newer, and hide that all its feeds are to be visited.
            return Wait(reason=f"Run {run.run_id[:8]} polls feeds of all shards.")
    ours = [run for run in runs if run.shard == str(shard)]
    if since is None:
        return decide(counts, ours, now=now)
    return reason_to_wait(ours, counts.live_run_ids, now=now) or poll_the_rest(since)


def polls_of_all(shards: Sequence[Shard], runs: Sequence[JobRun]) -> dict[Shard, datetime]:
    """The shards with a newest poll of all feeds, and the instant since which each is to be visited.

    `runs` are the newest poll runs, newest first. Such a poll is a run of the shard, of none, or of one of
    another number of shards; a person's poll of feeds by name is none.
    """
    found = {shard: polling_all_since(list(_relevant(shard, shards, runs))) for shard in shards}
    return {shard: since for shard, since in found.items() if since is not None}


def decide_sweep_by_shard(
    shards: Sequence[Shard], runs: Sequence[JobRun], *, now: datetime, at: time, timezone: str
) -> list[Start] | Wait:
    """Start the poll of all feeds that is due since the clocks showed `at`, of each shard that had none."""
    starts = []
    wait = Wait(reason="There are no shards.")
    for shard in shards:
        relevant = list(_relevant(shard, shards, runs))
        match decide_sweep(relevant, now=now, at=at, timezone=timezone):
            case Start() as start:
                starts.append(_of_shard(shard, start))
            case Wait() as wait:
                pass
    return starts or wait


def _relevant(shard: Shard, shards: Sequence[Shard], runs: Sequence[JobRun]) -> Iterator[JobRun]:
    for run in runs:
        if run.shard == str(shard) or _is_of_every(run, shards):
            yield run


def _is_of_every(run: JobRun, shards: Iterable[Shard]) -> bool:
    """True for a poll of all feeds that is none of these shards'."""
    return run.is_of_all and run.shard not in {str(shard) for shard in shards}


def _of_shard(shard: Shard, start: Start) -> Start:
    """The start of a shard's poll: the shard is in its reason, its config and its tag."""
    config = start.run_config["ops"]["claim"]["config"] if start.run_config else {}
    return Start(
        reason=f"Shard {shard}: {start.reason}",
        run_config=claim_config({**config, "shard": shard.number, "shards": shard.of}),
        tags={SHARD_TAG: str(shard)},
    )
