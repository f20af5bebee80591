"""The command `doctor`: all that this installation needs, checked and shown with its fix.

What is checked is doctor.py's.
"""

import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from rss_pipeline.cli.arguments import as_json
from rss_pipeline.cli.output.terminal import new_console, plain, say_json
from rss_pipeline.collector.models.clock import utc_now

if TYPE_CHECKING:
    from rss_pipeline.features.health.model import Finding
import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from rss_pipeline.atomic_file import replace_file
from rss_pipeline.cli.home_lock import owner_is_gone
from rss_pipeline.cli.output import terminal
from rss_pipeline.errors import InfrastructureError, file_error
from rss_pipeline.pipeline.dagster_tables import RUNS, daemon_seen_at, read, switched_off
from rss_pipeline.pipeline.hindrances import DOWNLOADING, POLLING
from rss_pipeline.settings import Settings
from rss_pipeline.storage.backends.connect import open_database, open_objects
from rss_pipeline.web.authority import own_authorities, read_authority

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
from dataclasses import dataclass
from datetime import datetime

from rss_pipeline.features import FEATURES

_STATE_STYLES: Mapping[str, str] = {"ok": "green", "warning": "yellow", "failure": "bold red"}


@click.command()
@click.option("--alert", is_flag=True, help="Send a test alert to RSS_ALERT_WEBHOOK as well.")
@as_json
def doctor(alert: bool, as_json: bool) -> None:
    """Check everything this installation needs, and show how to fix what is wrong.

    Changes nothing, except that it writes and deletes one small object. Exit code 1 if a check fails.
    """
    from rss_pipeline.features.health.cli import daemon_state
    from rss_pipeline.features.health.doctor import examine, try_alert

    checks = examine(os.environ, cwd=Path.cwd(), clock=utc_now, daemon=daemon_state)
    if alert:
        checks.append(try_alert(os.environ, cwd=Path.cwd()))
    if as_json:
        say_json([check.as_json() for check in checks])
    else:
        show_checks(checks)
    if any(check.state == "failure" for check in checks):
        sys.exit(1)


def show_checks(checks: "Sequence[Finding]") -> None:
    """One line for each check, the fix below it, and the number of each state."""
    console = new_console()
    for check in checks:
        style = _STATE_STYLES[check.state]
        text = Text.assemble((f"{check.state:<8}", style), (f"{check.name:<18}", "bold"), plain(check.found))
        console.print(text, soft_wrap=True)
        for line in check.fix.splitlines():
            console.print(Text(f"{'':<26}{plain(line)}", style=style), soft_wrap=True)
    counts = Counter(check.state for check in checks)
    console.print(f"{counts['ok']} ok, {counts['warning']} warnings, {counts['failure']} failures")


# The command `metrics`: the state of the installation for Prometheus, printed, into a file, or served.
#
# What the metrics are is in features/health/metrics.py.

_LOOPBACK = "127.0.0.1"
_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@click.command()
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file in one step: for node_exporter's textfile collector, NAME.prom.",
)
@click.option(
    "--listen", metavar="[HOST:]PORT", help="Serve /metrics until stopped; HOST is 127.0.0.1 by default."
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which the metrics are requested, besides localhost, the addresses of this machine,"
    " RSS_UI_HOSTS and RSS_READER_HOSTS. May be given several times.",
)
@click.option("--backups", is_flag=True, help="Also count the backups, which lists all of them.")
@click.pass_obj
def metrics(
    settings: Settings, output: Path | None, listen: str | None, hosts: Sequence[str], backups: bool
) -> None:
    """Print metrics in Prometheus' text format: feeds, failures, items, images, jobs.

    With --listen the database is read at most once a minute, however often it is scraped.
    """
    from rss_pipeline.features.health.cli import last_runs
    from rss_pipeline.features.health.metrics import Metrics

    if output is not None and listen is not None:
        raise click.UsageError("--output writes once and --listen serves: use one of them")
    address = None if listen is None else _address(listen)
    with open_database(settings) as database:
        figures = Metrics(
            database,
            open_objects(settings) if backups else None,
            settings,
            clock=utc_now,
            jobs=lambda: last_runs(settings),
        )
        if address is not None:
            host, port = address
            own = own_names(settings, host, hosts)
            _serve(app(figures.text, own), host, port)
        elif output is None:
            terminal.say_content(figures.text().decode())
        else:
            try:
                replace_file(output, figures.text())
            except OSError as error:
                what = f"{output} cannot be written"
                raise click.ClickException(file_error(what, error, output.parent)) from None


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isascii() or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise click.UsageError(f"--listen {text}: write a port, or HOST:PORT such as 127.0.0.1:9464")
    return host.strip("[]") or _LOOPBACK, int(port)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """A scrape each 15 s is not worth a line."""


def own_names(settings: Settings, listens_on: str, hosts: Sequence[str]) -> Callable[[str], bool]:
    """A function that is true for the names of this server, as the Host header of a request has them.

    A page of another site can have its own name resolve to this machine (DNS rebinding), and would read the
    figures. An address is no such name; it is taken where the server listens beyond this machine.
    """
    names = {each.host for each in (*own_authorities(0, ()), *settings.ui_hosts, *settings.reader_hosts)}
    names |= {text.lower() for text in (listens_on, f"[{listens_on}]", *hosts)}
    takes_addresses = not listens_on.startswith("127.") and listens_on not in ("localhost", "::1")
    if takes_addresses:
        names.add(socket.gethostname().lower())

    def is_own(header: str) -> bool:
        authority = read_authority(header.strip())
        if authority is None:
            return False
        return authority.host in names or (takes_addresses and _is_address(authority.host))

    return is_own


def _is_address(host: str) -> bool:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def app(text: Callable[[], bytes], is_own: Callable[[str], bool]) -> "WSGIApplication":
    """The server's only route: GET /metrics, for requests with a name of its own."""

    def respond(environ: "WSGIEnvironment", start: "StartResponse") -> Iterable[bytes]:
        if not is_own(environ.get("HTTP_HOST", "")):
            status = "421 Misdirected Request"
            body = b"The Host header is no name of this server. `metrics --host NAME` adds one.\n"
        elif environ["PATH_INFO"] != "/metrics":
            status, body = "404 Not Found", b"The metrics are at /metrics.\n"
        elif environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            status, body = "405 Method Not Allowed", b"Use GET.\n"
        else:
            try:
                status, body = "200 OK", text()
            except InfrastructureError as error:
                # To Prometheus the target is down; the sentence is for a person who opens the page.
                status, body = "503 Service Unavailable", f"{error}\n".encode()
        start(status, [("Content-Type", _CONTENT_TYPE), ("Content-Length", str(len(body)))])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    return respond


def _serve(application: "WSGIApplication", host: str, port: int) -> None:
    try:
        server = make_server(host, port, application, server_class=_Server, handler_class=_Handler)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port} cannot be listened on ({error.strerror}): give --listen another port"
        ) from None
    with server:
        terminal.say(f"Metrics are at http://{host}:{server.server_port}/metrics; Ctrl-C stops it.")
        sys.stdout.flush()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return


# The ends of jobs' last runs and the state of the daemon.

_LAST = """SELECT pipeline_name, status, max(end_time) FROM runs
  WHERE status IN ('SUCCESS', 'FAILURE') GROUP BY 1, 2"""

RUNNING = frozenset(
    {
        POLLING,
        "refresh_feeds_when_requested",
        *DOWNLOADING,
        "sync_registry",
        "end_dead_runs",
        "back_up_users",
        "purge_daily",
    }
)
"""The sensors and schedules that are on from the start, wherever this runs, but for those of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRuns:
    """Seconds since 1970; None if no such run is in the history."""

    last_success: float | None = None
    last_failure: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenDaemon:
    """The state of the daemon, as its storage has it."""

    seen_at: datetime | None
    """The last sign of life of what evaluates sensors; None where there was none."""
    switched_off: tuple[str, ...]
    """The members of `on_from_the_start` that a person has switched off."""
    is_gone: bool
    """The process that had the lock of the home has ended: no `up` is running here."""


def last_runs(settings: Settings) -> dict[str, JobRuns]:
    """Job name to the ends of its last runs; empty if there is no history that can be read."""
    ends: dict[str, dict[str, float]] = {}
    for job, status, end in read(settings, RUNS, _LAST):
        if job and end is not None:
            ends.setdefault(job, {})[status] = float(end)
    return {
        job: JobRuns(last_success=each.get("SUCCESS"), last_failure=each.get("FAILURE"))
        for job, each in sorted(ends.items())
    }


def daemon_state(settings: Settings) -> SeenDaemon:
    """The state of the daemon of this installation, as far as it can be read."""
    return SeenDaemon(
        seen_at=daemon_seen_at(settings),
        switched_off=tuple(sorted(on_from_the_start(settings) & switched_off(settings))),
        is_gone=settings.runs_elsewhere is None and owner_is_gone(settings.home),
    )


def on_from_the_start(settings: Settings) -> frozenset[str]:
    """The sensors and schedules that are on by themselves with these settings."""
    return RUNNING.union(*(feature.automations(settings) for feature in FEATURES))
