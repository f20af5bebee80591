"""The network as `doctor` checks it: names of feeds' own hosts are resolved, and nothing is sent to them.

A datagram socket that is connected sends nothing, but shows if there is a route. A proxy has to accept a
connection.
"""

import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.collector.schedule.our_outage import OUTAGE_HOSTS, is_public
from rss_pipeline.features.health.model import Finding
from rss_pipeline.settings import Settings

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
