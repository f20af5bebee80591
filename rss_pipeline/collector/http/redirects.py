"""Redirects: the URL that a Location names, and the chain of URLs that one visit follows.

No I/O. `collector.schedule.permanent_redirects` decides whether a feed keeps its new address.
"""

from dataclasses import dataclass
from urllib.parse import urljoin

from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import Head
from rss_pipeline.collector.http.request_url import DEFAULT_PORTS, RequestUrl, percent_encoded, request_url

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PERMANENT = frozenset({301, 308})
"""RFC 9110 15.4.2 and 15.4.9: the client is to use the new URL from then on."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """A redirect as it was received."""

    location: str | None
    permanent: bool


def redirect_of(status: int, head: Head) -> Redirect | None:
    """The redirect in a response; None if it is none."""
    return Redirect(head.first("location"), status in _PERMANENT) if status in _REDIRECTS else None


def redirect_target(here: RequestUrl, location: str | None) -> RequestUrl:
    """The URL that a Location names, resolved against `here` (RFC 9110 10.2.2), without its userinfo.

    `location` is the header's bytes as Latin-1 text. Raises `FetchError`: redirect, or bad_url for a scheme
    other than http(s).
    """
    raw = (location or "").strip().encode("latin-1", "replace")
    if not raw:
        raise FetchError("redirect", f"{here.host} redirects without a Location.")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = percent_encoded(raw).decode("ascii")
    try:
        url = urljoin(here.url, text)
    except ValueError:
        raise FetchError("redirect", f"{here.host} redirects to a Location that is not a URL.") from None
    scheme = url.partition(":")[0].lower()
    try:
        return request_url(url)
    except FetchError as error:
        if scheme in DEFAULT_PORTS:
            raise FetchError("redirect", f"{here.host} redirects to a Location that is not a URL.") from None
        raise FetchError("bad_url", f"{here.host} redirects to another scheme: {error.message}") from None


class RedirectChain:
    """The URLs of one visit: the first one, and each one it was redirected to."""

    def __init__(self, start: RequestUrl, *, most: int) -> None:
        self._seen = {start.url}
        self._most = most
        self._temporary = False

    @property
    def is_permanent(self) -> bool:
        """True if there were redirects and all of them were permanent."""
        return len(self._seen) > 1 and not self._temporary

    def follow(self, here: RequestUrl, redirect: Redirect) -> RequestUrl:
        """The next URL. Raises `FetchError`, also for a loop and for more than `most` redirects."""
        there = redirect_target(here, redirect.location)
        if there.url in self._seen:
            raise FetchError("redirect", f"{here.host} redirects in a loop.")
        if len(self._seen) > self._most:
            raise FetchError("redirect", f"More than {self._most} redirects.")
        self._seen.add(there.url)
        self._temporary |= not redirect.permanent
        return there
