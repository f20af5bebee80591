"""Requests that a program on this machine makes itself, told from those that one here passes on.

A reverse proxy or a tunnel on this machine has a loopback address too, and passes on what comes from
everywhere. By its headers alone it may look like a browser here (nginx with `proxy_pass` by HTTP/1.1 and no
other line), so the sockets of the sender are looked at as well. Only the page for the first user asks.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import psutil

from rss_pipeline.api.asgi import Scope, header
from rss_pipeline.api.hosts import client_address
from rss_pipeline.web.authority import own_authorities, read_authority

_FORWARDED = frozenset({b"forwarded", b"via", b"cdn-loop"})
_FORWARDED_BEGIN = (b"x-", b"cf-", b"proxy-")
_FORWARDED_END = b"-client-ip"
"""Headers that proxies add, and no browser sends by itself."""

_BROWSERS = frozenset(
    {
        "arc",
        "brave",
        "chrome",
        "chromium",
        "edge",
        "epiphany",
        "falkon",
        "firefox",
        "geckomain",
        "konqueror",
        "librewolf",
        "msedge",
        "opera",
        "qtwebengineprocess",
        "qutebrowser",
        "safari",
        "vivaldi",
        "webkit",
        "webkitnetworkprocess",
        "zen",
    }
)
"""Words in the names of programs that have connections to the network and pass nothing on."""


def is_direct(scope: Scope, *, port: int) -> bool:
    """True if headers and addresses are those of a program on this machine that has made this request to us,
    on this port, directly. A proxy may hide from this, but not from `is_passed_on`.

    A proxy shows by the headers that it adds, by a name of its own as Host, or by HTTP/1.0, which nginx
    before 1.29 speaks unless it is configured otherwise and no browser does.
    """
    try:
        is_loopback = ip_address(client_address(scope)).is_loopback
    except ValueError:
        return False
    if not is_loopback or scope["http_version"] == "1.0":
        return False
    if any(_is_of_proxy(name) for name, _ in scope["headers"]):
        return False
    return read_authority(header(scope, b"host") or "") in own_authorities(port, ())


def is_passed_on(scope: Scope) -> bool:
    """True if the sender of a request from the loopback interface is a program that serves others, or one of
    which nothing is known: a process of another user, or one that has closed its end already.

    It serves others if it listens at an address that is not loopback, or has accepted a connection: a proxy
    has, while it passes a request on. Behind another proxy it may listen at a file. A tunnel (`ssh -R`, frp,
    bore) listens nowhere, it has called a server out there, whose visitors it brings: so has every browser,
    and these are known by name. It takes 0.2 s, with thousands of connections on the machine a second: the
    sockets of all processes are read.
    """
    ends = _end(scope["client"]), _end(scope["server"])
    sender: list[Any] = []
    senders: list[str] = []
    is_at_file = False
    listening: set[int] = set()
    for process, sockets in _sockets().items():
        listening |= {each.laddr.port for each in sockets if each.status == psutil.CONN_LISTEN}
        if any((_end(each.laddr), _end(each.raddr)) == ends for each in sockets if each.raddr):
            sender += sockets
            try:
                program = None if process is None else psutil.Process(process)
                senders.append("" if program is None else program.name())
                is_at_file |= program is not None and any(
                    each.laddr for each in program.net_connections("unix")
                )
            except psutil.Error:
                senders.append("")
    # Our own end of this connection and of others, where the sender is this very process, serves nobody else.
    listening.discard(ends[1][1])
    if not all(senders) or not sender or any(_is_for_others(each, listening) for each in sender):
        return True
    is_known = all(_BROWSERS & set(re.findall("[a-z]+", name.lower())) for name in senders)
    return not is_known and (is_at_file or any(_is_outside(each) for each in sender))


def _sockets() -> dict[int | None, list[Any]]:
    """The sockets of each process, by its id; None has those of processes of which nothing is known."""
    found = defaultdict[int | None, list[Any]](list)
    if not psutil.MACOS:
        # At once: by process, the table of all sockets is read again for each.
        for each in psutil.net_connections("inet"):
            if each.laddr:
                found[each.pid].append(each)
        return found
    # macOS shows a user the sockets of the user's own processes only, and of one at a time.
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            found[process.pid] += [each for each in process.net_connections("inet") if each.laddr]
    return found


def _is_for_others(socket: Any, listening: Collection[int]) -> bool:
    if socket.status == psutil.CONN_LISTEN:
        return not ip_address(_end(socket.laddr)[0]).is_loopback
    return socket.laddr.port in listening


def _is_outside(socket: Any) -> bool:
    # Tunnels by QUIC have a socket of UDP, which shows no other end.
    return not ip_address(_end(socket.raddr or socket.laddr)[0]).is_loopback


def _is_of_proxy(name: bytes) -> bool:
    return name in _FORWARDED or name.startswith(_FORWARDED_BEGIN) or name.endswith(_FORWARDED_END)


def _end(address: Any) -> tuple[str, int]:
    """One form for an end of a connection: an IPv4 address may come within IPv6."""
    found = ip_address(address[0].partition("%")[0])
    return str(getattr(found, "ipv4_mapped", None) or found), int(address[1])
