"""One hop of a visit: an http(s) URL taken apart, and where a redirect leads.

No I/O. This is the one place where a hop is checked before anything is sent to it.
"""

import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urljoin

import httpx
import idna

from rss_pipeline.collector.http.errors import Trouble, bad_host

_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:.]+")
"""Labels of a name (RFC 1035 2.3.4; underscores are met in the wild), or an IPv6 address."""

_NUMERIC = re.compile(r"[0-9a-fx.]*[0-9a-f]\.?", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A URL that may be asked."""

    url: str
    """As it was given, without userinfo and fragment."""
    scheme: str
    host: str
    """As it is resolved: lower case, IDNA, an IPv4 address with four decimal numbers. What pacing and holds
    go by."""
    port: int
    target: bytes = field(repr=False)
    """Path and query exactly as given; only what HTTP cannot carry is percent-encoded."""
    address: httpx.URL = field(repr=False, compare=False)

    @property
    def origin(self) -> tuple[str, str, int]:
        return (self.scheme, self.host, self.port)

    @property
    def site(self) -> bytes:
        """Scheme and authority, as a Referer names them."""
        return self.scheme.encode() + b"://" + self.address.netloc


def hop(url: str) -> Hop:
    """Take a URL apart. Raises `Trouble` of kind bad_url, whose text repeats no more than the host."""
    match = re.fullmatch(
        r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#\\]*)((?:[/?][^#]*)?)(?:#.*)?)?", url, re.DOTALL
    )
    if match is None:
        raise Trouble(
            "bad_url", "This is no absolute URL.", advice="Write http://... or https://... in feeds.yaml."
        )
    scheme, authority, target = match[1].lower(), match[2] or "", match[3] or ""
    if scheme not in _PORTS:
        raise Trouble("bad_url", f"{scheme[:20]}: is not asked for; only http:// and https:// are.")
    authority = authority.rpartition("@")[2]
    try:
        address = httpx.URL(f"{scheme}://{_plain(authority)}/")
        host = address.raw_host.decode("ascii")
        port = _PORTS[scheme] if address.port is None else address.port
    except (httpx.InvalidURL, ValueError):
        raise bad_host(authority) from None
    if not _HOST.fullmatch(host) or len(host) > 253 or not 0 < port < 65_536:
        raise bad_host(authority)
    if not target.startswith("/"):
        target = f"/{target}"
    return Hop(
        url=f"{match[1]}://{authority}{match[3] or ''}",
        scheme=scheme,
        host=host,
        port=port,
        target=_encoded(target.encode("utf-8", "surrogatepass")),
        address=address,
    )


def _plain(authority: str) -> str:
    """Host and port with the host spelt the one way in which it is checked and asked, as browsers do it.

    Full-width digits, circled letters and kin are mapped (UTS 46); 127.1, 0x7f.1, 0177.0.0.1 and 2130706433
    are the address they mean to the system. Raises ValueError for what IDNA does not allow.
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


def redirected(here: Hop, location: str | None) -> Hop:
    """Where a Location leads from `here` (RFC 9110 10.2.2). Userinfo in it is dropped unread.

    `location` is Latin-1 text, byte for byte. Raises `Trouble`: redirect, or bad_url for its scheme.
    """
    raw = (location or "").strip().encode("latin-1", "replace")
    if not raw:
        raise Trouble("redirect", f"{here.host} redirects without saying where to.")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = _encoded(raw).decode("ascii")
    try:
        url = urljoin(here.url, text)
    except ValueError:
        raise Trouble("redirect", f"{here.host} redirects to something that is no URL.") from None
    scheme = url.partition(":")[0].lower()
    try:
        return hop(url)
    except Trouble as trouble:
        if scheme in _PORTS:
            raise Trouble("redirect", f"{here.host} redirects to something that is no URL.") from None
        raise Trouble("bad_url", f"{here.host} redirects elsewhere: {trouble.message}") from None


REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
"""RFC 9110 15.4.2 and 15.4.9: whoever asked is to use the new URL from then on."""


class Trail:
    """The URLs that one visit was redirected along, from its first hop on."""

    def __init__(self, start: Hop, *, most: int) -> None:
        self._seen = {start.url}
        self._most = most
        self._temporary = False

    @property
    def is_permanent(self) -> bool:
        """Redirects were followed, and all of them were permanent."""
        return len(self._seen) > 1 and not self._temporary

    def follow(self, here: Hop, location: str | None, *, permanent: bool = False) -> Hop:
        """The next hop. Raises `Trouble`, also for a circle and for more than `most` redirects."""
        there = redirected(here, location)
        if there.url in self._seen:
            raise Trouble("redirect", f"{here.host} redirects in a circle.")
        if len(self._seen) > self._most:
            raise Trouble("redirect", f"More than {self._most} redirects.")
        self._seen.add(there.url)
        self._temporary |= not permanent
        return there


def _encoded(target: bytes) -> bytes:
    return b"".join(bytes([b]) if 0x20 < b < 0x7F else b"%%%02X" % b for b in target)
