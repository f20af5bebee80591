"""The checks of the places that hold state: the database, the object store, Dagster's folder, their disk.

`doctor` looks at them before it asks the table of checks.py, for most of those need a database. The facts
come from storage/backends/probes.py and storage/reports/diagnostics.py.
"""

import shlex
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health.model import (
    SKEW_FAILURE,
    SKEW_WARNING,
    STATES,
    Finding,
    Look,
    State,
    counted,
    some,
)
from rss_pipeline.server_settings import S3Settings
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.backends.connect import connect, open_objects, open_topics
from rss_pipeline.storage.backends.probes import Lifecycle
from rss_pipeline.storage.backups.orphans import Orphans
from rss_pipeline.storage.copy.sides import side_of
from rss_pipeline.storage.database import Database, InFile, Room
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports.diagnostics import BackupLoss, has_items
from rss_pipeline.storage.schema import check_prepared, migrations, schema_version

if TYPE_CHECKING:
    # Its module loads boto3, which a folder does not need.
    from rss_pipeline.storage.backends.s3 import S3Store

D1_LIMIT_BYTES = 10_000_000_000
D1_FREE_LIMIT_BYTES = 500_000_000
FULL = 0.8
DISK_WARNING_BYTES = 1_000_000_000
DISK_FAILURE_BYTES = 100_000_000
LIFECYCLE_DAYS = 60
"""At least, for a rule of the bucket: the clean removes old backups, and the daemon may be off for weeks."""


def usable_database(
    settings: Settings, clock: Clock, findings: list[Finding], stack: ExitStack
) -> Database | None:
    """The database, if it answers and its schema is this code's. What was found is added to `findings`."""
    if settings.d1 is not None:
        d1 = settings.d1
        before = clock()
        try:
            answer = probes.query_proxy(d1, ca_file=settings.ca_file)
        except RssPipelineError as error:
            findings.append(
                Finding(
                    "database",
                    "failure",
                    str(error),
                    "Check D1_PROXY_URL and the network; D1_PROXY_TOKEN must be what `npx wrangler secret put"
                    " D1_PROXY_TOKEN` was given in proxy-worker/.",
                )
            )
            return None
        findings.append(Finding("database", "ok", f"{d1.url}: the proxy answers and accepts the token"))
        findings.append(check_clock("database clock", answer.clock, before=before, after=clock()))
        findings.append(check_d1_size(answer.size_bytes))
    elif settings.postgres is not None:
        before = clock()
        try:
            server = probes.query_postgres(settings.postgres)
        except RssPipelineError as error:
            findings.append(
                Finding("database", "failure", str(error), "Correct DATABASE_URL, or start the server.")
            )
            return None
        found = f"{settings.database_place}: PostgreSQL {server.version} answers"
        findings.append(Finding("database", "ok", found))
        findings.append(check_clock("database clock", server.clock, before=before, after=clock()))
        findings.append(check_postgres_size(server.size_bytes))
    elif not settings.database_path.exists():
        findings.append(
            Finding(
                "database", "ok", f"{settings.database_path}: does not exist yet; the first poll creates it"
            )
        )
        findings.append(check_disk(settings.home))
        return None
    try:
        database = connect(settings, alone_where_full=True)
        stack.callback(database.close)
        current = schema_version(database)
    except RssPipelineError as error:
        findings.append(Finding("database", "failure", str(error), "See the message."))
        return None
    if settings.has_embedded_database:
        findings.append(Finding("database", "ok", f"{settings.database_path} can be read"))
        findings.append(check_disk(settings.home, database))
    findings.append(check_schema(current, embedded=settings.has_embedded_database))
    if findings[-1].state != "ok":
        return None
    try:
        check_prepared(database)
    except RssPipelineError as error:
        findings.append(Finding("database functions", "failure", str(error), "See the message."))
        return None
    return database


def check_disk(home: Path, database: Database | None = None) -> Finding:
    """Free space on the disk of the embedded stores."""
    there = next(path for path in (home, *home.parents) if path.exists())
    room = database.room() if isinstance(database, InFile) else None
    return disk_room(there, shutil.disk_usage(there).free, room)


def usable_objects(settings: Settings, clock: Clock, findings: list[Finding]) -> ObjectStore | None:
    """The object store, if it can be written. What was found is added to `findings`."""
    s3 = settings.s3
    if s3 is None and not settings.home.exists():
        there = next(path for path in settings.home.parents if path.exists())
        findings.append(_check_writable("objects", there))
        return None
    try:
        store = open_objects(settings)
    except RssPipelineError as error:
        findings.append(Finding("objects", "failure", str(error), _fix_objects(s3)))
        return None
    fix = _fix_objects(s3)
    if s3 is not None:
        before = clock()
        theirs = probes.objects_clock(cast("S3Store", store), s3.bucket)
        findings.append(check_clock("objects clock", theirs, before=before, after=clock()))
        if findings[-1].state == "failure":
            # The store refuses whatever key signs it.
            fix = findings[-1].fix
    where = settings.objects_path if s3 is None else f"{s3.endpoint_url}/{s3.bucket}"
    try:
        store.probe()
        key = probes.read_one(store)
    except RssPipelineError as error:
        findings.append(Finding("objects", "failure", str(error), fix))
        return None
    read = "nothing in it yet" if key is None else f"read {key}"
    findings.append(Finding("objects", "ok", f"{where}: written, listed, {read}"))
    if s3 is None and not settings.has_embedded_database:
        findings.append(replace(check_disk(settings.home), name="disk of objects"))
    if s3 is not None:
        findings.append(
            check_lifecycle(
                probes.lifecycle(cast("S3Store", store), s3.bucket),
                s3.bucket,
                backup_days=settings.backup_days,
            )
        )
    return store


def copy_of_objects(settings: Settings, lost: Sequence[str]) -> str | None:
    """The command that copies objects from the folder in the home, if it has what the bucket lacks."""
    if settings.s3 is None or not any((settings.objects_path / key).is_file() for key in lost):
        return None
    return f"rss-pipeline copy --from {side_of(settings, folder=True)} --to {side_of(settings)}"


def copy_of_home(settings: Settings) -> str | None:
    """The command that copies the database in the home, where that has items and is not the one in use."""
    if settings.has_embedded_database or not settings.database_path.exists():
        return None
    from rss_pipeline.storage.backends.sqlite import SqliteDatabase

    try:
        with closing(SqliteDatabase.to_read(settings.database_path, is_beside_writable=False)) as database:
            if not has_items(database):
                return None
    except RssPipelineError:
        # Another file, or one of another version.
        return None
    objects = any(settings.objects_path.glob("backups/*/*"))
    source = side_of(settings, database="sqlite", folder=objects or settings.s3 is None)
    return f"rss-pipeline copy --from {source} --to {side_of(settings)}"


def _fix_objects(s3: S3Settings | None) -> str:
    if s3 is None:
        return "Make RSS_PIPELINE_HOME a folder that this user may write, on a disk with room."
    if s3.prefix == "S3":
        return "Check the S3_ variables; the key must read, write, list and delete objects in this bucket."
    return (
        "Check the four R2_ variables; the token needs `Object Read & Write` on this bucket"
        " (Cloudflare dashboard, R2, Manage API tokens)."
    )


def check_home(settings: Settings) -> list[Finding]:
    """The home and the files in it are this user's alone: it has what people read, backups and keys."""
    home = settings.home
    if not home.is_dir():
        return []
    # A web server that shows images and topics goes through the home, and sees no list of it.
    most = 0o711 if settings.objects_public_url is not None else 0o700
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & ~most == 0:
        return [Finding("home", "ok", f"{home}: only this user can read it")]
    found = f"{home}: others on this machine can read it (mode {mode:o}): backups, what people read, keys"
    return [Finding("home", "warning", found, f"Close it: chmod {most:o} {shlex.quote(str(home))}")]


def check_dagster_home(settings: Settings) -> Finding:
    """The folder of Dagster's history and configuration."""
    home = settings.dagster_home
    if not home.exists():
        there = next(path for path in home.parents if path.exists())
        check = _check_writable("dagster", there)
        return (
            check
            if check.state != "ok"
            else replace(check, found=f"{home} does not exist yet; `up` makes it")
        )
    check = _check_writable("dagster", home)
    if check.state == "ok" and not (home / "dagster.yaml").is_file():
        fix = "Run `rss-pipeline up` or `poll`: they write it. Without it Dagster keeps its history for ever."
        return Finding("dagster", "warning", f"{home} has no dagster.yaml", fix)
    return check


def _check_writable(name: str, folder: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Finding(name, "ok", f"{folder} can be written")
    except OSError as error:
        fix = "Give this user the right to write there, or set RSS_PIPELINE_HOME to another folder."
        return Finding(name, "failure", f"{folder}: {error.strerror or error}", fix)


def check_topics_store(settings: Settings) -> list[Finding]:
    """The store of topics, where it is not the usual one: it can be written, and everybody may read it."""
    s3 = settings.s3
    store = open_topics(settings)
    if store is None or s3 is None:
        return []
    where = f"{s3.endpoint_url}/{s3.topics_bucket or s3.bucket}"
    try:
        store.probe()
    except RssPipelineError as error:
        fix = f"Check {s3.prefix}_TOPICS_BUCKET; the token must read and write in this bucket, too."
        return [Finding("topics", "failure", str(error), fix)]
    if s3.topics_public_url is None:
        public = f"{s3.prefix}_TOPICS_PUBLIC_URL"
        found = f"{where}: written; without {public}, documents do not name their own address"
        fix = f"Set {public} to the address at which readers find the bucket's objects."
        return [Finding("topics", "warning", found, fix)]
    return [Finding("topics", "ok", f"{where}: written; readers find it at {s3.topics_public_url}")]


def check_schema(current: int, *, embedded: bool) -> Finding:
    """The database's schema beside this code's."""
    newest = migrations()[-1].version
    found = f"the database has schema {current}, this code {newest}"
    if current > newest:
        return Finding("schema", "failure", found, "Update rss_pipeline: another machine runs newer code.")
    if current < newest:
        fix = "Run `rss-pipeline migrate`"
        if embedded:
            return Finding("schema", "warning", found, f"{fix}; `up` and `poll` do so by themselves.")
        return Finding("schema", "failure", found, f"{fix}.")
    return Finding("schema", "ok", found)


def check_d1_size(size: int | None) -> Finding:
    """The size beside the limits of both plans, paid and free: D1 does not say which one it is."""
    name = "database size"
    if size is None:
        return Finding(name, "warning", "the proxy did not say", "Look it up with `npx wrangler d1 info`.")
    found = f"{size / 1e6:,.1f} MB"
    if size >= FULL * D1_LIMIT_BYTES:
        fix = (
            "Keep items for fewer days (RSS_KEEP_DAYS, then `rss-pipeline clean`), or remove feeds you no"
            " longer need (`rss-pipeline forget`): both work in a full database, too."
        )
        full = size >= 0.98 * D1_LIMIT_BYTES
        return Finding(name, "failure" if full else "warning", f"{found} of 10 GB, D1's limit", fix)
    if FULL * D1_FREE_LIMIT_BYTES <= size <= D1_FREE_LIMIT_BYTES:
        fix = "On the free plan, move to the paid one before writes fail; on the paid one all is well."
        return Finding(name, "warning", f"{found} of the 500 MB that D1's free plan has", fix)
    return Finding(name, "ok", f"{found} of 10 GB (500 MB on the free plan)")


def check_postgres_size(size: int) -> Finding:
    """The size of a database on a server whose disk cannot be seen from here."""
    return Finding("database size", "ok", f"{size / 1e6:,.1f} MB")


def disk_room(path: Path, free: int, room: Room | None = None) -> Finding:
    """The free bytes of the disk; `room` is that of the database's file on it, where that is known."""
    found = f"{free / 1e9:,.1f} GB free on the disk of {path}"
    fix = "Make room (`rss-pipeline clean` removes what is old), or move RSS_PIPELINE_HOME to a larger disk."
    if room is not None and room.free:
        found += f"; {room.free / 1e6:,.1f} MB of the database's {room.bytes / 1e6:,.1f} MB are free for rows"
        if not room.shrinks:
            fix += " The file does not shrink by itself yet: see `rss-pipeline migrate --help`."
    if free < DISK_FAILURE_BYTES:
        return Finding("database size", "failure", found, fix)
    if free < DISK_WARNING_BYTES:
        return Finding("database size", "warning", found, fix)
    return Finding("database size", "ok", found)


def check_clock(name: str, theirs: datetime | None, *, before: datetime, after: datetime) -> Finding:
    """Our clock beside one in the cloud, which gives whole seconds."""
    if theirs is None:
        return Finding(name, "ok", "not compared: the answer has no date")
    skew = max(theirs - after, before - theirs - timedelta(seconds=1), timedelta())
    if skew <= SKEW_WARNING:
        return Finding(name, "ok", "agrees with this machine's")
    found = f"this machine's clock is {skew.total_seconds():,.0f} s {'behind' if theirs > after else 'ahead'}"
    fix = "Set the clock: `timedatectl set-ntp true`. Schedules and leases go by it, and S3 refuses 15 min."
    return Finding(name, "failure" if skew > SKEW_FAILURE else "warning", found, fix)


def check_lifecycle(rule: Lifecycle, bucket: str, *, backup_days: int) -> Finding:
    """The remover of old backups: the daily clean. A rule of the bucket must leave it time."""
    wanted = max(LIFECYCLE_DAYS, 2 * backup_days)
    if rule.days is not None and rule.days < wanted:
        return Finding(
            "lifecycle",
            "warning",
            f"a rule of the bucket deletes backups/ after {rule.days} days, the newest of each feed too if"
            f" the daemon is off for {rule.days - min(rule.days, backup_days) // 2} days",
            f"Give it {wanted} days (the daily clean removes old backups): `npx wrangler r2 bucket lifecycle"
            f" list {bucket}`, then `remove` with its name, and `add {bucket} backups backups/ --expire-days"
            f" {wanted}`.",
        )
    if rule.days is not None:
        return Finding("lifecycle", "ok", f"a rule deletes what is left in backups/ after {rule.days} days")
    if rule.unread is not None:
        return Finding(
            "lifecycle",
            "warning",
            f"the bucket's rules could not be read ({rule.unread}); an object token may not",
            f"Check it once with `npx wrangler r2 bucket lifecycle list {bucket}`: there should be one for"
            f" backups/ ({wanted} days), or none.",
        )
    return Finding("lifecycle", "ok", "no rule for backups/: the daily clean removes old ones")


def check_room(look: Look) -> Finding:
    """The database's size beside its limit, and the disk of what is on this machine: the worse of both."""
    settings = look.settings
    findings = []
    if settings.d1 is not None:
        size = probes.query_proxy(settings.d1, ca_file=settings.ca_file).size_bytes
        findings.append(check_d1_size(size))
    elif settings.postgres is not None:
        size = probes.query_postgres(settings.postgres).size_bytes
        findings.append(check_postgres_size(size))
    else:
        size = settings.database_path.stat().st_size if settings.database_path.exists() else None
    if settings.has_embedded_database or settings.s3 is None:
        findings.append(disk_room(settings.home, shutil.disk_usage(settings.home).free))
    return database_has_room(findings, size=size)


def database_has_room(findings: Sequence[Finding], *, size: int | None) -> Finding:
    """The worst of the findings about the database's size and the disk."""
    worst = max(findings, key=lambda each: STATES.index(each.state))
    return replace(worst, name="database_has_room", figures={} if size is None else {"bytes": size})


def check_loss(look: Look) -> Finding:
    """The newest backups of the feeds that changed last."""
    return backups_there(look.loss, copy=copy_of_objects(look.settings, look.loss.lost_keys))


def backups_there(loss: BackupLoss, *, copy: str | None = None) -> Finding:
    """The items that a restore would lose. A missing backup is a failure: the newest one never expires.

    `copy` is the command that brings them from the store of before, where that is known.
    """
    name = "backups_there"
    figures = {
        "feeds_looked_at": loss.looked_at,
        "without_newest": len(loss.gone),
        "without_any": len(loss.never),
        "items_at_risk": loss.items,
    }
    rows = [{"feed": id, "backups": "the newest is gone"} for id in loss.gone]
    rows += [{"feed": id, "backups": "none"} for id in loss.never]
    if not rows:
        found = f"Each of the {loss.looked_at} feeds that changed last has its newest backup"
        return Finding(name, "ok", found, figures=figures)
    found = (
        f"{counted(len(rows), 'feed lacks its', 'feeds lack their')} newest backup: if the database is"
        f" lost, up to {loss.items:,} items are lost too"
    )
    fix = (
        "Look for what deletes objects under backups/: a lifecycle rule that is too short? The next new"
        " document of each feed is backed up again. Until then only the database holds them: keep a copy of"
        " it (D1: Time Travel)."
    )
    if copy is not None or loss.is_store_empty:
        what = "is empty" if loss.is_store_empty else "lacks what the folder in the home has"
        found = f"The object store {what}, and {found}"
        fix = fix_of_copy(copy)
    return Finding(name, "failure" if loss.gone else "warning", found, fix, figures, rows)


def fix_of_copy(copy: str | None) -> str:
    """Advice after a change of stores."""
    if copy is not None:
        return f"Were the stores changed? `{copy}` brings what is in those of before."
    return (
        "Were the stores changed? `rss-pipeline copy` brings what is in those of before; set their variables"
        " as well for it."
    )


def check_stores(*, has_items: bool, has_objects: bool, copy: str | None) -> Finding | None:
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
    return Finding("stores", state, what, fix)


def check_filled(look: Look) -> Finding | None:
    """Stores that are empty while others of this installation are not."""
    return find_filled(look.settings, look.objects(), has_items=has_items(look.database))


def find_filled(settings: Settings, store: ObjectStore, *, has_items: bool) -> Finding | None:
    """Stores that are empty while others are not, with `has_items` for the database."""
    has_objects = next(iter(store.list("backups/")), None) is not None
    return check_stores(has_items=has_items, has_objects=has_objects, copy=copy_of_home(settings))


def no_orphans(look: Look) -> Finding:
    """Objects without a row, which nothing deletes by itself."""
    found = look.orphans
    looked = f"{found.looked_at:,} objects looked at"
    if not found.is_complete:
        looked += ", then the time allowed was over: there are more"
    parts = [
        f"{lost.count:,} {what} ({lost.size / 1e6:,.1f} MB) of {some(lost.feeds)}"
        for lost, what in ((found.images, "images without a row"), (found.backups, "backups without a feed"))
        if lost.count
    ]
    if not parts:
        return Finding("no_orphans", "ok", f"{looked}: each has its row")
    return Finding(
        "no_orphans",
        "warning",
        f"{looked}: {'; '.join(parts)}",
        "They stay: after a lost database they are the archive, and `rss-pipeline restore` takes them over."
        " Left by `forget`, or not wanted: delete them by hand, images/FEED/ and backups/FEED/.",
    )


def images_there(look: Look) -> Finding | None:
    """Rows without an object."""
    return missing_images(look.orphans, copy=copy_of_objects(look.settings, look.loss.lost_keys))


def missing_images(found: Orphans, *, copy: str | None = None) -> Finding | None:
    """Archived images that the store does not have; None where there are none."""
    if not found.missing.count:
        return None
    return Finding(
        "images_there",
        "warning",
        f"{found.missing.count:,} archived images are not in the store ({some(found.missing.feeds)})",
        "If a clean is running, check again after it. Else look for what deletes objects: a lifecycle rule"
        " without the prefix backups/?"
        if found.looked_at
        else fix_of_copy(copy),
    )
