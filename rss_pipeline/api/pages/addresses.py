"""Addresses of pages, and the check of an address that a request names to go back to."""

from collections.abc import Mapping
from urllib.parse import quote, unquote, urlencode

from rss_pipeline.api.asgi import Scope
from rss_pipeline.api.request_values import has_controls

HOME = "/unread"
_FEEDS = "/feeds/"
_MOST_CHARACTERS = 2_000
_ASCII = "".join(map(chr, range(0x21, 0x7F)))
_API = ("api", "reader", "accounts", "greader", "greader.php")
"""First parts of addresses that programs request."""


def is_page(path: str) -> bool:
    """True for an address that people open: an error of it is a page, not problem details."""
    return path.lstrip("/").partition("/")[0].lower() not in _API


def feed_url(feed_id: str) -> str:
    return f"{_FEEDS}{quote(feed_id, safe='')}"


def feed_of(path: str) -> str | None:
    """The id of the feed with this `feed_url`; None if it is another page's."""
    found = unquote(path.removeprefix(_FEEDS))
    return found if feed_url(found) == path else None


def folder_url(name: str) -> str:
    """The list of a folder. No path can name the folders `.` and `..`: browsers resolve them."""
    path = quote(name, safe="")
    return f"/folders?name={path}" if name.strip(".") == "" else f"/folders/{path}"


def item_url(item_id: str) -> str:
    return f"/items/{quote(item_id, safe='')}"


def edit_url(feed_id: str) -> str:
    return f"{feed_url(feed_id)}/edit"


def task_url(task_id: str) -> str:
    return f"/tasks/{quote(task_id, safe='')}"


def requested(scope: Scope) -> str:
    """The path of a request as the browser sent it: decoded, `/folders/a%2F..%2Fb` would be another."""
    raw: bytes | None = scope.get("raw_path")
    sent = quote(scope["path"]) if raw is None else raw.partition(b"?")[0].decode("latin-1")
    return quote(sent, safe=_ASCII)


def with_query(path: str, query: Mapping[str, str]) -> str:
    """The address of a page with these values, in their order."""
    return f"{path}?{urlencode(query)}" if query else path


def local(address: str | None, default: str = HOME) -> str:
    """The address if it is one of this server without its origin (`/unread?show=all`), else the default.

    Browsers read `//host` and `/\\host` as other servers. What is not ASCII is escaped: no header takes it.
    """
    if not address or len(address) > _MOST_CHARACTERS or not address.startswith("/"):
        return default
    if address[1:2] in ("/", "\\") or has_controls(address) or "\\" in unquote(address.partition("?")[0]):
        return default
    return quote(address, safe=_ASCII)
