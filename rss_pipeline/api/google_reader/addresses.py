"""The addresses of the calls: below the prefix that we document, and below those that people type.

No user finds which URL to type into an app, so other servers' prefixes are taken too, and one that ends
with a slash, or with what the app appends itself.
"""

import re

PREFIX = "/greader"
"""The one that we document."""
PREFIXES = ("", PREFIX, "/greader.php", "/api", "/api/greader", "/api/greader.php")

_DOUBLE = re.compile(r"(?:reader/+api/+0/+)+(?=accounts/|reader/)")
_SLASHES = re.compile(r"/+")
_WITH_STREAM = re.compile(r"(reader/+(?:api/+0/+stream/+contents|atom)/+)(.+)", re.DOTALL)
_OWN = ("accounts/", "reader/")


def call_of(path: str) -> str | None:
    """The call of an address, as `reader/api/0/token`; empty for a prefix alone, None for no call.

    Slashes before the call may be doubled; those behind it belong to a stream's id (`feed/http://...`).
    """
    for prefix in sorted(PREFIXES, key=len, reverse=True):
        if path.startswith(prefix) and path[len(prefix) :][:1] in ("", "/"):
            rest = _DOUBLE.sub("", path[len(prefix) :].lstrip("/"), count=1)
            if rest.startswith(_OWN):
                return _plain(rest)
            if not rest and "greader" in prefix:
                return ""
            if rest.rstrip("/") == "check/compatibility" and "greader" in prefix:
                return "check/compatibility"
    return None


def addresses_of(call: str) -> list[str]:
    """All addresses of a call, for layers that go by the path."""
    return [f"{prefix}{slash}{call}" for prefix in PREFIXES for slash in ("/", "//")]


def _plain(call: str) -> str:
    """The call with single slashes; a stream's id at its end stays as it is."""
    if match := _WITH_STREAM.fullmatch(call):
        return _SLASHES.sub("/", match[1]) + match[2]
    return _SLASHES.sub("/", call).rstrip("/")
