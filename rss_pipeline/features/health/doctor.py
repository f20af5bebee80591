"""Checks of everything a deployment needs: settings, registry, stores, feeds, backups, alerts.

First what must be right before a database can be asked, then the checks of the table (checks.py). The display
is cli.output's. On the embedded default all take a moment. The failure of one check stops no other.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from rss_pipeline.collector.http.redaction import Secrets
from rss_pipeline.collector.models.clock import Clock, instant, rough
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.schedule.our_outage import OUTAGE_HOSTS, is_public
from rss_pipeline.errors import RegistryError, RssPipelineError, SettingsError
from rss_pipeline.extras import EXTRAS
from rss_pipeline.features import FEATURES
from rss_pipeline.features.health.checks import health_checks
from rss_pipeline.features.health.model import Finding, Look, State
from rss_pipeline.features.health.store_checks import (
    check_dagster_home,
    check_home,
    check_topics_store,
    find_filled,
    usable_database,
    usable_objects,
)
from rss_pipeline.features.packages import missing_packages
from rss_pipeline.pipeline.dagster_tables import switched_off
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import DATABASES, OBJECTS, connect, open_objects, prefixes
from rss_pipeline.storage.database import Database
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.schema import schema_version

DAEMON_SILENT = timedelta(minutes=12)
"""The daemon gives a sign of life each five minutes."""
_PLACES = {
    "database": prefixes(DATABASES),
    "objects": prefixes(OBJECTS),
}
"""The variables of each place, by how their names begin."""
_SERVERS = {each.name: each.settings.servers for each in FEATURES if each.settings and each.settings.servers}
_FIX_WEBHOOK = "Set RSS_ALERT_WEBHOOK to the URL of an incoming webhook, in the environment or in .env."


class DaemonState(Protocol):
    """The state of Dagster's daemon."""

    @property
    def seen_at(self) -> datetime | None: ...
    @property
    def switched_off(self) -> Sequence[str]: ...
    @property
    def is_gone(self) -> bool: ...


def examine(
    environ: Mapping[str, str],
    *,
    cwd: Path,
    clock: Clock,
    daemon: Callable[[Settings], DaemonState] | None = None,
) -> list[Finding]:
    """The findings about the deployment that `environ` describes. They contain no secret.

    `daemon` reads the state of Dagster's daemon.
    """
    settings, findings, unusable = _settings(environ, cwd)
    registry, specs = check_registry(settings, environ)
    findings.append(registry)
    if specs is not None:
        findings.append(check_network(specs, settings))
    database: Database | None = None
    store: ObjectStore | None = None
    overdue: Finding | None = None
    with ExitStack() as stack:
        if "database" not in unusable:
            with _noting(findings, "database"):
                database = usable_database(settings, clock, findings, stack)
        if "objects" not in unusable:
            with _noting(findings, "objects"):
                store = usable_objects(settings, clock, findings)
            with _noting(findings, "topics"):
                findings += check_topics_store(settings)
        if database is not None:
            look = Look(
                database=database,
                # Only a check of kind "file" opens it, and only where it is usable.
                objects=lambda: store or open_objects(settings),
                settings=settings,
                now=clock(),
                specs=specs,
                at_once=True,
            )
            for hindrance in look.hindrances:
                if hindrance.kind == "offline" and specs is not None:
                    network = next(n for n, each in enumerate(findings) if each.name == "network")
                    since = "" if hindrance.since is None else f" since {instant(hindrance.since)}"
                    unreached = f"no poll has reached a feed{since}"
                    if findings[network].state == "ok":
                        findings[network] = Finding("network", "failure", unreached, _FIX)
            for check in health_checks(settings):
                if check.doctor is None or (check.kind == "file" and store is None):
                    continue
                with _noting(findings, check.doctor):
                    if (found := check.evaluate(look)) is not None:
                        findings.append(replace(found.naming(), name=check.doctor))
                        overdue = findings[-1] if check.name == "no_feed_overdue" else overdue
        elif store is not None and _is_lost_or_new(settings):
            with _noting(findings, "stores"):
                if (found := find_filled(settings, store, has_items=False)) is not None:
                    findings.append(replace(found, name="stores"))
        with _noting(findings, "packages"):
            findings.append(check_packages(settings, database))
    for name, part in ((name, part) for each in FEATURES for name, part in each.doctor.items()):
        with _noting(findings, name):
            if (found := part.load()(settings)) is not None:
                findings.append(found)
    with _noting(findings, "home"):
        findings += check_home(settings)
    with _noting(findings, "dagster"):
        findings.append(check_dagster_home(settings))
        if daemon is not None and overdue is not None:
            state = daemon(settings)
            findings.append(
                check_daemon(overdue, state.seen_at, state.switched_off, now=clock(), is_gone=state.is_gone)
            )
    findings += check_proxies(settings)
    findings.append(check_alerts(settings))
    return [_without_secrets(each, environ) for each in findings]


def _is_lost_or_new(settings: Settings) -> bool:
    """True for a database file that is not there, or without any table."""
    file = settings.database.file
    if file is None or not file.exists():
        return file is not None
    try:
        with closing(connect(settings)) as database:
            return schema_version(database) == 0
    except RssPipelineError:
        return False


def try_alert(environ: Mapping[str, str], *, cwd: Path) -> Finding:
    """Send an alert to the webhook that `environ` names, and check that it is accepted."""
    settings, *_ = _settings(environ, cwd)
    if settings.alert_webhook is None:
        return Finding(
            "test alert", "failure", "not sent: RSS_ALERT_WEBHOOK is not set to a URL", _FIX_WEBHOOK
        )
    from rss_pipeline.features.health.webhook import AlertFailed, send

    try:
        send(settings, "rss_pipeline: a test alert from `rss-pipeline doctor --alert`; nothing is wrong")
        check = Finding("test alert", "ok", f"{urlsplit(settings.alert_webhook).hostname} accepted it")
    except AlertFailed as failed:
        check = Finding("test alert", "failure", str(failed), _FIX_WEBHOOK)
    return _without_secrets(check, environ)


@contextmanager
def _noting(findings: list[Finding], name: str) -> Iterator[None]:
    """An error that ends one check is its finding; the checks after it go on."""
    try:
        yield
    except (RssPipelineError, OSError) as error:
        # A store that breaks on the way is one finding, not one of each check.
        if all(each.found != str(error) for each in findings):
            fix = "See the message; the other checks went on."
            findings.append(Finding(name, "failure", str(error), fix))


def _settings(environ: Mapping[str, str], cwd: Path) -> tuple[Settings, list[Finding], set[str]]:
    """The settings without their mistakes, and the places that are therefore not known."""
    try:
        settings = Settings.from_environ(environ, cwd=cwd)
    except SettingsError as error:
        wrong = {name for mistake in error.mistakes for name in mistake.names}
        places = {**_PLACES, **_SERVERS}
        unusable = {place for place, names in places.items() if any(name.startswith(names) for name in wrong)}
        if "database" in unusable:
            # A feature's servers are nothing without the database.
            unusable.update(_SERVERS)
        # The rest of its variables does not tell which database or bucket is meant.
        left_out = tuple(name for place in unusable for name in places[place])
        usable = {
            name: text
            for name, text in environ.items()
            if name not in wrong and not (left_out and name.startswith(left_out))
        }
        checks = [
            Finding(
                "settings",
                "failure",
                str(mistake),
                "Set it in the environment or in .env (see .env.example).",
            )
            for mistake in error.mistakes
        ]
        return Settings.from_environ(usable, cwd=cwd), checks, unusable
    where = f"{settings.database.title} and {settings.objects.title}"
    checks = [Finding("settings", "ok", f"complete; state is kept in {where}")]
    checks += [
        Finding("settings", "warning", sentence, "Correct the name or take it out.")
        for sentence in settings.unknown
    ]
    return settings, checks, set()


def check_registry(
    settings: Settings, environ: Mapping[str, str]
) -> tuple[Finding, tuple[FeedSpec, ...] | None]:
    """Check feeds.yaml; return all its mistakes, or its feeds if there are none."""
    from rss_pipeline.collector.registry.load import load_registry

    try:
        registry = load_registry(settings.feeds_file, environ=environ)
    except RegistryError as error:
        found = f"{error.path}: {len(error.mistakes)} mistake(s); the feeds stay as they were"
        return Finding("feeds.yaml", "failure", found, "\n".join(error.mistakes)), None
    specs = registry.feeds
    secret = sum(not spec.access.is_open for spec in specs)
    found = f"{settings.feeds_file}: {len(specs)} feeds, {secret} with headers or a password, all there"
    for name, values in registry.of_features.items():
        if values:
            found = f"{found}; {len(values)} {name}"
    return Finding("feeds.yaml", "ok", found), specs


def check_packages(settings: Settings, database: Database | None) -> Finding:
    """The packages of what is switched on, as far as the database shows it, and of the extras."""
    missing = [] if database is None else missing_packages(database, settings)
    if missing:
        fixes = dict.fromkeys(extra.fix for extra, _ in missing)
        return Finding("packages", "failure", "; ".join(problem for _, problem in missing), " ".join(fixes))
    always = [(each, problem) for each in EXTRAS if not each.is_optional and (problem := each.problem)]
    for extra, problem in always:
        found = f"{problem}; nothing that is switched on needs it"
        return Finding("packages", "warning", found, extra.fix)
    absent = [f"{each.part} ({', '.join(each.packages)})" for each in EXTRAS if each.missing is not None]
    also = f"; not installed, and not needed: those of {', '.join(absent)}" if absent else ""
    return Finding("packages", "ok", f"all that are needed here are installed{also}")


def check_proxies(settings: Settings) -> list[Finding]:
    """The reverse proxies of a reader that has names: names other than this machine's need one, for https."""
    if not settings.reader or not settings.reader_hosts or settings.reader_proxies:
        return []
    names = ", ".join(map(str, settings.reader_hosts))
    found = (
        f"RSS_READER_PROXIES is not set, and the reader is at {names}: behind a proxy all its clients count"
    )
    return [
        Finding(
            "reader",
            "warning",
            f"{found} as one, so that wrong passwords of one lock out all, and cookies are not Secure",
            "Set it to the address of the reverse proxy, such as 127.0.0.1, or to the network of an Ingress."
            " Without a proxy it may stay so: browsers then need a VPN, for there is no https.",
        )
    ]


def check_daemon(
    overdue: Finding,
    seen_at: datetime | None,
    switched_off: Sequence[str],
    *,
    now: datetime,
    is_gone: bool = False,
) -> Finding:
    """The daemon and what a person has switched off in the UI. Whoever polls by a timer of their own needs
    neither, as long as no feed is overdue."""
    name = "daemon"
    if switched_off:
        state: State = "failure" if overdue.state == "failure" else "warning"
        found = f"switched off in Dagster's UI: {', '.join(switched_off)}"
        return Finding(name, state, found, "Switch on in the UI, page Automation, what should run.")
    if seen_at is None:
        return Finding(name, "ok", "none has run here so far")
    silence = now - seen_at
    if silence <= DAEMON_SILENT and not is_gone:
        return Finding(name, "ok", "it runs, and every sensor and schedule is on")
    found = f"it was last seen {rough(silence)} ago" + (", and `up` has ended" if is_gone else "")
    if overdue.state == "ok":
        return Finding(name, "ok", f"{found}; no feed waits for it")
    return Finding(name, overdue.state, found, "Start it: `rss-pipeline up`. Its log says why it ended.")


def check_alerts(settings: Settings) -> Finding:
    """The target of alerts. Nothing is sent."""
    url = settings.alert_webhook
    if url is None:
        return Finding("alerts", "ok", "off: RSS_ALERT_WEBHOOK is not set to a URL")
    from rss_pipeline.features.health.webhook import mistake

    if stopped := sorted(each for each in switched_off(settings) if each.startswith("alert_")):
        found = f"switched off in Dagster's UI: {', '.join(stopped)}"
        return Finding("alerts", "warning", found, "Switch them on in the UI, page Automation.")
    wrong = mistake(url)
    if wrong is not None:
        return Finding("alerts", "failure", f"RSS_ALERT_WEBHOOK: {wrong}", _FIX_WEBHOOK)
    return Finding("alerts", "ok", f"go to {urlsplit(url).hostname}; `rss-pipeline doctor --alert` sends one")


def _without_secrets(check: Finding, environ: Mapping[str, str]) -> Finding:
    """A last guard: no message, of ours or of a library, shows a secret."""
    of_stores = [name for kind in (*DATABASES, *OBJECTS) for _, name in kind.secrets]
    of_features = [name for names in _SERVERS.values() for name in names]
    names = (*of_stores, *of_features, "RSS_PROXY", "RSS_ALERT_WEBHOOK", "RSS_READER_SECRET")
    secrets = Secrets.named(text for name in names for text in _secrets_of(name, environ.get(name, "")))
    return replace(check, found=secrets.removed(check.found), fix=secrets.removed(check.fix))


def _secrets_of(name: str, value: str) -> Iterator[str]:
    """The value of this variable, and the password of a URL. The URL of a server without one is no secret,
    and says which server it is."""
    user, at, _ = value.partition("://")[2].rpartition("@")
    is_place = "://" in value and name != "RSS_ALERT_WEBHOOK"
    if not is_place or at or "password=" in value.lower():
        yield value.strip()
        yield unquote(user.partition(":")[2])


# The network as `doctor` checks it: names of feeds' own hosts are resolved, and nothing is sent to them.
#
# A datagram socket that is connected sends nothing, but shows if there is a route. A proxy has to accept a
# connection.

HOSTS = 10
"""Hosts that are looked up: one that resolves is enough."""
SECONDS = 3.0
_PORT = 443
_FIX = (
    "Connect this machine to the network, or correct its DNS. If it has to use a proxy, set RSS_PROXY. If you"
    " have only a few feeds, check their addresses, too."
)

_FIX_NAME = (
    "Correct the address in feeds.yaml: a name is misspelt, or its publisher is gone. If it is right, look at"
    " the DNS and the network of this machine."
)
_ANYWHERE = ("192.0.2.1", "2001:db8::1")
"""Addresses that are nobody's: a way to them is the way to the internet. RFC 5737, RFC 3849"""

Resolve = Callable[[str], Iterable[str]]
"""The addresses of a host, as text. Raises OSError."""
HasRoute = Callable[[str], bool]
Connects = Callable[[str, int], str | None]
"""The reason why a server takes no connection, or None."""


def look_up(host: str) -> list[str]:
    """The system's answer."""
    return [str(entry[4][0]) for entry in socket.getaddrinfo(host, _PORT, type=socket.SOCK_STREAM)]


def has_route(address: str) -> bool:
    """True if this machine knows a way to the address. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((address, _PORT))
        return True
    return False


def no_connection(host: str, port: int) -> str | None:
    """The system's reason, or None. The connection is closed at once."""
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def check_network(
    specs: Sequence[FeedSpec],
    settings: Settings,
    *,
    resolve: Resolve = look_up,
    has_route: HasRoute = has_route,
    no_connection: Connects = no_connection,
    seconds: float = SECONDS,
) -> Finding:
    """Check that this machine is online, as far as hosts of its feeds show, or its proxy if it has one."""
    proxy = None if settings.proxy is None else urlsplit(settings.proxy).hostname
    if proxy is not None:
        hosts = [proxy]
    else:
        public = (
            spec for spec in specs if spec.enabled and is_public(spec.host, allow_private=spec.allow_private)
        )
        hosts = list(dict.fromkeys(spec.host for spec in public))[:HOSTS]
    if not hosts:
        return Finding("network", "ok", "not needed: no feed is outside of your own network")
    found = _first_resolved(hosts, resolve, seconds)
    if found is None:
        named = ", ".join(hosts[:3]) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
        has_others = any(spec.enabled and spec.host not in hosts for spec in specs)
        if proxy is None and len(hosts) < OUTAGE_HOSTS and (has_others or any(map(has_route, _ANYWHERE))):
            # One or two names beside feeds of our own network are no proof against the network.
            return Finding("network", "warning", f"{' and '.join(hosts)} does not resolve", _FIX_NAME)
        what = "no host of a feed resolves" if proxy is None else "the host of RSS_PROXY does not resolve"
        return Finding("network", "failure", f"{what} ({named})", _FIX)
    host, addresses = found
    if not any(map(has_route, addresses)):
        return Finding("network", "failure", f"{host} resolves, but this machine has no route to it", _FIX)
    if settings.proxy is not None:
        parts = urlsplit(settings.proxy)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        if (reason := no_connection(host, port)) is not None:
            sentence = f"the proxy {host}:{port} takes no connection: {reason}"
            return Finding("network", "failure", sentence, "Start it, or correct RSS_PROXY.")
    return Finding("network", "ok", f"{host} resolves, and there is a route to it")


def _first_resolved(hosts: Sequence[str], resolve: Resolve, seconds: float) -> tuple[str, list[str]] | None:
    answers: queue.SimpleQueue[tuple[str, list[str]]] = queue.SimpleQueue()

    def look(host: str) -> None:
        addresses: list[str] = []
        with suppress(OSError, UnicodeError):
            addresses = list(resolve(host))
        answers.put((host, addresses))

    for host in hosts:
        # A look-up cannot be stopped, and may take a minute: the command does not wait for such a thread.
        threading.Thread(target=look, args=(host,), daemon=True).start()
    until = time.monotonic() + seconds
    for _ in hosts:
        try:
            host, addresses = answers.get(timeout=max(until - time.monotonic(), 0.0))
        except queue.Empty:
            return None
        if addresses:
            return host, addresses
    return None
