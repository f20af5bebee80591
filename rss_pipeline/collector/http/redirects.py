"""Redirects: the URL that a Location names, and the chain of requests that one visit follows.

No I/O. `collector.schedule.permanent_redirects` decides whether a feed keeps its new address.
"""

from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urljoin

from rss_pipeline.collector.http.cookies import CookieJar
from rss_pipeline.collector.http.fetch_error import FetchError
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
    head: Head = field(repr=False)


def redirect_of(status: int, head: Head) -> Redirect | None:
    """The redirect in a response; None if it is none."""
    return Redirect(head.first("location"), status in _PERMANENT, head) if status in _REDIRECTS else None


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
    """The requests of one visit: to the first URL, and to each one it was redirected to, with the cookies
    that the redirects have set."""

    def __init__(self, start: RequestUrl, *, most: int) -> None:
        self._requested: set[tuple[str, tuple[str, ...]]] = {(start.url, ())}
        self._urls = {start.url}
        self._most = most
        self._hops = 0
        self._temporary = False
        self._jar = CookieJar()

    @property
    def is_permanent(self) -> bool:
        """True if there were redirects and all of them were permanent."""
        return self._hops > 0 and not self._temporary

    def follow(self, here: RequestUrl, redirect: Redirect, *, now: datetime) -> RequestUrl:
        """The next URL. Raises `FetchError`, also for a loop and for more than `most` redirects.

        A URL may be requested again with other cookies. It then leads elsewhere by these alone, so its
        redirect is not permanent.
        """
        there = redirect_target(here, redirect.location)
        self._jar.take(here, redirect.head, now=now)
        request = (there.url, self.cookies(there))
        if request in self._requested:
            with_cookies = ", also with the cookies that it set" if request[1] else ""
            raise FetchError("redirect", f"{here.host} redirects in a loop{with_cookies}.")
        if self._hops == self._most:
            raise FetchError("redirect", f"More than {self._most} redirects.")
        self._hops += 1
        self._temporary |= not redirect.permanent or there.url in self._urls
        self._requested.add(request)
        self._urls.add(there.url)
        return there

    def resume(self, there: RequestUrl, *, is_permanent: bool) -> None:
        """Go on where a redirect of an earlier visit has led."""
        self._hops += 1
        self._temporary |= not is_permanent
        self._requested.add((there.url, ()))
        self._urls.add(there.url)

    def cookies(self, there: RequestUrl) -> tuple[str, ...]:
        """The cookies for the next request, each as `name=value`: never for the first one of a visit."""
        return tuple(self._jar.pairs(there))
