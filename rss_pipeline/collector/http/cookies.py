"""The cookies of one chain of redirects: some servers answer nobody who does not send theirs back.

They are in memory for one chain, and stored and logged nowhere. The first request carries none, nor does a
request to another host. RFC 6265 without Domain: a cookie never goes to a host that did not set it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from rss_pipeline.collector.http.headers import Head, http_date
from rss_pipeline.collector.http.request_url import DEFAULT_PORTS, RequestUrl

MOST_COOKIES = 20
MOST_BYTES = 8_192
"""Names and values of all cookies together; many servers refuse a request with a header of 8 KB."""

_NOT_ALLOWED = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

_Key = tuple[str, int | None, str, str]
"""Host, port, path, name. The port is None for that of the scheme: 80 and 443 are one site."""


@dataclass(frozen=True, slots=True)
class _Cookie:
    pair: str = field(repr=False)
    needs_tls: bool


class CookieJar:
    """The cookies that the responses of one chain have set."""

    def __init__(self) -> None:
        self._cookies: dict[_Key, _Cookie] = {}

    def take(self, here: RequestUrl, head: Head, *, now: datetime) -> None:
        """Keep the cookies that the response of `here` sets, up to the limits; others are ignored."""
        for line in head.all("set-cookie"):
            pair, *attributes = line.split(";")
            name, equals, value = (part.strip(" \t") for part in pair.partition("="))
            if not equals or not name or _NOT_ALLOWED.search(line):
                continue
            given = dict(map(_attribute, attributes))
            path = given.get("path", "")
            key = (*_site(here), path if path.startswith("/") else _folder(here), name)
            self._cookies.pop(key, None)
            if not _has_expired(given, now):
                # Over TLS it may hold what nobody on the way may read.
                self._cookies[key] = _Cookie(
                    f"{name}={value}", needs_tls=here.scheme == "https" or "secure" in given
                )
                if len(self._cookies) > MOST_COOKIES or self._size() > MOST_BYTES:
                    del self._cookies[key]

    def pairs(self, there: RequestUrl) -> list[str]:
        """The cookies for a request to `there`, each as `name=value`; those of longer paths first."""
        path = _path(there)
        found = [
            (len(key[2]), cookie.pair)
            for key, cookie in self._cookies.items()
            if key[:2] == _site(there)
            and (there.scheme == "https" or not cookie.needs_tls)
            and _matches(path, key[2])
        ]
        return [pair for _, pair in sorted(found, key=lambda each: -each[0])]

    def _size(self) -> int:
        return sum(len(cookie.pair) + len("; ") for cookie in self._cookies.values())


def with_cookies(headers: list[tuple[bytes, bytes]], pairs: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """The headers of a request with these cookies, in one header with those of feeds.yaml (RFC 6265 5.4)."""
    if not pairs:
        return headers
    names = {pair.partition("=")[0] for pair in pairs}
    own = [
        pair.strip()
        for name, value in headers
        if name.lower() == b"cookie"
        for pair in value.decode("latin-1").split(";")
        # The server has replaced it by its own.
        if pair.strip() and pair.partition("=")[0].strip() not in names
    ]
    others = [(name, value) for name, value in headers if name.lower() != b"cookie"]
    return [*others, (b"Cookie", "; ".join([*own, *pairs]).encode("latin-1"))]


def _site(url: RequestUrl) -> tuple[str, int | None]:
    return url.host, None if url.port == DEFAULT_PORTS[url.scheme] else url.port


def _path(url: RequestUrl) -> str:
    return url.target.decode("latin-1").partition("?")[0]


def _folder(url: RequestUrl) -> str:
    """The path of a cookie that names none (RFC 6265 5.1.4)."""
    return _path(url).rpartition("/")[0] or "/"


def _matches(path: str, of_cookie: str) -> bool:
    """RFC 6265 5.1.4."""
    return path == of_cookie or path.startswith(of_cookie if of_cookie.endswith("/") else f"{of_cookie}/")


def _attribute(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip()


def _has_expired(attributes: dict[str, str], now: datetime) -> bool:
    """True for a cookie by which the server removes it (RFC 6265 5.3)."""
    max_age = attributes.get("max-age", "")
    if re.fullmatch(r"-?[0-9]+", max_age):
        return max_age.startswith("-") or not max_age.strip("0")
    expires = http_date(attributes.get("expires"))
    return expires is not None and expires <= now
