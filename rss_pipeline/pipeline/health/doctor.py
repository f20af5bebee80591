"""Checks of everything a deployment needs: settings, registry, stores, feeds, backups, alerts.

The meaning of a fact is findings.py's, its display cli.output's. On the embedded default all checks take a
moment. The failure of one check stops no other.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.errors import RegistryError, RssPipelineError, SettingsError
from rss_pipeline.pipeline.health.broker import check_broker
from rss_pipeline.pipeline.health.feed_checks import feed_checks
from rss_pipeline.pipeline.health.findings import (
    Check,
    check_backups,
    check_clock,
    check_d1_size,
    check_lifecycle,
    check_orphans,
    check_schema,
    judge_disk,
)
from rss_pipeline.pipeline.health.network import check_network
from rss_pipeline.pipeline.health.topic_checks import topic_checks
from rss_pipeline.pipeline.health.topics_store import check_topics_store
from rss_pipeline.server_settings import S3Settings
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends import probes
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.backups.orphans import find_orphans
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.schema import check_prepared, schema_version

if TYPE_CHECKING:
    # Its module loads boto3, which a folder does not need.
    from rss_pipeline.storage.backends.s3 import S3Store

BACKUPS_LOOKED_AT = 50
ORPHANS_SECONDS = 5.0
_FIX_WEBHOOK = "Set RSS_ALERT_WEBHOOK to the URL of an incoming webhook, in the environment or in .env."


def examine(environ: Mapping[str, str], *, cwd: Path, clock: Clock) -> list[Check]:
    """Every check of the deployment that `environ` describes. The result contains no secret."""
    settings, checks, unusable = _settings(environ, cwd)
    registry, specs = check_registry(settings, environ)
    checks.append(registry)
    if specs is not None:
        checks.append(check_network(specs, settings))
    database: Database | None = None
    store: ObjectStore | None = None
    with ExitStack() as stack:
        if unusable.isdisjoint({"D1", "DATABASE"}):
            with _noting(checks, "database"):
                database = _database(settings, clock, checks, stack)
        if "R2" not in unusable:
            with _noting(checks, "objects"):
                store = _objects(settings, clock, checks)
            with _noting(checks, "topics"):
                checks += check_topics_store(settings)
        if database is not None:
            with _noting(checks, "feeds"):
                checks += feed_checks(database, specs, clock())
                checks += topic_checks(database, clock())
            if store is not None:
                with _noting(checks, "restore"):
                    loss = diagnostics.backup_loss(database, store, limit=BACKUPS_LOOKED_AT)
                    checks.append(check_backups(loss))
                with _noting(checks, "orphans"):
                    until = time.monotonic() + ORPHANS_SECONDS
                    found = find_orphans(
                        database, store, now=clock(), is_over=lambda: time.monotonic() > until
                    )
                    checks += check_orphans(found)
    if settings.fleet is not None:
        with _noting(checks, "broker"):
            check_broker(settings.fleet, ca_file=settings.ca_file)
            checks.append(Check("broker", "ok", f"{settings.fleet.broker_where} takes runs"))
    with _noting(checks, "dagster"):
        checks.append(check_dagster_home(settings))
    checks.append(check_alerts(settings))
    return [_without_secrets(check, environ) for check in checks]


def try_alert(environ: Mapping[str, str], *, cwd: Path) -> Check:
    """Send an alert to the webhook that `environ` names, and check that it is accepted."""
    settings, *_ = _settings(environ, cwd)
    if settings.alert_webhook is None:
        return Check("test alert", "failure", "not sent: RSS_ALERT_WEBHOOK is not set to a URL", _FIX_WEBHOOK)
    from rss_pipeline.pipeline.health.webhook import AlertFailed, send

    try:
        send(settings, "rss_pipeline: a test alert from `rss-pipeline doctor --alert`; nothing is wrong")
        check = Check("test alert", "ok", f"{urlsplit(settings.alert_webhook).hostname} took it")
    except AlertFailed as failed:
        check = Check("test alert", "failure", str(failed), _FIX_WEBHOOK)
    return _without_secrets(check, environ)


@contextmanager
def _noting(checks: list[Check], name: str) -> Iterator[None]:
    """An error that ends one check is its finding; the checks after it go on."""
    try:
        yield
    except (RssPipelineError, OSError) as error:
        checks.append(Check(name, "failure", str(error), "See the message; the other checks went on."))


def _settings(environ: Mapping[str, str], cwd: Path) -> tuple[Settings, list[Check], set[str]]:
    """The settings without their mistakes, and the stores that are therefore not known."""
    try:
        settings = Settings.from_environ(environ, cwd=cwd)
    except SettingsError as error:
        wrong = {name for mistake in error.mistakes for name in mistake.names}
        unusable = {kind for kind in ("D1", "R2") for name in wrong if name.startswith(f"{kind}_")}
        unusable |= {"DATABASE"} & {name.removesuffix("_URL") for name in wrong}
        usable = {
            name: text
            for name, text in environ.items()
            if name not in wrong and not name.startswith(tuple(f"{kind}_" for kind in unusable))
        }
        checks = [
            Check(
                "settings",
                "failure",
                str(mistake),
                "Set it in the environment or in .env (see .env.example).",
            )
            for mistake in error.mistakes
        ]
        return Settings.from_environ(usable, cwd=cwd), checks, unusable
    database = "D1" if settings.d1 else "Postgres" if settings.postgres else "SQLite"
    where = f"{database} and {settings.s3.prefix if settings.s3 else 'a folder'}"
    checks = [Check("settings", "ok", f"complete; state is kept in {where}")]
    checks += [
        Check("settings", "warning", sentence, "Correct the name or take it out.")
        for sentence in settings.unknown
    ]
    return settings, checks, set()


def check_registry(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[Check, tuple[FeedSpec, ...] | None]:
    """Check feeds.yaml; return all its mistakes, or its feeds if there are none."""
    from rss_pipeline.collector.registry.load import load_registry

    try:
        registry = load_registry(settings.feeds_file, environ=environ)
    except RegistryError as error:
        found = f"{error.path}: {len(error.mistakes)} mistake(s); the feeds stay as they were"
        return Check("feeds.yaml", "failure", found, "\n".join(error.mistakes)), None
    specs = registry.feeds
    secret = sum(not spec.access.is_open for spec in specs)
    found = f"{settings.feeds_file}: {len(specs)} feeds, {secret} with headers or a password, all there"
    if registry.topics:
        found = f"{found}; {len(registry.topics)} topics"
    return Check("feeds.yaml", "ok", found), specs


def _database(settings: Settings, clock: Clock, checks: list[Check], stack: ExitStack) -> Database | None:
    """The database, if it answers and its schema is this code's."""
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
        checks.append(Check("database size", "ok", f"{server.size_bytes / 1e6:,.1f} MB"))
    elif not settings.database_path.exists():
        checks.append(
            Check("database", "ok", f"{settings.database_path}: not there yet; the first poll makes it")
        )
        checks.append(check_disk(settings.home))
        return None
    try:
        database = connect(settings)
        stack.callback(database.close)
        current = schema_version(database)
    except RssPipelineError as error:
        checks.append(Check("database", "failure", str(error), "See the message."))
        return None
    if settings.has_embedded_database:
        checks.append(Check("database", "ok", f"{settings.database_path} can be read"))
        checks.append(check_disk(settings.home))
    checks.append(check_schema(current, embedded=settings.has_embedded_database))
    if checks[-1].state != "ok":
        return None
    try:
        check_prepared(database)
    except RssPipelineError as error:
        checks.append(Check("database functions", "failure", str(error), "See the message."))
        return None
    return database


def check_disk(home: Path) -> Check:
    """Free space on the disk of the embedded stores."""
    there = next(path for path in (home, *home.parents) if path.exists())
    return judge_disk(there, shutil.disk_usage(there).free)


def _objects(settings: Settings, clock: Clock, checks: list[Check]) -> ObjectStore | None:
    """The object store, if it can be written."""
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
    if s3 is not None:
        before = clock()
        theirs = probes.objects_clock(cast("S3Store", store), s3.bucket)
        checks.append(check_clock("objects clock", theirs, before=before, after=clock()))
    where = settings.objects_path if s3 is None else f"{s3.endpoint_url}/{s3.bucket}"
    try:
        store.probe()
        key = probes.read_one(store)
    except RssPipelineError as error:
        checks.append(Check("objects", "failure", str(error), _fix_objects(s3)))
        return None
    read = "nothing in it yet" if key is None else f"read {key}"
    checks.append(Check("objects", "ok", f"{where}: written, listed, {read}"))
    if s3 is not None:
        checks.append(
            check_lifecycle(
                probes.lifecycle(cast("S3Store", store), s3.bucket),
                s3.bucket,
                backup_days=settings.backup_days,
            )
        )
    return store


def _fix_objects(s3: S3Settings | None) -> str:
    if s3 is None:
        return "Make RSS_PIPELINE_HOME a folder that this user may write, on a disk with room."
    if s3.prefix == "S3":
        return "Check the S3_ variables; the key must read, write, list and delete objects in this bucket."
    return (
        "Check the four R2_ variables; the token needs `Object Read & Write` on this bucket"
        " (Cloudflare dashboard, R2, Manage API tokens)."
    )


def check_dagster_home(settings: Settings) -> Check:
    """The folder of Dagster's history and configuration."""
    home = settings.dagster_home
    if not home.exists():
        there = next(path for path in home.parents if path.exists())
        check = _check_writable("dagster", there)
        return check if check.state != "ok" else replace(check, found=f"{home}: not there yet; `up` makes it")
    check = _check_writable("dagster", home)
    if check.state == "ok" and not (home / "dagster.yaml").is_file():
        fix = "Run `rss-pipeline up` or `poll`: they write it. Without it Dagster keeps its history for ever."
        return Check("dagster", "warning", f"{home} has no dagster.yaml", fix)
    return check


def check_alerts(settings: Settings) -> Check:
    """The target of alerts. Nothing is sent."""
    url = settings.alert_webhook
    if url is None:
        return Check("alerts", "ok", "off: RSS_ALERT_WEBHOOK is not set to a URL")
    from rss_pipeline.pipeline.health.webhook import mistake

    wrong = mistake(url)
    if wrong is not None:
        return Check("alerts", "failure", f"RSS_ALERT_WEBHOOK: {wrong}", _FIX_WEBHOOK)
    return Check("alerts", "ok", f"go to {urlsplit(url).hostname}; `rss-pipeline doctor --alert` sends one")


def _check_writable(name: str, folder: Path) -> Check:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return Check(name, "ok", f"{folder} can be written")
    except OSError as error:
        fix = "Give this user the right to write there, or set RSS_PIPELINE_HOME to another folder."
        return Check(name, "failure", f"{folder}: {error.strerror or error}", fix)


def _without_secrets(check: Check, environ: Mapping[str, str]) -> Check:
    """A last guard: no message, of ours or of a library, shows a secret."""
    keys = ("SECRET_ACCESS_KEY", "ACCESS_KEY_ID")
    of_buckets = [f"{prefix}_{key}" for prefix in ("R2", "S3") for key in keys]
    of_fleet = ("DATABASE_URL", "DAGSTER_DATABASE_URL", "RSS_BROKER_URL")
    names = ("D1_PROXY_TOKEN", *of_buckets, "RSS_PROXY", "RSS_ALERT_WEBHOOK", *of_fleet)
    found, fix = check.found, check.fix
    for secret in filter(None, (environ.get(name, "").strip() for name in names)):
        found, fix = found.replace(secret, "***"), fix.replace(secret, "***")
    return replace(check, found=found, fix=fix)
