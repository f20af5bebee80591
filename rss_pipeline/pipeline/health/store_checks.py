"""Checks of the places that hold state: the database, the object store, Dagster's folder, their disk.

The meaning of a fact is findings.py's; which checks there are is doctor.py's.
"""

import shlex
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.errors import RssPipelineError
from rss_pipeline.pipeline.health.findings import (
    Check,
    check_clock,
    check_d1_size,
    check_lifecycle,
    check_postgres_size,
    check_schema,
    judge_disk,
)
from rss_pipeline.server_settings import S3Settings
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.copy.sides import side_of
from rss_pipeline.storage.database import Database, InFile
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports.diagnostics import has_items
from rss_pipeline.storage.schema import check_prepared, schema_version

if TYPE_CHECKING:
    # Its module loads boto3, which a folder does not need.
    from rss_pipeline.storage.backends.s3 import S3Store


def usable_database(
    settings: Settings, clock: Clock, checks: list[Check], stack: ExitStack
) -> Database | None:
    """The database, if it answers and its schema is this code's. What was found is added to `checks`."""
    if settings.d1 is not None:
        d1 = settings.d1
        before = clock()
        try:
            answer = probes.query_proxy(d1, ca_file=settings.ca_file)
        except RssPipelineError as error:
            checks.append(
                Check(
                    "database",
                    "failure",
                    str(error),
                    "Check D1_PROXY_URL and the network; D1_PROXY_TOKEN must be what `npx wrangler secret put"
                    " D1_PROXY_TOKEN` was given in proxy-worker/.",
                )
            )
            return None
        checks.append(Check("database", "ok", f"{d1.url}: the proxy answers and accepts the token"))
        checks.append(check_clock("database clock", answer.clock, before=before, after=clock()))
        checks.append(check_d1_size(answer.size_bytes))
    elif settings.postgres is not None:
        before = clock()
        try:
            server = probes.query_postgres(settings.postgres)
        except RssPipelineError as error:
            checks.append(
                Check("database", "failure", str(error), "Correct DATABASE_URL, or start the server.")
            )
            return None
        found = f"{settings.database_place}: PostgreSQL {server.version} answers"
        checks.append(Check("database", "ok", found))
        checks.append(check_clock("database clock", server.clock, before=before, after=clock()))
        checks.append(check_postgres_size(server.size_bytes))
    elif not settings.database_path.exists():
        checks.append(
            Check(
                "database", "ok", f"{settings.database_path}: does not exist yet; the first poll creates it"
            )
        )
        checks.append(check_disk(settings.home))
        return None
    try:
        database = connect(settings, alone_where_full=True)
        stack.callback(database.close)
        current = schema_version(database)
    except RssPipelineError as error:
        checks.append(Check("database", "failure", str(error), "See the message."))
        return None
    if settings.has_embedded_database:
        checks.append(Check("database", "ok", f"{settings.database_path} can be read"))
        checks.append(check_disk(settings.home, database))
    checks.append(check_schema(current, embedded=settings.has_embedded_database))
    if checks[-1].state != "ok":
        return None
    try:
        check_prepared(database)
    except RssPipelineError as error:
        checks.append(Check("database functions", "failure", str(error), "See the message."))
        return None
    return database


def check_disk(home: Path, database: Database | None = None) -> Check:
    """Free space on the disk of the embedded stores."""
    there = next(path for path in (home, *home.parents) if path.exists())
    room = database.room() if isinstance(database, InFile) else None
    return judge_disk(there, shutil.disk_usage(there).free, room)


def usable_objects(settings: Settings, clock: Clock, checks: list[Check]) -> ObjectStore | None:
    """The object store, if it can be written. What was found is added to `checks`."""
    s3 = settings.s3
    if s3 is None and not settings.home.exists():
        there = next(path for path in settings.home.parents if path.exists())
        checks.append(_check_writable("objects", there))
        return None
    try:
        store = open_objects(settings)
    except RssPipelineError as error:
        checks.append(Check("objects", "failure", str(error), _fix_objects(s3)))
        return None
    fix = _fix_objects(s3)
    if s3 is not None:
        before = clock()
        theirs = probes.objects_clock(cast("S3Store", store), s3.bucket)
        checks.append(check_clock("objects clock", theirs, before=before, after=clock()))
        if checks[-1].state == "failure":
            # The store refuses whatever key signs it.
            fix = checks[-1].fix
    where = settings.objects_path if s3 is None else f"{s3.endpoint_url}/{s3.bucket}"
    try:
        store.probe()
        key = probes.read_one(store)
    except RssPipelineError as error:
        checks.append(Check("objects", "failure", str(error), fix))
        return None
    read = "nothing in it yet" if key is None else f"read {key}"
    checks.append(Check("objects", "ok", f"{where}: written, listed, {read}"))
    if s3 is None and not settings.has_embedded_database:
        checks.append(replace(check_disk(settings.home), name="disk of objects"))
    if s3 is not None:
        checks.append(
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


def check_home(settings: Settings) -> list[Check]:
    """The home and the files in it are this user's alone: it has what people read, backups and keys."""
    home = settings.home
    if not home.is_dir():
        return []
    # A web server that shows images and topics goes through the home, and sees no list of it.
    most = 0o711 if settings.objects_public_url is not None else 0o700
    mode = stat.S_IMODE(home.stat().st_mode)
    if mode & ~most == 0:
        return [Check("home", "ok", f"{home}: only this user can read it")]
    found = f"{home}: others on this machine can read it (mode {mode:o}): backups, what people read, keys"
    return [Check("home", "warning", found, f"Close it: chmod {most:o} {shlex.quote(str(home))}")]


def check_dagster_home(settings: Settings) -> Check:
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
        return Check("dagster", "warning", f"{home} has no dagster.yaml", fix)
    return check


def _check_writable(name: str, folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check(name, "ok", f"{folder} can be written")
    except OSError as error:
        fix = "Give this user the right to write there, or set RSS_PIPELINE_HOME to another folder."
        return Check(name, "failure", f"{folder}: {error.strerror or error}", fix)
