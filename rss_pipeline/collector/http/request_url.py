"""The URL of one request: an http(s) URL split into what a connection and a request line need.

No I/O, and no decision on whether its address is allowed (`address_policy.py`). Every URL that is requested,
registered or redirected to, is checked here first. Redirects are followed in `redirects.py`.
"""

import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import idna

from rss_pipeline.collector.http.fetch_error import FetchError, bad_host

if TYPE_CHECKING:
    from rss_pipeline.httpx_without_cli import httpx

DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"[a-z0-9_-]{1,63}+(?:\.[a-z0-9_-]{1,63}+)*+\.?|[0-9a-f:.]+")
"""Labels of a name (RFC 1035 2.3.4; underscores occur in practice), or an IPv6 address."""

_NUMERIC = re.compile(r"\A[0-9a-fx.]*[0-9a-f]\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUrl:
    """A valid http(s) URL, split for a request."""

    url: str
    """The URL as given, without userinfo and fragment."""
    scheme: str
    host: str
    """The host as it is resolved: lower case, IDNA, an IPv4 address with four decimal numbers. The key of
    pacing and holds."""
    port: int
    target: bytes = field(repr=False)
    """Path and query exactly as given; only bytes that HTTP does not allow are percent-encoded."""
    address: "httpx.URL" = field(repr=False, compare=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        return (self.scheme, self.host, self.port)

    @property
    def wire_url(self) -> str:
        """The URL as it is requested, the same for all spellings of host and port that make one request."""
        return (self.site + self.target).decode("ascii")

    @property
    def site(self) -> bytes:
        """Scheme and authority, as in a Referer."""
        return self.scheme.encode() + b"://" + self.address.netloc


# A visit splits the URL of its feed for the hosts that it opens, for its origin and for its request.
@lru_cache(maxsize=1_000)
def request_url(url: str) -> RequestUrl:
    """Split a URL. Raises `FetchError` (bad_url) with a message that repeats at most the host."""
    # Here, for commands that split no URL start a tenth faster without it.
    from rss_pipeline.httpx_without_cli import httpx

    match = re.fullmatch(
        r"\A([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#\\]*)((?:[/?][^#]*)?)(?:#.*)?)?", url, re.DOTALL
    )
    if match is None:
        raise FetchError(
            "bad_url", "This is not an absolute URL.", advice="It begins with http:// or https://."
        )
    scheme, authority, target = match[1].lower(), match[2] or "", match[3] or ""
    if scheme not in DEFAULT_PORTS:
        raise FetchError("bad_url", f"{scheme[:20]}: URLs are not requested, only http:// and https:// are.")
    authority = authority.rpartition("@")[2]
    try:
        address = httpx.URL(f"{scheme}://{_plain(authority)}/")
        host = address.raw_host.decode("ascii")
        port = DEFAULT_PORTS[scheme] if address.port is None else address.port
    except (httpx.InvalidURL, ValueError):
        raise bad_host(authority) from None
    if not _HOST.fullmatch(host) or len(host) > 253 or not 0 < port < 65_536:
        raise bad_host(authority)
    if not target.startswith("/"):
        target = f"/{target}"
    return RequestUrl(
        url=f"{match[1]}://{authority}{match[3] or ''}",
        scheme=scheme,
        host=host,
        port=port,
        target=percent_encoded(target.encode("utf-8", "surrogatepass")),
        address=address,
    )


def _plain(authority: str) -> str:
    """Host and port, with the host in the one form that is checked and requested, as browsers do.

    Full-width digits, circled letters and the like are mapped (UTS 46); 127.1, 0x7f.1, 0177.0.0.1 and
    2130706433 become the address that the system takes them for. Raises ValueError for a host that IDNA does
    not allow.
    """
    if authority.startswith("["):
        return authority
    host, colon, port = authority.partition(":")
    if not host.isascii():
        host = idna.encode(host, uts46=True).decode("ascii")
    if _NUMERIC.fullmatch(host):
        with suppress(OSError):
            host = socket.inet_ntoa(socket.inet_aton(host.removesuffix(".")))
    return f"{host}{colon}{port}"


def percent_encoded(target: bytes) -> bytes:
    return b"".join(bytes([b]) if 0x20 < b < 0x7F else b"%%%02X" % b for b in target)
