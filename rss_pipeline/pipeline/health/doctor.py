"""Checks of everything a deployment needs: settings, registry, stores, feeds, backups, alerts.

The meaning of a fact is findings.py's, its display cli.output's. On the embedded default all checks take a
moment. The failure of one check stops no other.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.errors import RegistryError, RssPipelineError, SettingsError
from rss_pipeline.pipeline.health.broker import check_broker
from rss_pipeline.pipeline.health.evaluation import Look, checks_of_doctor
from rss_pipeline.pipeline.health.feed_checks import check_use, feed_checks
from rss_pipeline.pipeline.health.findings import (
    Check,
    check_backups,
    check_daemon,
    check_orphans,
    check_stores,
)
from rss_pipeline.pipeline.health.network import check_network
from rss_pipeline.pipeline.health.public_objects import check_public
from rss_pipeline.pipeline.health.store_checks import (
    check_dagster_home,
    check_home,
    copy_of_home,
    copy_of_objects,
    usable_database,
    usable_objects,
)
from rss_pipeline.pipeline.health.topic_checks import topic_checks
from rss_pipeline.pipeline.health.topics_store import check_topics_store
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import connect, open_objects
from rss_pipeline.storage.backups.orphans import find_orphans
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.installation import read_contact
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.reports import diagnostics
from rss_pipeline.storage.schema import schema_version

BACKUPS_LOOKED_AT = 50
ORPHANS_SECONDS = 5.0
_PLACES = {
    "database": ("D1_", "DATABASE_URL"),
    "objects": ("R2_", "S3_"),
    "broker": ("RSS_BROKER_URL", "DAGSTER_DATABASE_URL"),
}
"""The variables of each place, by how their names begin."""
_FIX_WEBHOOK = "Set RSS_ALERT_WEBHOOK to the URL of an incoming webhook, in the environment or in .env."


class DaemonState(Protocol):
    """The state of Dagster's daemon."""

    @property
    def seen_at(self) -> datetime | None: ...
    @property
    def switched_off(self) -> Sequence[str]: ...


def examine(
    environ: Mapping[str, str],
    *,
    cwd: Path,
    clock: Clock,
    daemon: Callable[[Settings], DaemonState] | None = None,
) -> list[Check]:
    """Every check of the deployment that `environ` describes. The result contains no secret.

    `daemon` reads the state of Dagster's daemon.
    """
    settings, checks, unusable = _settings(environ, cwd)
    registry, specs = check_registry(settings, environ)
    checks.append(registry)
    if specs is not None:
        checks.append(check_network(specs, settings))
    database: Database | None = None
    store: ObjectStore | None = None
    with ExitStack() as stack:
        if "database" not in unusable:
            with _noting(checks, "database"):
                database = usable_database(settings, clock, checks, stack)
        if "objects" not in unusable:
            with _noting(checks, "objects"):
                store = usable_objects(settings, clock, checks)
            with _noting(checks, "topics"):
                checks += check_topics_store(settings)
        if database is not None:
            with _noting(checks, "feeds"):
                if specs is not None:
                    checks.append(check_use(database, specs, path=str(settings.feeds_file)))
                checks += feed_checks(database, specs, clock())
                checks += topic_checks(database, clock())
            with _noting(checks, "contact"):
                checks.append(check_contact(settings, database))
            with _noting(checks, "health"):
                checks += checks_of_doctor(
                    Look(
                        database=database,
                        objects=lambda: open_objects(settings),
                        settings=settings,
                        now=clock(),
                    )
                )
            if store is not None:
                with _noting(checks, "public objects"):
                    checks += check_public(settings, database, store)
                copy = None
                with _noting(checks, "restore"):
                    loss = diagnostics.backup_loss(database, store, limit=BACKUPS_LOOKED_AT)
                    copy = copy_of_objects(settings, loss.lost_keys)
                    checks.append(check_backups(loss, copy=copy))
                with _noting(checks, "stores"):
                    checks += _check_stores(settings, store, has_items=diagnostics.has_items(database))
                with _noting(checks, "orphans"):
                    until = time.monotonic() + ORPHANS_SECONDS
                    found = find_orphans(
                        database, store, now=clock(), is_over=lambda: time.monotonic() > until
                    )
                    checks += check_orphans(found, copy=copy)
        elif store is not None and _is_lost_or_new(settings):
            with _noting(checks, "stores"):
                checks += _check_stores(settings, store, has_items=False)
    if settings.fleet is not None:
        with _noting(checks, "broker"):
            check_broker(settings.fleet, ca_file=settings.ca_file)
            checks.append(Check("broker", "ok", f"{settings.fleet.broker_where} takes runs"))
        # Where the driver is missing, the check of the database has said it.
        with _noting(checks, "dagster's database"), suppress(ImportError):
            from rss_pipeline.storage.backends.postgres.schemas import check_options

            check_options(settings.fleet.libpq_url, schema=settings.fleet.schema)
    with _noting(checks, "home"):
        checks += check_home(settings)
    with _noting(checks, "dagster"):
        checks.append(check_dagster_home(settings))
        overdue = next((check for check in checks if check.name == "overdue feeds"), None)
        if daemon is not None and overdue is not None:
            state = daemon(settings)
            checks.append(check_daemon(overdue, state.seen_at, state.switched_off, now=clock()))
    checks += check_proxies(settings)
    checks.append(check_alerts(settings))
    return [_without_secrets(check, environ) for check in checks]


def _check_stores(settings: Settings, store: ObjectStore, *, has_items: bool) -> list[Check]:
    has_objects = next(iter(store.list("backups/")), None) is not None
    found = check_stores(has_items=has_items, has_objects=has_objects, copy=copy_of_home(settings))
    return [] if found is None else [found]


def _is_lost_or_new(settings: Settings) -> bool:
    """True for a database file that is not there, or without any table."""
    if not settings.has_embedded_database or not settings.database_path.exists():
        return settings.has_embedded_database
    try:
        with closing(connect(settings)) as database:
            return schema_version(database) == 0
    except RssPipelineError:
        return False


def try_alert(environ: Mapping[str, str], *, cwd: Path) -> Check:
    """Send an alert to the webhook that `environ` names, and check that it is accepted."""
    settings, *_ = _settings(environ, cwd)
    if settings.alert_webhook is None:
        return Check("test alert", "failure", "not sent: RSS_ALERT_WEBHOOK is not set to a URL", _FIX_WEBHOOK)
    from rss_pipeline.pipeline.health.webhook import AlertFailed, send

    try:
        send(settings, "rss_pipeline: a test alert from `rss-pipeline doctor --alert`; nothing is wrong")
        check = Check("test alert", "ok", f"{urlsplit(settings.alert_webhook).hostname} accepted it")
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
    """The settings without their mistakes, and the places (of `_PLACES`) that are therefore not known."""
    try:
        settings = Settings.from_environ(environ, cwd=cwd)
    except SettingsError as error:
        wrong = {name for mistake in error.mistakes for name in mistake.names}
        unusable = {
            place for place, names in _PLACES.items() if any(name.startswith(names) for name in wrong)
        }
        if "database" in unusable:
            # A fleet is nothing without its database.
            unusable.add("broker")
        # The rest of its variables does not tell which database or bucket is meant.
        left_out = tuple(name for place in unusable for name in _PLACES[place])
        usable = {
            name: text
            for name, text in environ.items()
            if name not in wrong and not (left_out and name.startswith(left_out))
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


def check_proxies(settings: Settings) -> list[Check]:
    """The reverse proxies of a reader that has names: names other than this machine's need one, for https."""
    if not settings.reader or not settings.reader_hosts or settings.reader_proxies:
        return []
    names = ", ".join(map(str, settings.reader_hosts))
    found = (
        f"RSS_READER_PROXIES is not set, and the reader is at {names}: behind a proxy all its clients count"
    )
    return [
        Check(
            "reader",
            "warning",
            f"{found} as one, so that wrong passwords of one lock out all, and cookies are not Secure",
            "Set it to the address of the reverse proxy, such as 127.0.0.1, or to the network of an Ingress."
            " Without a proxy it may stay so: browsers then need a VPN, for there is no https.",
        )
    ]


def check_contact(settings: Settings, database: Database) -> Check:
    """The contact in the User-Agent."""
    if settings.has_contact or read_contact(database) is not None:
        return Check("contact", "ok", "publishers get one with each request")
    return Check(
        "contact",
        "warning",
        "requests name no contact: a publisher with a complaint can only block them",
        "Set RSS_USER_AGENT_CONTACT to your e-mail address or web page, in the environment or in .env.",
    )


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


def _without_secrets(check: Check, environ: Mapping[str, str]) -> Check:
    """A last guard: no message, of ours or of a library, shows a secret."""
    keys = ("SECRET_ACCESS_KEY", "ACCESS_KEY_ID")
    of_buckets = [f"{prefix}_{key}" for prefix in ("R2", "S3") for key in keys]
    of_fleet = ("DATABASE_URL", "DAGSTER_DATABASE_URL", "RSS_BROKER_URL")
    of_reader = ("RSS_READER_SECRET",)
    names = ("D1_PROXY_TOKEN", *of_buckets, "RSS_PROXY", "RSS_ALERT_WEBHOOK", *of_fleet, *of_reader)
    secrets = Secrets.named(environ.get(name, "").strip() for name in names)
    return replace(check, found=secrets.removed(check.found), fix=secrets.removed(check.fix))
