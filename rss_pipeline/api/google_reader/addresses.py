"""The addresses of the calls: below the prefix that we document, and below those that people type.

No user finds which URL to type into an app, so other servers' prefixes are taken too, also behind ours: some
apps append them to what was typed (RSS Guard `/api/greader.php`). One may end with a slash, or with what the
app appends itself.
"""

import re

PREFIX = "/greader"
"""The one that we document."""
_TYPED = ("", PREFIX, "/greader.php", "/api", "/api/greader", "/api/greader.php")
_APPENDED = ("", "/api/greader.php", "/api", "/api/greader")
PREFIXES = tuple(dict.fromkeys(f"{typed}{appended}" for appended in _APPENDED for typed in _TYPED))

_PREFIX = re.compile(r"(?:/+(?:greader\.php|greader|api)(?=/|$))*")
_DOUBLE = re.compile(r"(?:reader/+api/+0/+)+(?=accounts/|reader/)")
_SLASHES = re.compile(r"/+")
_WITH_STREAM = re.compile(r"(reader/+(?:api/+0/+stream/+contents|atom)/+)(.+)", re.DOTALL)
_OWN = ("accounts/", "reader/")


def call_of(path: str) -> str | None:
    """The call of an address, as `reader/api/0/token`; empty for a prefix alone, None for no call.

    Slashes before the call may be doubled; those behind it belong to a stream's id (`feed/http://...`).
    """
    match = _PREFIX.match(path)
    assert match is not None
    prefix = _SLASHES.sub("/", match[0])
    if prefix not in PREFIXES:
        return None
    rest = _DOUBLE.sub("", path[match.end() :].lstrip("/"), count=1)
    if rest.startswith(_OWN):
        return _plain(rest)
    if not rest and "greader" in prefix:
        return ""
    is_check = rest.rstrip("/") == "check/compatibility" and "greader" in prefix
    return "check/compatibility" if is_check else None


def addresses_of(call: str) -> list[str]:
    """All addresses of a call, for layers that go by the path."""
    prefixes = [*PREFIXES, *(f"{PREFIX}/{other}" for other in _APPENDED if other)]
    return [f"{prefix}{slash}{call}" for prefix in prefixes for slash in ("/", "//")]


def _plain(call: str) -> str:
    """The call with single slashes; a stream's id at its end stays as it is."""
    if match := _WITH_STREAM.fullmatch(call):
        return _SLASHES.sub("/", match[1]) + match[2]
    return _SLASHES.sub("/", call).rstrip("/")
