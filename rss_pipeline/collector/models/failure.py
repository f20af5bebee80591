"""A failed visit or download: its kind for programs, its sentence for a person."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from rss_pipeline.collector.models.plain_text import one_line

FailureKind = Literal[
    "timeout",
    "dns",
    "connect",
    "tls",
    "bad_url",
    "blocked_address",
    "redirect",
    "http_status",
    "gone",
    "rate_limited",
    "challenge",
    "unexpected_304",
    "no_content",
    "empty_body",
    "html",
    "too_large",
    "truncated",
    "bad_compression",
    "not_a_feed",
    "no_list",
    "list_lost",
    "robots",
    "not_an_image",
    "parse_timeout",
    "parse_memory",
    "crashed",
    "storage_rejected",
    "host_on_hold",
]


FAILURE_KINDS: frozenset[str] = frozenset(get_args(FailureKind))


NETWORK_KINDS: frozenset[str] = frozenset({"timeout", "dns", "connect"})
"""Kinds that our own broken network would cause as well as the publisher's."""


UNREQUESTED_KINDS: frozenset[str] = frozenset({"blocked_address", "bad_url", "robots"})
"""Kinds found before a connection is made: they prove nothing about the network."""


UNREACHED_KINDS: frozenset[str] = NETWORK_KINDS | UNREQUESTED_KINDS | {"tls"}
"""Kinds of a visit to which no server answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A failure: its kind for programs, its sentence for a person."""

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: int | None = None
    """Seconds of the requested wait: Retry-After, or the end of a rate limit; at most a day."""
    fetched_at: datetime | None = None
    fetch_ms: int | None = None
    answered: bool = False
    """The host answered over HTTP, with any status."""
    accepted: bool = False
    """The host accepted the connection: our network was up when this request began."""
    reached: bool = False
    """It refused or reset the connection: no answer, but our network is up."""
    network: str | None = None
    """The network of the feed's host, if that answered (`network_of`)."""
    inside: frozenset[str] = frozenset()
    """The private hosts, opened by the feed, that were requested for an image."""
    targets: tuple[str, ...] = ()
    """`url_hash` of the URLs to which redirects have led an image, if others may share them."""
    host: str | None = None
    """Host of the hop that failed: a redirect may have led away from the feed's own."""
    document_hash: str | None = None
    """Hash of the document that could not be parsed or stored."""
    parser_version: str | None = None
    """The parsers' version that failed on it."""
    body_bytes: int | None = None
    backup_key: str | None = None
    new_backup_bytes: int = 0
    """As of the `Document` that failed."""

    @property
    def proves_network(self) -> bool:
        """It comes from somebody, so that our network was up at the time of the request."""
        return self.answered or self.accepted or self.reached

    def __post_init__(self) -> None:
        """The sentence may quote a publisher, and is printed, logged and sent in alerts."""
        object.__setattr__(self, "message", one_line(self.message))
