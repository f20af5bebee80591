"""The decisions whether a run starts now: a poll, of all or of a shard; a download of images; a refresh.

Pure functions that return their reason; sensors, schedules and the processes of `up` call them. Which feeds,
images and requests a run takes is decided by its claim (storage/feeds/claims.py,
storage/images/image_claims.py, storage/refresh/open_requests.py). Daily jobs are in daily.py.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

from rss_pipeline.collector.models.clock import from_instant, instant
from rss_pipeline.collector.models.shard import Shard
from rss_pipeline.features import FEATURES
from rss_pipeline.pipeline.registry.sync import RegistrySync
from rss_pipeline.pipeline.triggers.daily import latest
from rss_pipeline.pipeline.triggers.runs import JobRun, Start, Wait, is_alive, reason_to_wait
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline.storage.feeds.due import DueSummary, is_claimable
from rss_pipeline.storage.feeds.feed_changes import has_unreported
from rss_pipeline.storage.images.image_claims import ImagesDue
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.refresh.open_requests import Waiting

POLL_PATIENCE = timedelta(minutes=4)
"""A due feed waits so long for others to share a run; a small registry then costs at most 300 runs a day."""
MANY_DUE = 100
ALL_SINCE_TAG = "rss_pipeline/all_since"
"""A tag of runs that visit every feed without a visit since then, due or not, as far as one run can."""
NOTHING_REACHED_TAG = "rss_pipeline/nothing_reached"
"""A tag of runs that failed because no feed could be reached, and none ever was."""


def decide(due: DueSummary, runs: Sequence[JobRun], *, now: datetime, has_work: bool = False) -> Start | Wait:
    """Start a poll or wait. `runs` are the newest poll runs, newest first. With `has_work` a poll has
    something to do although no feed is due, as often as for a feed."""
    if has_work and due.due == 0 and reason_to_wait(runs, due.live_run_ids, now=now) is None:
        ended_at = runs[0].ended_at if runs else None
        if ended_at is not None and timedelta(0) <= now - ended_at < POLL_PATIENCE:
            return Wait(reason="No feed is due. What came back from backups waits for the next poll.")
        return Start(reason="What came back from backups is not decided yet.")
    if due.due == 0:
        return Wait(reason="No feed is due.", is_idle=not (due.live_run_ids or due.waits_for_turn))
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    if due.never_fetched:
        return Start(reason=f"{due.never_fetched} feeds were never visited.")
    if due.due >= MANY_DUE:
        return Start(reason=f"{MANY_DUE} feeds or more are due.")
    oldest = from_instant(due.oldest_due_at)
    if oldest is not None and now - oldest >= POLL_PATIENCE:
        return Start(reason=f"{due.due} feeds are due, the oldest since {oldest:%H:%M} UTC.")
    return Wait(
        reason=f"{due.due} feeds are due, none for {POLL_PATIENCE.seconds // 60} minutes yet:"
        " waiting for more."
    )


def polling_all_since(runs: Sequence[JobRun]) -> datetime | None:
    """The instant since which every feed is to be visited, where the newest run began that and succeeded."""
    if runs and runs[0].state == "succeeded":
        return runs[0].all_since
    return None


def poll_the_rest(since: datetime) -> Start:
    """Start the next run for every feed without a visit since then."""
    return Start(
        reason=f"A poll of all feeds was requested at {since:%H:%M} UTC, and some are left.",
        run_config=_all_since(since),
    )


def decide_sweep(runs: Sequence[JobRun], *, now: datetime, at: time, timezone: str) -> Start | Wait:
    """Start the poll of all feeds that is due since the clocks showed `at`. `runs` are the newest poll runs.

    A daemon that was off for days catches up with a tick for each: one poll is enough.
    """
    for run in runs:
        begun = run.all_since is not None and run.all_since >= latest(now, at=at, timezone=timezone)
        if begun and run.state in ("waiting", "running", "succeeded"):
            return Wait(reason=f"Run {run.run_id[:8]} is today's poll of all feeds.")
    return Start(reason=f"It is {at:%H:%M}: all feeds are visited.", run_config=_all_since(now))


def _all_since(since: datetime) -> dict[str, Any]:
    return claim_config({"all": True, "not_visited_since": instant(since)})


def claim_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The run config of a poll with this config of its claim."""
    return {"ops": {"claim": {"config": dict(config)}}}


def work_waits(database: Database) -> bool:
    """Return True if work of a feature waits for a poll, whatever is due."""
    return any(each.poll_waits is not None and each.poll_waits.load()(database) for each in FEATURES)


def has_registry_news(synced: RegistrySync) -> bool:
    """Return True if Dagster does not know yet what this sync of the registry changed."""
    return bool(synced.forgotten) or not synced.is_without_changes


def has_pending_work(database: Database, synced: RegistrySync, *, now: datetime) -> bool:
    """Return True if a poll would change something: partition keys, a visit, also one that a user waits for,
    an event, or the last step of a feature.

    Small queries only, so that a poll by cron with nothing due costs neither Dagster's import nor a run.
    """
    return (
        has_registry_news(synced)
        or is_claimable(database, Due(now=now))
        or has_unreported(database)
        or work_waits(database)
        or open_requests.waiting(database, now=now).can_begin > 0
        or any(
            feature.after_poll is not None and feature.after_poll.is_due.load()(database, now)
            for feature in FEATURES
        )
    )


# Polls of shards: one run of each shard at a time, decided for it as above for all feeds.

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


# Downloads of images: of new ones, of failed ones again.

IMAGE_PATIENCE = timedelta(minutes=2)
"""The images of one poll share a run."""
MANY_WAITING = 100
_SHARDS_A_RUN = 4
"""Polls need most of the places: where there are eight shards, two downloads may run at once."""
_MOST_AT_ONCE = 8


def most_at_once(shards: int) -> int:
    """Downloads of new images that may run at once where there are so many shards."""
    return min(max(1, shards // _SHARDS_A_RUN), _MOST_AT_ONCE)


def decide_fresh(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime, at_once: int = 1) -> Start | Wait:
    """Start a run for images that were never tried, or that a user waits for. `runs` are the newest download
    runs, newest first.

    Another one, up to `at_once`, where many wait at hosts that no run has: those are the ones that count.
    """
    if due.fresh == due.requested == 0:
        return Wait(reason="No new image waits.", is_idle=not due.live_run_ids)
    running = [run for run in runs if run.state == "running" and is_alive(run, due.live_run_ids, now)]
    if due.fresh >= MANY_WAITING and len(running) < at_once:
        runs = [run for run in runs if run not in running]
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    if due.requested:
        return Start(reason=f"A user waits for {due.requested} images.")
    oldest = from_instant(due.oldest_fresh_at)
    if due.fresh >= MANY_WAITING or (oldest is not None and now - oldest >= IMAGE_PATIENCE):
        return Start(reason=f"{due.fresh} new images wait.")
    return Wait(reason=f"{due.fresh} new images wait, none for {IMAGE_PATIENCE.seconds // 60} minutes yet.")


def decide_retries(due: ImagesDue, runs: Sequence[JobRun], *, now: datetime) -> Start | Wait:
    """Start a run for images after the back-off of their first or second failed attempt."""
    if due.retries == 0:
        return Wait(reason="No image is due for another attempt.", is_idle=not due.live_run_ids)
    if (wait := reason_to_wait(runs, due.live_run_ids, now=now)) is not None:
        return wait
    return Start(reason=f"{due.retries} images are due for another attempt.")


# Runs for requests of users.

REFRESH_PATIENCE = timedelta(seconds=10)
"""A request that is younger is left to the processes of `up`, which start a run within a second."""


def decide_refresh(
    waiting: Waiting, runs: Sequence[JobRun], live_run_ids: Collection[str], *, now: datetime
) -> Start | Wait:
    """Start a run for requests that nothing on this machine has taken up, or wait. `runs` are the newest runs
    of the job, newest first."""
    if waiting.count == 0:
        return Wait(reason="No feed is requested.", is_idle=True)
    if waiting.can_begin == 0 or waiting.oldest_ms is None:
        return Wait(reason=_others(waiting.count))
    age = now - datetime.fromtimestamp(waiting.oldest_ms / 1000, UTC)
    # One from further in the future was made before the clock was put back.
    if abs(age) < REFRESH_PATIENCE:
        return Wait(reason="The requests are new: `rss-pipeline up` starts a run for them at once.")
    return reason_to_wait(runs, live_run_ids, now=now) or Start(reason=refresh_reason(waiting))


def refresh_reason(waiting: Waiting) -> str:
    """The reason of a run; no user's name."""
    count = waiting.can_begin
    return (
        "A feed is requested in the reader." if count == 1 else f"{count} feeds are requested in the reader."
    )


def _others(count: int) -> str:
    return "A request waits for another run." if count == 1 else f"{count} requests wait for other runs."
