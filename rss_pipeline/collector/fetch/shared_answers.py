"""The answers that feeds of one round share: where two lead to one URL, it is requested once.

Only what is the same for anybody is shared: nothing of a feed with headers, a password or a cookie, and
nothing with a feed that may not reach the server itself. What an answer means for a feed is
`feed_visit.py`'s.
"""

from dataclasses import dataclass
from pathlib import Path

from rss_pipeline.collector.http.address_policy import PrivateHosts
from rss_pipeline.collector.http.body import SpooledBody
from rss_pipeline.collector.http.client import FetchPolicy, HttpResponse
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import Head
from rss_pipeline.collector.http.redirects import redirect_of
from rss_pipeline.collector.http.request_url import RequestUrl

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """A request, as far as its answer depends on who makes it."""

    url: RequestUrl
    validators: Headers
    policy: FetchPolicy
    private: PrivateHosts

    def may_use(self, other: "Asker", address: str | None) -> bool:
        """True if this request might have reached the `address` that answered the `other` one."""
        if any(self.private.includes([each]) for each in (self.url.host, address) if each is not None):
            return True
        opened = [(each.private.opens(each.url.host), each.private.networks) for each in (self, other)]
        return opened[0] == opened[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAnswer:
    """An answer, and the request that got it."""

    asker: Asker
    status: int
    head: Head
    network: str | None
    address: str | None
    body: SpooledBody | None = None
    """The body of a 200."""
    path: Path | None = None
    """The file of the body, while its document is new to the feed that got it."""
    error: FetchError | None = None
    """The error by which the answer failed for each feed alike."""


class SharedAnswers:
    """The newest answer of each URL in one round."""

    def __init__(self) -> None:
        self._by_url: dict[str, SharedAnswer] = {}

    def keep(
        self,
        asker: Asker,
        answer: HttpResponse,
        *,
        body: SpooledBody | None = None,
        path: Path | None = None,
        error: FetchError | None = None,
    ) -> None:
        """Keep an answer for the feeds that lead there as well."""
        if redirect_of(answer.status, answer.head) and answer.head.all("set-cookie"):
            # Where it leads may depend on the cookie, which is one visit's.
            return
        self._by_url[asker.url.wire_url] = SharedAnswer(
            asker=asker,
            status=answer.status,
            head=answer.head,
            network=answer.network(),
            address=answer.address,
            body=body,
            path=path,
            error=error,
        )

    def for_request(self, asker: Asker) -> SharedAnswer | None:
        """The answer that this request would get, if it is known."""
        known = self._by_url.get(asker.url.wire_url)
        if known is None or not asker.may_use(known.asker, known.address):
            return None
        if known.status == 304 and known.asker.validators != asker.validators:
            return None
        limits = [(each.policy.max_wire_bytes, each.policy.max_body_bytes) for each in (asker, known.asker)]
        return known if limits[0] == limits[1] else None
