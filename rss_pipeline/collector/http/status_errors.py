"""What an answer other than a document or an image means: the failure kind, and what a person can do.

Pure. 200, 304 and redirects are the visit's own business (`fetch_one.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import Head

_CHALLENGED = frozenset({403, 429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMessages:
    """The second halves of the sentences, for what was asked for."""

    hints: Mapping[int, str]
    challenge: str
    gone: str
    no_content: str
    other: str


_ANYTHING = {
    407: "the outbound proxy wants a password; check its setting",
    451: "the server withholds it for legal reasons",
}

FEED_MESSAGES = StatusMessages(
    hints={
        **_ANYTHING,
        400: "the server does not understand the URL; check it in feeds.yaml",
        401: "the server wants a username and password, or headers; set them for this feed in feeds.yaml",
        403: "the server refuses us; if it wants credentials, set them or headers for this feed in "
        "feeds.yaml",
        404: "there is no feed at this address; look on the site for its new one and change feeds.yaml",
        406: "the server has no form of it that we read; check the URL in feeds.yaml",
    },
    challenge="ask the publisher to let feed readers through",
    gone="the publisher has taken this feed down for good; remove it from feeds.yaml",
    no_content="the server answered without a document; if that goes on, its publisher has to look into it",
    other="this is no answer that holds a feed; check the URL in feeds.yaml",
)

_REFUSED = "the server refuses the credentials or headers that feeds.yaml sets for this feed"
FEED_WITH_ACCESS_MESSAGES = replace(
    FEED_MESSAGES, hints={**FEED_MESSAGES.hints, 401: _REFUSED, 403: _REFUSED}
)

IMAGE_MESSAGES = StatusMessages(
    hints={
        **_ANYTHING,
        400: "the server does not understand the image's address",
        401: "the server wants a password for the image",
        403: "the server refuses to give us the image",
        404: "the image is not, or no longer, at its address",
        406: "the server has no form of the image that we take",
    },
    challenge="this image is shown to people only",
    gone="the publisher has taken the image down for good",
    no_content="the server answered without an image",
    other="this is no answer that holds an image",
)


def status_error(status: int, head: Head, *, retry_after: int | None, messages: StatusMessages) -> FetchError:
    """The trouble that a status which brings no body of ours stands for."""
    name = status_name(status)
    wait = "" if retry_after is None else f"; it asks us to stay away for {retry_after:,} s"
    if status in _CHALLENGED and (head.first("cf-mitigated") or "").strip().lower() == "challenge":
        message = (
            f"{name}: Cloudflare shows a challenge that only a browser passes; {messages.challenge}{wait}."
        )
        return FetchError("challenge", message, status=status, retry_after=retry_after)
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        message = f"{name}: the server asks for fewer requests{wait}."
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
        hint = "the server has a fault of its own; it is asked again later"
    else:
        hint = messages.other
    return FetchError("http_status", f"{name}: {hint}{wait}.", status=status, retry_after=retry_after)


def status_name(status: int) -> str:
    """The status with its registered name; what the server calls it is not repeated."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)
