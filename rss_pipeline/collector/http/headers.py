"""Strict readers of response headers: freshness, requested waits, content codings, charset. Pure functions.

Request headers are sent in `client.py`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DAY_SECONDS = 86_400
_MAX_DELTA_SECONDS = 2**31
"""The value that a larger number counts as (RFC 9111 1.2.2); it also fits a column of 64 bits."""

_CODINGS = frozenset(
    ("br", "bzip2", "compress", "dcb", "dcz", "deflate", "exi", "gzip", "lz4", "lzma", "xz", "zstd")
)
"""The content codings; other values of Content-Encoding are ignored, as browsers do. Servers send a charset
there, a media type, `binary`, or what an upload to S3 left."""


class Head:
    """The header fields of a response. Values are Latin-1 text, which encodes back to the same bytes."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in raw:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def first(self, name: str) -> str | None:
        """The first field of that lower-case name; None if it is missing or empty."""
        return self._values.get(name, [""])[0] or None

    def all(self, name: str) -> tuple[str, ...]:
        """The values of all fields of that lower-case name."""
        return tuple(self._values.get(name, ()))

    def list(self, name: str) -> str | None:
        """All fields of that name joined as one list (RFC 9110 5.3); None if there is none."""
        values = self._values.get(name)
        return None if values is None else ", ".join(values)


def http_date(text: str | None) -> datetime | None:
    """An HTTP-date in any of its three forms (RFC 9110 5.6.7) as a UTC instant, or None.

    A year of four digits is that year, also year 1, the zero of Go and .NET. One that is too early or too
    late for a datetime counts as the first or the last instant that there is.
    """
    if text is None:
        return None
    if (year := _YEAR.match(text)) is not None and not 100 <= (number := int(year[1] or year[2])) < 9999:
        return _FIRST if number < 100 else _LAST
    try:
        value = parsedate_to_datetime(text.strip())
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_YEAR = re.compile(
    r"\A\s*+(?:(?:[a-z]++,\s*+)?[0-9]{1,2}[ -][a-z]++[ -](-?[0-9]{3,9})\b"
    r"|[a-z]++\s++[a-z]++\s++[0-9]{1,2}\s++[0-9:]++\s++(-?[0-9]{3,9})\b)",
    re.IGNORECASE,
)
"""The year of an HTTP-date, if it has more than two digits: those of asctime are at its end."""


def parse_retry_after(text: str | None, *, now: datetime) -> int | None:
    """Seconds to stay away, 0 to 86,400, from seconds or an HTTP-date (RFC 9110 10.2.3), or None.

    Some servers send a unit, parameters, several numbers (the longest wait counts), a Unix time, or a date in
    ISO 8601.
    """
    text = (text or "").strip()
    if number := _SECONDS.fullmatch(text):
        return _wait(number[1], now=now)
    if _NUMBERS.fullmatch(text):
        return max(_wait(number, now=now) for number in text.split(","))
    date = http_date(text)
    if date is None and re.match(r"[0-9]{4}-", text):
        with suppress(ValueError):
            date = datetime.fromisoformat(text)
    return None if date is None else _until(date, now=now)


_SECONDS = re.compile(r"\A([0-9]++(?:\.[0-9]*)?)\s*(?:s|sec|secs|seconds?)?(?:;.*)?", re.IGNORECASE)
_NUMBERS = re.compile(r"\A[0-9]++(?:, ?[0-9]++)++")


def requested_wait(status: int, head: Head, *, now: datetime) -> int | None:
    """Seconds to stay away, 0 to 86,400, as a response requests them; None if it does not.

    By Retry-After, or of a refusal without a useful one (0 is no invitation to ask at once) by the end of its
    rate limit: x-ratelimit-reset has seconds (Reddit, the IETF's draft) or a Unix time (GitHub); RateLimit
    has the numbers in one field.
    """
    waits = [parse_retry_after(text, now=now) for text in head.all("retry-after")]
    wait = max((each for each in waits if each is not None), default=None)
    if wait or not (status == 429 or status in _REFUSALS):
        return wait
    limits = head.list("ratelimit") or ""
    left = [*map(head.first, _LEFT), *_LEFT_IN_LIMITS.findall(limits)]
    is_used_up = any(each and each.partition(",")[0].strip().strip("0") in {"", "."} for each in left)
    if status != 429 and not is_used_up:
        return wait
    found = [*map(head.first, _RESETS), *_RESET_IN_LIMITS.findall(limits)]
    resets = (_reset_seconds(each, now=now) for each in found)
    return next((seconds for seconds in resets if seconds), wait)


_REFUSALS = frozenset({403, 503})
_RESETS = ("x-ratelimit-reset", "x-rate-limit-reset", "ratelimit-reset", "x-ratelimit-reset-after")
_LEFT = ("x-ratelimit-remaining", "x-rate-limit-remaining", "ratelimit-remaining")
_LEFT_IN_LIMITS = re.compile(r"\b(?:r|remaining)\s*+=\s*+([0-9]++)")
_RESET_IN_LIMITS = re.compile(r"\b(?:t|reset)\s*+=\s*+([0-9]++)")
"""In the draft's one field: `limit=10, remaining=0, reset=30`, later `"default";r=0;t=30`."""
_UNIX_TIME = 1_000_000_000
"""A larger number is an instant; in seconds it would be 31 years."""
_LATEST = 100_000_000_000_000
"""No instant in milliseconds is beyond the year 5138: such a number is a long time."""


def _reset_seconds(text: str | None, *, now: datetime) -> int | None:
    # Of several numbers the first: the others are those of its windows.
    number = re.match(r"[0-9]+(?:\.[0-9]*)?(?![-:0-9])", (text or "").strip())
    return parse_retry_after(text, now=now) if number is None else _wait(number[0], now=now)


def _wait(number: str, *, now: datetime) -> int:
    """The seconds until what a number says: seconds, a Unix time, or one in milliseconds."""
    # A number of any length is legal: compare it as a float before it is converted.
    seconds = float(number)
    if _UNIX_TIME <= seconds < _LATEST:
        seconds = (seconds / 1000 if seconds >= _UNIX_TIME * 1000 else seconds) - now.timestamp()
    return math.ceil(min(max(seconds, 0.0), DAY_SECONDS))


def _until(date: datetime, *, now: datetime) -> int:
    date = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
    return min(max(math.ceil((date - now).total_seconds()), 0), DAY_SECONDS)


def cache_directives(text: str | None) -> dict[str, str | None]:
    """Cache-Control's directives, lower-case, the first of each name; None for one without a value."""
    directives: dict[str, str | None] = {}
    for match in re.finditer(r'([^\s,=]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,]*)))?', text or ""):
        name, quoted, token = match.groups()
        directives.setdefault(name.lower(), token if quoted is None else quoted)
    return directives


def fresh_seconds(head: Head, *, now: datetime) -> int | None:
    """Seconds from now for which the response is fresh (RFC 9111 4.2.1); None if it does not say.

    `no-cache`, `no-store` and an Expires that is not a date give 0. s-maxage is ignored: it is for shared
    caches.
    """
    directives = cache_directives(head.list("cache-control"))
    if "no-store" in directives or ("no-cache" in directives and directives["no-cache"] is None):
        return 0
    max_age = directives.get("max-age") or ""
    if re.fullmatch(r"[0-9]+", max_age):
        age = head.first("age") or ""
        spent = _delta(age) if re.fullmatch(r"[0-9]+", age.strip()) else 0
        return max(_delta(max_age) - spent, 0)
    expires = head.first("expires")
    if expires is None:
        return None
    until = http_date(expires)
    if until is None:
        return 0
    date = http_date(head.first("date")) or now
    return min(max(int((until - date).total_seconds()), 0), _MAX_DELTA_SECONDS)


def seconds_ahead(head: Head, *, now: datetime) -> int | None:
    """Seconds by which `now` is ahead of an answer's Date, less those that it lay in a cache (Age); None
    where it has no Date."""
    date = http_date(head.first("date"))
    if date is None:
        return None
    age = (head.first("age") or "").strip()
    return int((now - date).total_seconds()) - (_delta(age) if re.fullmatch(r"[0-9]+", age) else 0)


def charset_of(content_type: str | None) -> str:
    """The charset parameter of a Content-Type, lower case, without quotes; "" if there is none."""
    match = re.search(r';\s*charset\s*=\s*(?:"([^"]*)"|\'([^\']*)\'|([^\s;]*))', content_type or "", re.I)
    return "" if match is None else next((group for group in match.groups() if group), "").strip().lower()


def content_codings(text: str | None) -> list[str]:
    """The codings of a Content-Encoding, in the order they were applied; what is none is left out."""
    tokens = (token.partition(";")[0].strip(" \t\"'").lower() for token in (text or "").split(","))
    return [coding for token in tokens if (coding := token.removeprefix("x-")) in _CODINGS]


def extra_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """The extra headers of a feed in feeds.yaml, as they are sent; `REFUSED_HEADERS` are left out."""
    return [
        (name.strip().encode(), value.encode())
        for name, value in headers.items()
        if name.strip().lower() not in REFUSED_HEADERS
    ]


def _delta(digits: str) -> int:
    return int(min(float(digits), _MAX_DELTA_SECONDS))


# The request headers that feeds.yaml cannot set, each with its reason. The registry refuses them in the file,
# and the HTTP client never sends one that a feed brings.

_CONDITIONAL = "rss-pipeline sets it from the last response"
_CONNECTION = "it belongs to the connection, not to a feed"

REFUSED_HEADERS: Mapping[str, str] = {
    "accept-encoding": "rss-pipeline accepts only codings that it reads within its size limit",
    "connection": _CONNECTION,
    "content-length": _CONNECTION,
    "expect": _CONNECTION,
    "host": "it is taken from the URL; write the right host name there",
    "if-match": _CONDITIONAL,
    "if-modified-since": _CONDITIONAL,
    "if-none-match": _CONDITIONAL,
    "if-range": _CONDITIONAL,
    "if-unmodified-since": _CONDITIONAL,
    "keep-alive": _CONNECTION,
    "proxy-authorization": "it is for a proxy; write the password into RSS_PROXY",
    "proxy-connection": _CONNECTION,
    "range": "a feed is always read completely",
    "referer": "no page links to the request of a feed reader; publishers treat it as spam",
    "te": _CONNECTION,
    "trailer": _CONNECTION,
    "transfer-encoding": _CONNECTION,
    "upgrade": _CONNECTION,
}
"""Reasons by lower-case name, as the end of a sentence. A promise of the client depends on each of them."""
