"""The checks of the places that hold state: the database, the object store, Dagster's folder, their disk.

`doctor` looks at them before it asks the table of checks.py, for most of those need a database. The facts
come from storage/backends/backend.py and sql.py.
"""

import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed_names import feed_name
from rss_pipeline.errors import ROOM_OF_A_RUN, RssPipelineError, disk_full, free_bytes
from rss_pipeline.features.health.model import (
    SKEW_FAILURE,
    SKEW_WARNING,
    STATES,
    Finding,
    Look,
    State,
    counted,
    some,
    worst_of,
)
from rss_pipeline.features.health.sql import BackupLoss, has_items
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.backend import DatabaseBackend, Lifecycle
from rss_pipeline.storage.backends.connect import side_of
from rss_pipeline.storage.backups.expiry import Orphans
from rss_pipeline.storage.database import Database, InFile, Room
from rss_pipeline.storage.feeds.feed_row import feed_titles
from rss_pipeline.storage.images.places import to_move
from rss_pipeline.storage.objects import PRIVATE_IMAGES, PUBLIC, ObjectStore, public_url
from rss_pipeline.storage.schema import check_prepared, migrations, schema_version

DISK_WARNING_BYTES = 1_000_000_000
DISK_FAILURE_BYTES = 100_000_000
LIFECYCLE_DAYS = 60
"""At least, for a rule of the bucket: the clean removes old backups, and the daemon may be off for weeks."""


def usable_database(
    settings: Settings, clock: Clock, findings: list[Finding], stack: ExitStack
) -> Database | None:
    """The database, if it answers and its schema is this code's. What was found is added to `findings`."""
    backend = settings.database
    if backend.file is not None and not backend.file.exists():
        there = next(path for path in backend.file.parents if path.exists())
        check = _check_writable("database", there)
        new = f"{backend.place}: does not exist yet; the first poll creates it"
        findings.append(check if check.state != "ok" else replace(check, found=new))
        findings.append(check_disk(settings.home))
        return None
    if not backend.is_here:
        before = clock()
        try:
            answer = backend.probe()
        except RssPipelineError as error:
            findings.append(Finding("database", "failure", str(error), backend.fix))
            return None
        findings.append(Finding("database", "ok", answer.said))
        findings.append(check_clock("database clock", answer.clock, before=before, after=clock()))
        findings.append(check_size(backend, answer.size_bytes))
    try:
        database = backend.connect(alone_where_full=True)
        stack.callback(database.close)
        current = schema_version(database)
    except RssPipelineError as error:
        findings.append(Finding("database", "failure", str(error), "See the message."))
        return None
    if backend.is_here:
        findings.append(Finding("database", "ok", f"{backend.place} can be read"))
        findings.append(check_disk(settings.home, database))
    findings.append(check_schema(current, embedded=backend.is_here))
    if findings[-1].state != "ok":
        return None
    try:
        check_prepared(database)
    except RssPipelineError as error:
        findings.append(Finding("database functions", "failure", str(error), "See the message."))
        return None
    try:
        # It changes no row, and needs what each write needs: the right, the lock, no standby.
        database.query("UPDATE installation SET value = value WHERE name = ''", name="try to write")
    except RssPipelineError as error:
        findings.append(Finding("database", "failure", f"it cannot be written: {error}", "See the message."))
    return database


def check_disk(home: Path, database: Database | None = None) -> Finding:
    """Free space on the disk of the embedded stores."""
    there = next(path for path in (home, *home.parents) if path.exists())
    room = database.room() if isinstance(database, InFile) else None
    return disk_room(there, shutil.disk_usage(there).free, room)


def usable_objects(settings: Settings, clock: Clock, findings: list[Finding]) -> ObjectStore | None:
    """The object store, if it can be written. What was found is added to `findings`."""
    backend = settings.objects
    if backend.is_here and not settings.home.exists():
        there = next(path for path in settings.home.parents if path.exists())
        findings.append(_check_writable("objects", there))
        return None
    fix = backend.fix
    try:
        store = backend.open()
    except RssPipelineError as error:
        findings.append(Finding("objects", "failure", str(error), fix))
        return None
    if not backend.is_here:
        before = clock()
        findings.append(check_clock("objects clock", backend.clock(store), before=before, after=clock()))
        if findings[-1].state == "failure":
            # The store refuses whatever key signs it.
            fix = findings[-1].fix
    try:
        store.probe()
        key = _read_one(store)
    except RssPipelineError as error:
        findings.append(Finding("objects", "failure", str(error), fix))
        return None
    read = "nothing in it yet" if key is None else f"read {key}"
    findings.append(Finding("objects", "ok", f"{backend.place}: written, listed, {read}"))
    if backend.is_here and not settings.database.is_here:
        findings.append(replace(check_disk(settings.home), name="disk of objects"))
    if (rule := backend.lifecycle(store)) is not None:
        findings.append(check_lifecycle(rule, rule.bucket, backup_days=settings.backup_days))
    return store


def _read_one(store: ObjectStore) -> str | None:
    """Read one backup, or any object; its key, None where there is none."""
    for prefix in ("backups/", ""):
        for info in store.list(prefix):
            if store.get(info.key) is not None:
                return info.key
    return None


def copy_of_objects(settings: Settings, lost: Sequence[str]) -> str | None:
    """The command that copies objects from the folder in the home, if it has what the bucket lacks."""
    if settings.objects.is_here or not any((settings.objects_path / key).is_file() for key in lost):
        return None
    return f"rss-pipeline copy --from {side_of(settings, folder=True)} --to {side_of(settings)}"


def copy_of_home(settings: Settings) -> str | None:
    """The command that copies the database in the home, where that has items and is not the one in use."""
    if settings.database.is_here or not settings.database_path.exists():
        return None
    from rss_pipeline.storage.backends.sqlite.backend import SqliteDatabase

    try:
        with closing(SqliteDatabase.to_read(settings.database_path, is_beside_writable=False)) as database:
            if not has_items(database):
                return None
    except RssPipelineError:
        # Another file, or one of another version.
        return None
    objects = any(settings.objects_path.glob("backups/*/*"))
    source = side_of(settings, at_home=True, folder=objects or settings.objects.is_here)
    return f"rss-pipeline copy --from {source} --to {side_of(settings)}"


def check_home(settings: Settings) -> list[Finding]:
    """The home and the files in it are this user's alone: it has what people read, backups and keys."""
    home = settings.home
    if not home.is_dir():
        return []
    # A web server that shows images and topics goes through the home, and sees no list of it.
    most = 0o711 if settings.objects_public_url is not None else 0o700
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & ~most:
        found = f"{home}: others on this machine can read it (mode {mode:o}): backups, what people read, keys"
        return [Finding("home", "warning", found, f"Close it: chmod {most:o} {shlex.quote(str(home))}")]
    # Who goes through the home opens by its name what an older version has made.
    passed = _not_shown(settings) if mode & _PASSED else ()
    if bare := sorted(path for path in passed if path.stat().st_mode & _BY_OTHERS):
        found = f"{home}: others on this machine can read {some([path.name for path in bare])} in it"
        paths = " ".join(shlex.quote(str(path)) for path in bare)
        return [Finding("home", "warning", found, f"Close them: chmod -R go= {paths}")]
    return [Finding("home", "ok", f"{home}: only this user can read it")]


_BY_OTHERS, _PASSED = 0o077, 0o011


def _not_shown(settings: Settings) -> Iterator[Path]:
    """The files and folders of the home that no web server shows."""
    shown = {prefix.rstrip("/") for prefix in PUBLIC}
    for folder in (settings.home, settings.objects_path):
        for path in folder.iterdir() if folder.is_dir() else ():
            if path != settings.objects_path and not (folder != settings.home and path.name in shown):
                yield path


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
    if check.state == "ok" and free_bytes(home) < ROOM_OF_A_RUN:
        return Finding("dagster", "failure", disk_full(home), "No run can begin until there is room.")
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
    topics, store = settings.objects.topics(), settings.objects.open_topics()
    if topics is None or store is None:
        return []
    try:
        store.probe()
    except RssPipelineError as error:
        fix = f"Check {topics.bucket_variable}; the token must read and write in this bucket, too."
        return [Finding("topics", "failure", str(error), fix)]
    if topics.public_url is None:
        public = topics.public_variable
        found = f"{topics.place}: written; without {public}, documents do not name their own address"
        fix = f"Set {public} to the address at which readers find the bucket's objects."
        return [Finding("topics", "warning", found, fix)]
    return [Finding("topics", "ok", f"{topics.place}: written; readers find it at {topics.public_url}")]


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


def check_size(backend: DatabaseBackend, size: int | None) -> Finding:
    """The size of a database on a server, where its disk cannot be seen from here."""
    verdict = backend.judge_size(size)
    return Finding("database size", verdict.state, verdict.found, verdict.fix)


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
    size = settings.database.size()
    findings = [] if settings.database.is_here else [check_size(settings.database, size)]
    if settings.database.is_here or settings.objects.is_here:
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
        f"{lost.count:,} {what} ({lost.size / 1e6:,.1f} MB) of {_named(look, lost.feeds)}"
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
    found = look.orphans
    if not found.missing.count:
        return None
    names = _named(look, found.missing.feeds)
    return missing_images(found, names, copy=copy_of_objects(look.settings, look.loss.lost_keys))


def _named(look: Look, ids: Sequence[str]) -> str:
    titles = feed_titles(look.database, ids)
    return some([feed_name(id, titles.get(id)) for id in ids])


def missing_images(found: Orphans, names: str, *, copy: str | None = None) -> Finding:
    """Archived images that the store does not have, of the feeds with these names."""
    return Finding(
        "images_there",
        "warning",
        f"{found.missing.count:,} archived images are not in the store ({names})",
        "If a clean is running, check again after it. Else look for what deletes objects: a lifecycle rule"
        " without the prefix backups/?"
        if found.looked_at
        else fix_of_copy(copy),
    )


# The check of what strangers can read: one object of each kind is requested without a key, at every address.
#
# Where objects are is storage's; the command that moves them is storage.images.places'.

SECONDS = 5.0
MOST_BYTES = 65_536
_PRIVATE = {
    "backups of documents": "backups/",
    "what users have": "state/",
    "images of private feeds": PRIVATE_IMAGES,
}
_PUBLIC = {"images": "images/", "topics": "topics/"}


@dataclass(frozen=True, slots=True)
class _Readable:
    kind: str
    url: str


def public_objects(look: Look) -> Finding | None:
    """Everybody can read images of public feeds and topics, where they have an address, and nothing else."""
    settings, store = look.settings, look.objects()
    found: list[tuple[State, str, str]] = []
    open_ = list(_open_to_all(settings, store))
    if open_:
        kinds = ", ".join(dict.fromkeys(each.kind for each in open_))
        sentence = f"everybody can read {kinds}, without a key: {open_[0].url}"
        found.append(("failure", sentence, settings.objects.fix_open))
    closed = list(_closed_to_all(settings, store))
    if closed:
        kinds = ", ".join(each.kind for each in closed)
        sentence = f"{kinds} cannot be read at the public address: {closed[0].url}"
        fix = "See that the address is the bucket's (or the folder's), and that it is public."
        found.append(("warning", sentence, fix))
    wrong = to_move(look.database, store)
    moves: tuple[tuple[int, State, str], ...] = (
        (wrong.private, "failure", "images of private feeds are where everybody may read them"),
        (wrong.public, "warning", "images and documents of topics are not in the public bucket yet"),
    )
    for number, state, what in moves:
        if number:
            found.append((state, f"{number:,} {what}", "Move them: rss-pipeline move-images"))
    if found:
        return worst_of("public_objects", found)
    if settings.objects.public_urls():
        return Finding("public_objects", "ok", "without a key, only public ones can be read")
    return None


def _open_to_all(settings: Settings, store: ObjectStore) -> Iterator[_Readable]:
    addresses = [url.rstrip("/") for url in settings.objects.public_urls()]
    if (own := settings.objects.own_url()) is not None:
        addresses.append(own)
    for kind, prefix in _PRIVATE.items():
        key = _one(store, prefix)
        for address in addresses if key is not None else ():
            url = f"{address}/{quote(key or '', safe='/-_.~')}"
            if key is not None and _is_readable(settings, store, key, url):
                yield _Readable(kind, url)


def _closed_to_all(settings: Settings, store: ObjectStore) -> Iterator[_Readable]:
    topics = settings.objects.open_topics() or store
    for kind, prefix in _PUBLIC.items():
        of_kind = topics if kind == "topics" else store
        key = _one(of_kind, prefix)
        url = None if key is None else public_url(of_kind, key)
        if key is not None and url is not None and not _is_readable(settings, of_kind, key, url):
            yield _Readable(kind, url)


def _one(store: ObjectStore, prefix: str) -> str | None:
    return next((info.key for info in store.list(prefix)), None)


def _is_readable(settings: Settings, store: ObjectStore, key: str, url: str) -> bool:
    """True if this address gives the object to a stranger: its bytes, not only a friendly page."""
    from rss_pipeline.httpx_without_cli import httpx
    from rss_pipeline.tls import tls_context

    found = store.get(key)
    if found is None:
        return False
    wanted, given = found[0], b""
    try:
        verify = tls_context(settings.ca_file, trust_env=True)
        with httpx.stream("GET", url, timeout=SECONDS, verify=verify) as answer:
            if answer.status_code != httpx.codes.OK:
                return False
            for chunk in answer.iter_bytes():
                given += chunk
                if len(given) >= min(len(wanted), MOST_BYTES):
                    break
    except (httpx.HTTPError, httpx.InvalidURL):
        return False
    return given[: len(wanted)] == wanted[: len(given)] and len(given) >= min(len(wanted), MOST_BYTES)
