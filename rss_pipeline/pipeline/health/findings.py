"""The type `Check`, and the checks of `doctor`: the meaning of a fact, and how to fix it. Pure.

The facts come from storage.reports.diagnostics and storage.backends.probes; doctor.py gathers them. The
health checks of the UI are verdicts.py's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from rss_pipeline.collector.models.clock import rough
from rss_pipeline.storage.backends.probes import Lifecycle
from rss_pipeline.storage.backups.orphans import Orphans
from rss_pipeline.storage.database import Room, Row
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.schema import migrations

State = Literal["ok", "warning", "failure"]

D1_LIMIT_BYTES = 10_000_000_000
D1_FREE_LIMIT_BYTES = 500_000_000
FULL = 0.8
DISK_WARNING_BYTES = 1_000_000_000
DISK_FAILURE_BYTES = 100_000_000
LIFECYCLE_DAYS = 60
"""At least, for a rule of the bucket: the clean removes old backups, and the daemon may be off for weeks."""
SKEW_WARNING = timedelta(seconds=60)
SKEW_FAILURE = timedelta(minutes=15)
"""S3 refuses requests signed by a clock that is further off."""
DAEMON_SILENT = timedelta(minutes=5)
"""The daemon gives a sign of life each half a minute."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check, of `doctor` or of the UI: how bad it is, what was found, and how to fix it."""

    name: str
    state: State
    found: str
    """A clause without a full stop."""
    fix: str = ""
    """Sentences, on one line or several; empty where all is well."""
    figures: Mapping[str, int | float] = field(default_factory=dict)
    """Numbers under stable names, so that the UI can plot them."""
    rows: Sequence[Row] = ()
    """The feeds or hosts concerned, at most a hundred."""

    @property
    def sentences(self) -> str:
        """Finding and fix as one text."""
        return f"{self.found}. {self.fix}".rstrip()

    def as_json(self) -> dict[str, str]:
        """The check for programs."""
        return {"name": self.name, "state": self.state, "found": self.found, "fix": self.fix}


def check_schema(current: int, *, embedded: bool) -> Check:
    """The database's schema beside this code's."""
    newest = migrations()[-1].version
    found = f"the database has schema {current}, this code {newest}"
    if current > newest:
        return Check("schema", "failure", found, "Update rss_pipeline: another machine runs newer code.")
    if current < newest:
        fix = "Run `rss-pipeline migrate`"
        if embedded:
            return Check("schema", "warning", found, f"{fix}; `up` and `poll` do so by themselves.")
        return Check("schema", "failure", found, f"{fix}.")
    return Check("schema", "ok", found)


def check_d1_size(size: int | None) -> Check:
    """The size beside the limits of both plans, paid and free: D1 does not say which one it is."""
    name = "database size"
    if size is None:
        return Check(name, "warning", "the proxy did not say", "Look it up with `npx wrangler d1 info`.")
    found = f"{size / 1e6:,.1f} MB"
    if size >= FULL * D1_LIMIT_BYTES:
        fix = (
            "Keep items for fewer days (RSS_KEEP_DAYS, then `rss-pipeline clean`), or remove feeds you no"
            " longer need (`rss-pipeline forget`): both work in a full database, too."
        )
        full = size >= 0.98 * D1_LIMIT_BYTES
        return Check(name, "failure" if full else "warning", f"{found} of 10 GB, D1's limit", fix)
    if FULL * D1_FREE_LIMIT_BYTES <= size <= D1_FREE_LIMIT_BYTES:
        fix = "On the free plan, move to the paid one before writes fail; on the paid one all is well."
        return Check(name, "warning", f"{found} of the 500 MB that D1's free plan has", fix)
    return Check(name, "ok", f"{found} of 10 GB (500 MB on the free plan)")


def check_postgres_size(size: int) -> Check:
    """The size of a database on a server whose disk cannot be seen from here."""
    return Check("database size", "ok", f"{size / 1e6:,.1f} MB")


def judge_disk(path: Path, free: int, room: Room | None = None) -> Check:
    """The free bytes of the disk; `room` is that of the database's file on it, where that is known."""
    found = f"{free / 1e9:,.1f} GB free on the disk of {path}"
    fix = "Make room (`rss-pipeline clean` removes what is old), or move RSS_PIPELINE_HOME to a larger disk."
    if room is not None and room.free:
        found += f"; {room.free / 1e6:,.1f} MB of the database's {room.bytes / 1e6:,.1f} MB are free for rows"
        if not room.shrinks:
            fix += " The file does not shrink by itself yet: see `rss-pipeline migrate --help`."
    if free < DISK_FAILURE_BYTES:
        return Check("database size", "failure", found, fix)
    if free < DISK_WARNING_BYTES:
        return Check("database size", "warning", found, fix)
    return Check("database size", "ok", found)


def check_clock(name: str, theirs: datetime | None, *, before: datetime, after: datetime) -> Check:
    """Our clock beside one in the cloud, which gives whole seconds."""
    if theirs is None:
        return Check(name, "ok", "not compared: the answer has no date")
    skew = max(theirs - after, before - theirs - timedelta(seconds=1), timedelta())
    if skew <= SKEW_WARNING:
        return Check(name, "ok", "agrees with this machine's")
    found = f"this machine's clock is {skew.total_seconds():,.0f} s {'behind' if theirs > after else 'ahead'}"
    fix = "Set the clock: `timedatectl set-ntp true`. Schedules and leases go by it, and S3 refuses 15 min."
    return Check(name, "failure" if skew > SKEW_FAILURE else "warning", found, fix)


def check_lifecycle(rule: Lifecycle, bucket: str, *, backup_days: int) -> Check:
    """The remover of old backups: the daily clean. A rule of the bucket must leave it time."""
    wanted = max(LIFECYCLE_DAYS, 2 * backup_days)
    if rule.days is not None and rule.days < wanted:
        return Check(
            "lifecycle",
            "warning",
            f"a rule of the bucket deletes backups/ after {rule.days} days, the newest of each feed too if"
            f" the daemon is off for {rule.days - min(rule.days, backup_days) // 2} days",
            f"Give it {wanted} days (the daily clean removes old backups): `npx wrangler r2 bucket lifecycle"
            f" list {bucket}`, then `remove` with its name, and `add {bucket} backups backups/ --expire-days"
            f" {wanted}`.",
        )
    if rule.days is not None:
        return Check("lifecycle", "ok", f"a rule deletes what is left in backups/ after {rule.days} days")
    if rule.unread is not None:
        return Check(
            "lifecycle",
            "warning",
            f"the bucket's rules could not be read ({rule.unread}); an object token may not",
            f"Check it once with `npx wrangler r2 bucket lifecycle list {bucket}`: there should be one for"
            f" backups/ ({wanted} days), or none.",
        )
    return Check("lifecycle", "ok", "no rule for backups/: the daily clean removes old ones")


def listing(
    name: str, ids: Sequence[str], wrong: str, right: str, fix: str, *, things: str = "feeds"
) -> Check:
    """A warning that names these feeds in the place of {} in `wrong`; `right` where there are none."""
    if not ids:
        return Check(name, "ok", right)
    return Check(name, "warning", wrong.format(f"{len(ids)} {things} ({_some(ids)})"), fix)


def _some(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"{', '.join(ids[:_NAMED])}{more}"


def check_backups(loss: diagnostics.BackupLoss, *, copy: str | None = None) -> Check:
    """The items a restore would lose. A missing backup is a failure: the newest one never expires.

    `copy` is the command that brings them from the store of before, where that is known.
    """
    looked = f"{loss.looked_at} of {loss.feeds} feeds with items looked at"
    if not (loss.never or loss.gone):
        return Check("restore", "ok", f"{looked}: each has its newest backup")
    parts = [
        *([f"{len(loss.gone)} lack their newest backup ({_some(loss.gone)})"] if loss.gone else []),
        *([f"{len(loss.never)} have no backup at all ({_some(loss.never)})"] if loss.never else []),
    ]
    found = f"{looked}: {' and '.join(parts)}; a restore could lose {loss.items:,} items"
    fix = (
        "Their next new document is backed up again. Until then only the database holds them: keep a copy of"
        " it (D1: Time Travel). Look for what deletes objects: a lifecycle rule that is too short?"
    )
    if copy is not None or loss.is_store_empty:
        what = "is empty" if loss.is_store_empty else "lacks what the folder in the home has"
        found = f"the object store {what}: {found}"
        fix = fix_of_copy(copy)
    return Check("restore", "failure" if loss.gone else "warning", found, fix)


def fix_of_copy(copy: str | None) -> str:
    """Advice after a change of stores."""
    if copy is not None:
        return f"Were the stores changed? `{copy}` brings what is in those of before."
    return (
        "Were the stores changed? `rss-pipeline copy` brings what is in those of before; set their variables"
        " as well for it."
    )


def check_stores(*, has_items: bool, has_objects: bool, copy: str | None) -> Check | None:
    """Stores that are empty while others of this installation are not; None where that is not so.

    `copy` is the command that brings what is in the home, where that has items and the database is another.
    """
    if has_items or not (has_objects or copy is not None):
        return None
    what = "the database has no items, but the object store has backups" if has_objects else "they are empty"
    state: State = "failure" if has_objects else "warning"
    fix = fix_of_copy(copy)
    if has_objects and copy is None:
        fix += " If that database is lost, `rss-pipeline restore` makes the items from the backups."
    return Check("stores", state, what, fix)


def check_orphans(found: Orphans, *, copy: str | None = None) -> Iterator[Check]:
    """Objects without a row, which nothing deletes by itself, and rows without an object."""
    looked = f"{found.looked_at:,} objects looked at"
    if not found.is_complete:
        looked += ", then the time allowed was over: there are more"
    parts = [
        f"{lost.count:,} {what} ({lost.size / 1e6:,.1f} MB) of {_some(lost.feeds)}"
        for lost, what in ((found.images, "images without a row"), (found.backups, "backups without a feed"))
        if lost.count
    ]
    fix = (
        "They stay: after a lost database they are the archive, and `rss-pipeline restore` takes them over."
        " Left by `forget`, or not wanted: delete them by hand, images/FEED/ and backups/FEED/."
    )
    if parts:
        yield Check("orphans", "warning", f"{looked}: {'; '.join(parts)}", fix)
    else:
        yield Check("orphans", "ok", f"{looked}: each has its row")
    if found.missing.count:
        yield Check(
            "missing images",
            "warning",
            f"{found.missing.count:,} archived images are not in the store ({_some(found.missing.feeds)})",
            "If a clean is running, check again after it. Else look for what deletes objects: a lifecycle"
            " rule without the prefix backups/?"
            if found.looked_at
            else fix_of_copy(copy),
        )


def check_daemon(
    overdue: Check, seen_at: datetime | None, switched_off: Sequence[str], *, now: datetime
) -> Check:
    """The daemon and what a person has switched off in the UI. Whoever polls by a timer of their own needs
    neither, as long as no feed is overdue."""
    name = "daemon"
    if switched_off:
        state: State = "failure" if overdue.state == "failure" else "warning"
        found = f"switched off in Dagster's UI: {', '.join(switched_off)}"
        return Check(name, state, found, "Switch on in the UI, page Automation, what should run.")
    if seen_at is None:
        return Check(name, "ok", "none has run here so far")
    silence = now - seen_at
    if silence <= DAEMON_SILENT:
        return Check(name, "ok", "it runs, and every sensor and schedule is on")
    found = f"it was last seen {rough(silence)} ago"
    if overdue.state == "ok":
        return Check(name, "ok", f"{found}; no feed waits for it")
    return Check(name, overdue.state, found, "Start it: `rss-pipeline up`. Its log says why it ended.")


def counted(count: int, one: str, several: str) -> str:
    """A number with its noun."""
    return f"{count:,} {one if count == 1 else several}"
