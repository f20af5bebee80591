"""The names under which a server of ours is reached: host and port, as Host and Origin give them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any

_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://(.+)", re.IGNORECASE)
_DEFAULT_PORTS = (80, 443)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Authority:
    """A host, lower-case, and a port; None for the port that http or https has by default."""

    host: str
    port: int | None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def read_authority(text: str) -> Authority | None:
    """The authority of a text such as `rss.example.org`, `localhost:3000`, `[::1]:3000`; None for others."""
    match = _AUTHORITY.fullmatch(text.lower())
    if match is None:
        return None
    host, port = match[1], None if match[2] is None else int(match[2])
    if host.startswith("["):
        try:
            host = f"[{IPv6Address(host[1:-1])}]"
        except ValueError:
            return None
    if port is not None and not 0 < port < 65_536:
        return None
    return Authority(host, None if port in _DEFAULT_PORTS else port)


def read_origin(text: str) -> Authority | None:
    """The authority of an Origin header; None for `null` and for schemes other than http and https."""
    match = _ORIGIN.fullmatch(text)
    return None if match is None else read_authority(match[1])


def own_authorities(port: int, names: Iterable[Authority]) -> frozenset[Authority]:
    """All names of a server that listens on this port of the loopback interface; `names` are those it has
    besides, behind a reverse proxy or a tunnel."""
    loopback = {Authority(host, None if port in _DEFAULT_PORTS else port) for host in _LOOPBACK}
    return frozenset({*loopback, *names})


# Headers of ASGI requests: their values, and how a sentence shows them.

_SHOWN = 80
"""Characters of a value that a sentence shows."""


def headers_named(scope: Mapping[str, Any], name: bytes) -> list[str]:
    """All values of a request header, by its name in lower case, as ASGI servers give names."""
    return [value.decode("latin-1").strip() for key, value in scope["headers"] if key == name]


def shown(values: list[str], *, without: str = "(none)") -> str:
    """The sent values for a sentence: printable, and not long; `without` if there is none."""
    text = ", ".join(values) or without
    return "".join(c if c.isascii() and c.isprintable() else "?" for c in text[:_SHOWN])


def origins(scope: Mapping[str, Any]) -> list[str]:
    """The values of Origin. A page with `Referrer-Policy: no-referrer`, which some proxies add to all
    answers, sends `null`; it says nothing where Sec-Fetch-Site says that the page is of the same origin.

    https://fetch.spec.whatwg.org/#append-a-request-origin-header
    """
    found = headers_named(scope, b"origin")
    is_same = set(headers_named(scope, b"sec-fetch-site")) == {"same-origin"}
    return [origin for origin in found if not (is_same and origin == "null")]
