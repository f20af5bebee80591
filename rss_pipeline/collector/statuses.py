"""What an answer other than a document means: the failure kind, and what a person can do about it.

Pure. 200, 304 and redirects are the visit's own business (`fetch_one.py`).
"""

from http import HTTPStatus

from rss_pipeline.collector.headers import Head
from rss_pipeline.collector.trouble import Trouble

_CHALLENGED = frozenset({403, 429, 503})

_HINTS = {
    400: "the server does not understand the URL; check it in feeds.yaml",
    401: "the server wants a username and password, or headers; set them for this feed in feeds.yaml",
    403: "the server refuses us; if it wants credentials, set them or headers for this feed in feeds.yaml",
    404: "there is no feed at this address; look on the site for its new one and change feeds.yaml",
    406: "the server has no form of it that we read; check the URL in feeds.yaml",
    407: "the outbound proxy wants a password; check its setting",
    451: "the server withholds it for legal reasons",
}


def status_trouble(status: int, head: Head, *, retry_after: int | None, with_access: bool) -> Trouble:
    """The trouble that a status which brings no document stands for."""
    name = _name(status)
    wait = "" if retry_after is None else f"; it asks us to stay away for {retry_after:,} s"
    if status in _CHALLENGED and (head.first("cf-mitigated") or "").strip().lower() == "challenge":
        message = (
            f"{name}: Cloudflare shows a challenge that only a browser passes; ask the publisher to let "
            f"feed readers through{wait}."
        )
        return Trouble("challenge", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = f"{name}: the server asks for fewer requests{wait}."
        return Trouble("rate_limited", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.GONE:
        message = f"{name}: the publisher has taken this feed down for good; remove it from feeds.yaml."
        return Trouble("gone", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.NO_CONTENT:
        message = f"{name}: the server answered without a document."
        return Trouble("no_content", message, status=status, retry_after=retry_after)
    if with_access and status in {401, 403}:
        hint = "the server refuses the credentials or headers that feeds.yaml sets for this feed"
    elif status in _HINTS:
        hint = _HINTS[status]
    elif status >= 500:
        hint = "the server has a fault of its own; it is asked again later"
    else:
        hint = "this is no answer that holds a feed; check the URL in feeds.yaml"
    return Trouble("http_status", f"{name}: {hint}{wait}.", status=status, retry_after=retry_after)


def _name(status: int) -> str:
    """The status with its registered name; what the server calls it is not repeated."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
