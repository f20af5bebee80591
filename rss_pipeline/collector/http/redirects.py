"""Redirects: the URL that a Location names, and the chain of URLs that one visit follows.

No I/O. `collector.schedule.permanent_redirects` decides whether a feed keeps its new address.
"""

from urllib.parse import urljoin

from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.request_url import DEFAULT_PORTS, RequestUrl, percent_encoded, request_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
"""RFC 9110 15.4.2 and 15.4.9: the client is to use the new URL from then on."""


def redirect_target(here: RequestUrl, location: str | None) -> RequestUrl:
    """Where a Location leads from `here` (RFC 9110 10.2.2). Userinfo in it is dropped unread.

    `location` is Latin-1 text, byte for byte. Raises `FetchError`: redirect, or bad_url for its scheme.
    """
    raw = (location or "").strip().encode("latin-1", "replace")
    if not raw:
        raise FetchError("redirect", f"{here.host} redirects without saying where to.")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = percent_encoded(raw).decode("ascii")
    try:
        url = urljoin(here.url, text)
    except ValueError:
        raise FetchError("redirect", f"{here.host} redirects to something that is no URL.") from None
    scheme = url.partition(":")[0].lower()
    try:
        return request_url(url)
    except FetchError as trouble:
        if scheme in DEFAULT_PORTS:
            raise FetchError("redirect", f"{here.host} redirects to something that is no URL.") from None
        raise FetchError("bad_url", f"{here.host} redirects elsewhere: {trouble.message}") from None


class RedirectChain:
    """The URLs that one visit was redirected along, from its first hop on."""

    def __init__(self, start: RequestUrl, *, most: int) -> None:
        self._seen = {start.url}
        self._most = most
        self._temporary = False

    @property
    def is_permanent(self) -> bool:
        """Redirects were followed, and all of them were permanent."""
        return len(self._seen) > 1 and not self._temporary

    def follow(self, here: RequestUrl, location: str | None, *, permanent: bool = False) -> RequestUrl:
        """The next hop. Raises `FetchError`, also for a circle and for more than `most` redirects."""
        there = redirect_target(here, location)
        if there.url in self._seen:
            raise FetchError("redirect", f"{here.host} redirects in a circle.")
        if len(self._seen) > self._most:
            raise FetchError("redirect", f"More than {self._most} redirects.")
        self._seen.add(there.url)
        self._temporary |= not permanent
        return there
