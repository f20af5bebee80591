"""The names of the reader, and where a request comes from: the Host header, proxies, other sites' pages.

A layer refuses requests for other names (DNS rebinding, links in answers). Which of our writes need a page of
our own is decided by auth.py: a browser sends only a cookie at the request of a foreign page.
"""

from collections.abc import Collection
from ipaddress import ip_address

from rss_pipeline.api.asgi import ASGIApp, Receive, Scope, Send, header
from rss_pipeline.api.problems import ApiError
from rss_pipeline.settings import Settings
from rss_pipeline.web.authority import (
    Authority,
    headers_named,
    origins,
    own_authorities,
    read_authority,
    read_origin,
)

EVERY_ADDRESS = "0.0.0.0"
UNKNOWN = "unknown"
_MOST_KNOWN = 100
_PROTO = b"x-forwarded-proto"


class OwnHosts:
    """An ASGI application that passes on to `app` the requests for one of the names `own`."""

    def __init__(self, app: ASGIApp, *, own: Collection[Authority]) -> None:
        self._app = app
        self._own = own
        self._known: set[bytes] = set()
        """Own names as they were sent. Upper case makes many of one."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_own(scope):
            refused = ApiError("wrong_host", "The Host header is no name of this server.")
            await refused.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_own(self, scope: Scope) -> bool:
        hosts = [value for name, value in scope["headers"] if name == b"host"]
        if len(hosts) != 1:
            return False
        if hosts[0] in self._known:
            return True
        is_own = read_authority(hosts[0].decode("latin-1").strip()) in self._own
        if is_own and len(self._known) < _MOST_KNOWN:
            self._known.add(hosts[0])
        return is_own


class ForwardedProto:
    """An ASGI application that passes on to `app` requests with one X-Forwarded-Proto at most, in lower case.

    Of several proxies each may add its own, to the list or as a header more. The leftmost is that of the
    client. Whether the proxy is trusted is seen by the layer behind this one.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = ",".join(headers_named(scope, _PROTO)) if scope["type"] == "http" else ""
        first = given.partition(",")[0].strip().lower()
        if first != given:
            others = [each for each in scope["headers"] if each[0] != _PROTO]
            # In its place: the layers in front look at the same scope.
            scope["headers"] = [*others, (_PROTO, first.encode("latin-1"))]
        await self._app(scope, receive, send)


def own_hosts(settings: Settings) -> frozenset[Authority]:
    """All names of the reader: those of the loopback interface, its address, those of RSS_READER_HOSTS."""
    names = list(settings.reader_hosts)
    address = read_authority(f"{settings.reader_address}:{settings.reader_port}")
    if address is not None and settings.reader_address != EVERY_ADDRESS:
        names.append(address)
    return own_authorities(settings.reader_port, names)


def places(settings: Settings) -> list[str]:
    """The reader's URLs: by its names, or else that on this machine."""
    if settings.reader_hosts:
        scheme = "https" if settings.reader_proxies else "http"
        return [f"{scheme}://{name}" for name in settings.reader_hosts]
    return [own_url(settings)]


def own_url(settings: Settings) -> str:
    """The reader's URL on this machine."""
    address = settings.reader_address
    return f"http://{'127.0.0.1' if address == EVERY_ADDRESS else address}:{settings.reader_port}"


def client_address(scope: Scope) -> str:
    """The IP address of the client, or of the last proxy that is not ours; `unknown` for none.

    IPv4 addresses in IPv6 are IPv4: a client would have two of them.
    """
    client = scope.get("client")
    try:
        address = ip_address(client[0] if client else "")
    except ValueError:
        return UNKNOWN
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def is_https(scope: Scope) -> bool:
    """True for a client that uses https, as far as to a proxy of ours."""
    return bool(scope.get("scheme") == "https")


def is_of_own_page(scope: Scope) -> bool:
    """True for a request that a browser says a page of this server has sent.

    By Sec-Fetch-Site and Origin, of which one must be there: browsers send Origin with every write, and no
    page can change either. https://www.w3.org/TR/fetch-metadata/
    """
    sites = headers_named(scope, b"sec-fetch-site")
    sent_from = origins(scope)
    if any(site != "same-origin" for site in sites):
        return False
    host = read_authority(header(scope, b"host") or "")
    if any(read_origin(origin) != host for origin in sent_from):
        return False
    if is_https(scope) and any(origin.lower().startswith("http:") for origin in sent_from):
        return False
    return bool(sites or sent_from)


def is_of_foreign_page(scope: Scope) -> bool:
    """True for a request that a browser says a page of another site has sent; programs send none of both."""
    has_said = bool(headers_named(scope, b"sec-fetch-site") or headers_named(scope, b"origin"))
    return has_said and not is_of_own_page(scope)
