"""Doctor's judgments: what a fact means and how to mend it, each as a `Check`. Pure.

The facts come from storage/condition.py and the rooms; doctor.py gathers them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from rss_pipeline.storage.backends.probes import Lifecycle
from rss_pipeline.storage.backups.orphans import Orphans
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.schema import migrations

State = Literal["ok", "warning", "failure"]

D1_LIMIT_BYTES = 10_000_000_000
D1_FREE_LIMIT_BYTES = 500_000_000
FULL = 0.8
DISK_WARNING_BYTES = 1_000_000_000
DISK_FAILURE_BYTES = 100_000_000
SKEW_WARNING = timedelta(seconds=60)
SKEW_FAILURE = timedelta(minutes=15)
"""S3 refuses requests signed by a clock that is further off."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One finding. `mend` says what to do, nothing where all is well; it may have several lines."""

    name: str
    state: State
    found: str
    mend: str = ""


def check_schema(current: int, *, embedded: bool) -> Check:
    """The database's schema beside this code's."""
    newest = migrations()[-1].version
    found = f"the database has schema {current}, this code {newest}"
    if current > newest:
        return Check("schema", "failure", found, "Update rss_pipeline: another machine runs newer code.")
    if current < newest:
        mend = "Run `rss-pipeline migrate`"
        if embedded:
            return Check("schema", "warning", found, f"{mend}; `up` and `poll` do so by themselves.")
        return Check("schema", "failure", found, f"{mend}.")
    return Check("schema", "ok", found)


def check_d1_size(size: int | None) -> Check:
    """Against the paid plan's limit, and the free plan's, for which of them holds nobody tells."""
    name = "database size"
    if size is None:
        return Check(name, "warning", "the proxy did not say", "Look it up with `npx wrangler d1 info`.")
    found = f"{size / 1e6:,.1f} MB"
    if size >= FULL * D1_LIMIT_BYTES:
        mend = "Remove feeds you no longer need (`rss-pipeline forget`), or move to several databases."
        full = size >= 0.98 * D1_LIMIT_BYTES
        return Check(name, "failure" if full else "warning", f"{found} of 10 GB, D1's limit", mend)
    if FULL * D1_FREE_LIMIT_BYTES <= size <= D1_FREE_LIMIT_BYTES:
        mend = "On the free plan, move to the paid one before writes fail; on the paid one all is well."
        return Check(name, "warning", f"{found} of the 500 MB that D1's free plan has", mend)
    return Check(name, "ok", f"{found} of 10 GB (500 MB on the free plan)")


def judge_disk(path: Path, free: int) -> Check:
    found = f"{free / 1e9:,.1f} GB free on the disk of {path}"
    mend = "Make room, or move RSS_PIPELINE_HOME to a larger disk."
    if free < DISK_FAILURE_BYTES:
        return Check("database size", "failure", found, mend)
    if free < DISK_WARNING_BYTES:
        return Check("database size", "warning", found, mend)
    return Check("database size", "ok", found)


def check_clock(name: str, theirs: datetime | None, *, before: datetime, after: datetime) -> Check:
    """Our clock beside one in the cloud, which tells whole seconds."""
    if theirs is None:
        return Check(name, "ok", "not compared: the answer tells no time")
    skew = max(theirs - after, before - theirs - timedelta(seconds=1), timedelta())
    if skew <= SKEW_WARNING:
        return Check(name, "ok", "agrees with this machine's")
    found = f"this machine's clock is {skew.total_seconds():,.0f} s {'behind' if theirs > after else 'ahead'}"
    mend = "Set the clock: `timedatectl set-ntp true`. Schedules and leases go by it, and S3 refuses 15 min."
    return Check(name, "failure" if skew > SKEW_FAILURE else "warning", found, mend)


def check_lifecycle(rule: Lifecycle, bucket: str) -> Check:
    """Who removes old backups: a rule of the bucket, or the daily clean."""
    if rule.days is not None:
        return Check("lifecycle", "ok", f"backups/ expires after {rule.days} days")
    if rule.unread is not None:
        return Check(
            "lifecycle",
            "warning",
            f"the bucket's rules could not be read ({rule.unread}); an object token may not",
            f"Check it once with `npx wrangler r2 bucket lifecycle list {bucket}`: there should be one for"
            " backups/ (30 days), or none.",
        )
    return Check("lifecycle", "ok", "no rule for backups/: the daily clean removes old ones")


def listing(name: str, ids: Sequence[str], wrong: str, right: str, mend: str) -> Check:
    """A warning that names feeds, put where `wrong` has its {}; all is well without any."""
    if not ids:
        return Check(name, "ok", right)
    return Check(name, "warning", wrong.format(f"{len(ids)} feeds ({_some(ids)})"), mend)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def check_backups(loss: diagnostics.BackupLoss) -> Check:
    """What a restore would lose. A backup that is gone is a failure: the newest one never expires."""
    looked = f"{loss.looked_at} of {loss.feeds} feeds with items looked at"
    if not (loss.never or loss.gone):
        return Check("restore", "ok", f"{looked}: each has its newest backup")
    parts = [
        *([f"{len(loss.gone)} lack their newest backup ({_some(loss.gone)})"] if loss.gone else []),
        *([f"{len(loss.never)} have no backup at all ({_some(loss.never)})"] if loss.never else []),
    ]
    found = f"{looked}: {' and '.join(parts)}; a restore could lose {loss.items:,} items"
    mend = (
        "Their next new document is backed up again. Until then only the database holds them: keep a copy of"
        " it (D1: Time Travel). Look for who deletes objects: a lifecycle rule that is too short?"
    )
    return Check("restore", "failure" if loss.gone else "warning", found, mend)


def check_orphans(found: Orphans) -> Iterator[Check]:
    """Objects without a row, which nothing deletes by itself, and rows without their object."""
    looked = f"{found.looked_at:,} objects looked at"
    if not found.is_complete:
        looked += ", then the time for it was over: there are more"
    parts = [
        f"{lost.count:,} {what} ({lost.size / 1e6:,.1f} MB) of {_some(lost.feeds)}"
        for lost, what in ((found.images, "images without a row"), (found.backups, "backups without a feed"))
        if lost.count
    ]
    mend = (
        "They stay: after a lost database they are the archive, and `rss-pipeline restore` takes them over."
        " Left by `forget`, or not wanted: delete them by hand, images/FEED/ and backups/FEED/."
    )
    if parts:
        yield Check("orphans", "warning", f"{looked}: {'; '.join(parts)}", mend)
    else:
        yield Check("orphans", "ok", f"{looked}: each has its row")
    if found.missing.count:
        yield Check(
            "missing images",
            "warning",
            f"{found.missing.count:,} archived images are not in the store ({_some(found.missing.feeds)})",
            "Is a clean at work, ask again when it ended. Else look for who deletes objects: a lifecycle rule"
            " without the prefix backups/?",
        )
