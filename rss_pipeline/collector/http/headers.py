"""What headers say, read strictly: freshness, Retry-After, codings, charset. Pure functions.

Sending them is `http.py`.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

DAY_SECONDS = 86_400
_MAX_DELTA_SECONDS = 2**31
"""RFC 9111 1.2.2: what a larger number counts as; it also keeps within a column's 64 bits."""

_IDENTITY = frozenset({"", "identity", "none", "utf-8", "utf8", "aws-chunked"})
"""Not codings, but met in the wild where a charset was meant, or left over from an upload to S3; browsers
ignore them as well."""


class Head:
    """An answer's header fields. Values are Latin-1 text, which gives every byte back as it came."""

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in raw:
            self._values.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))

    def first(self, name: str) -> str | None:
        """The first field of that lower-case name; None where it is missing or empty."""
        return self._values.get(name, [""])[0] or None

    def list(self, name: str) -> str | None:
        """All fields of that name joined as one list (RFC 9110 5.3); None where there is none."""
        values = self._values.get(name)
        return None if values is None else ", ".join(values)


def http_date(text: str | None) -> datetime | None:
    """An HTTP-date in any of its three forms (RFC 9110 5.6.7) as a UTC instant, or None."""
    if text is None:
        return None
    try:
        value = parsedate_to_datetime(text.strip())
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def parse_retry_after(text: str | None, *, now: datetime) -> int | None:
    """Seconds to stay away, 0 to 86,400, from seconds or an HTTP-date (RFC 9110 10.2.3), or None."""
    if text is None:
        return None
    text = text.strip()
    if re.fullmatch(r"[0-9]+(\.[0-9]*)?", text):
        # Digits without end are legal: compare as a float before anything is made of them.
        return math.ceil(min(float(text), DAY_SECONDS))
    date = http_date(text)
    if date is None:
        return None
    return min(max(math.ceil((date - now).total_seconds()), 0), DAY_SECONDS)


def cache_directives(text: str | None) -> dict[str, str | None]:
    """Cache-Control's directives, lower-case, the first of each name; None for one without a value."""
    directives: dict[str, str | None] = {}
    for match in re.finditer(r'([^\s,=]+)\s*(?:=\s*(?:"([^"]*)"|([^\s,]*)))?', text or ""):
        name, quoted, token = match.groups()
        directives.setdefault(name.lower(), token if quoted is None else quoted)
    return directives


def fresh_seconds(head: Head, *, now: datetime) -> int | None:
    """How long the answer says it stays fresh, from now on (RFC 9111 4.2.1); None where it says nothing.

    `no-cache` and `no-store` are 0, as is an Expires that is no date. s-maxage is for shared caches.
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


def charset_of(content_type: str | None) -> str:
    """The charset parameter of a Content-Type, lower case, without quotes; "" where there is none."""
    match = re.search(r';\s*charset\s*=\s*(?:"([^"]*)"|\'([^\']*)\'|([^\s;]*))', content_type or "", re.I)
    return "" if match is None else next((group for group in match.groups() if group), "").strip().lower()


def content_codings(text: str | None) -> list[str]:
    """The codings of a Content-Encoding, in the order they were applied, `identity` left out."""
    codings = (token.strip().lower() for token in (text or "").split(","))
    return ["gzip" if coding == "x-gzip" else coding for coding in codings if coding not in _IDENTITY]


OURS: frozenset[str] = frozenset(
    {
        "host",
        "connection",
        "accept-encoding",
        "content-length",
        "transfer-encoding",
        "te",
        "upgrade",
        "expect",
        "range",
        "if-range",
        "if-match",
        "if-none-match",
        "if-modified-since",
        "if-unmodified-since",
        "referer",
    }
)
"""Headers that a feed's `headers:` cannot set: a promise of the client hangs on each."""


def extra_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """A registry entry's extra headers as they go out."""
    return [
        (name.strip().encode(), value.encode())
        for name, value in headers.items()
        if name.strip().lower() not in OURS
    ]


def _delta(digits: str) -> int:
    return int(min(float(digits), _MAX_DELTA_SECONDS))
