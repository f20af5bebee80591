"""The `FetchError` for a status that brings no document or image: its kind, and what a person can do.

Users read these messages: they name no file and no setting.
Pure. 200, 304 and redirects are handled by the visit (`fetch/feed_visit.py`, `fetch/image_visit.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import Head

_CHALLENGED = frozenset({403, 429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMessages:
    """The second half of each message, for a feed or for an image."""

    hints: Mapping[int, str]
    challenge: str
    gone: str
    no_content: str
    other: str


_ANYTHING = {
    407: "the outbound proxy requires a password, which the operator can set",
    451: "the server withholds it for legal reasons",
}

FEED_MESSAGES = StatusMessages(
    hints={
        **_ANYTHING,
        400: "the server does not understand the URL; check it",
        401: "the server requires a username and password, or headers; the operator can set them for "
        "this feed",
        403: "the server refuses the request; if it requires credentials, the operator can set them or "
        "headers for this feed",
        404: "there is no feed at this address; look on the site for its new one",
        406: "the server has no format of it that is read here; check the URL",
    },
    challenge="only the publisher can allow feed readers",
    gone="the publisher has removed this feed for good; remove it",
    no_content="the server answered without a document; if this continues, its publisher has to fix it",
    other="a feed does not come with this status; check the URL",
)

_REFUSED = "the server refuses the credentials or headers that are set for this feed"
FEED_WITH_ACCESS_MESSAGES = replace(
    FEED_MESSAGES, hints={**FEED_MESSAGES.hints, 401: _REFUSED, 403: _REFUSED}
)

IMAGE_MESSAGES = StatusMessages(
    hints={
        **_ANYTHING,
        400: "the server does not understand the image's address",
        401: "the server requires a password for the image",
        403: "the server refuses the request for the image",
        404: "the image is not, or no longer, at its address",
        406: "the server has no format of the image that is accepted here",
    },
    challenge="the image is shown to people only",
    gone="the publisher has removed the image for good",
    no_content="the server answered without an image",
    other="an image does not come with this status",
)


def status_error(status: int, head: Head, *, retry_after: int | None, messages: StatusMessages) -> FetchError:
    """The error for a status other than 200, 304 and redirects. `retry_after` is in seconds."""
    name = status_name(status)
    wait = f"; it wants no request for {retry_after:,} s" if retry_after else ""
    if status in _CHALLENGED and (head.first("cf-mitigated") or "").strip().lower() == "challenge":
        message = (
            f"{name}: Cloudflare sends a challenge that only a browser passes; {messages.challenge}{wait}."
        )
        return FetchError("challenge", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = f"{name}: the server wants fewer requests{wait}."
        return FetchError("rate_limited", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.GONE:
        message = f"{name}: {messages.gone}."
        return FetchError("gone", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.NO_CONTENT:
        message = f"{name}: {messages.no_content}."
        return FetchError("no_content", message, status=status, retry_after=retry_after)
    if status in messages.hints:
        hint = messages.hints[status]
    elif status >= 500:
        hint = "the server has an internal error; the request is repeated later"
    else:
        hint = messages.other
    return FetchError("http_status", f"{name}: {hint}{wait}.", status=status, retry_after=retry_after)


def status_name(status: int) -> str:
    """The status with its registered name; the server's own reason phrase is not repeated."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
