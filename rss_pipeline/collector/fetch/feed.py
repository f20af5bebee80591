"""One feed asked once: validators, redirects, credentials, and what the answer means.

Not here: the round over many feeds (`fetch.py`), and whether a document is a feed (`parse.py`).
"""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.pacing import HoldActive, TurnRefused, Turns
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.body import save_body
from rss_pipeline.collector.http.client import Client, FetchPolicy, HttpResponse, access_headers
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import fresh_seconds, parse_retry_after
from rss_pipeline.collector.http.redaction import repeats_a_secret, scrubbed
from rss_pipeline.collector.http.redirects import PERMANENT, REDIRECTS, RedirectChain
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.http.status_errors import FEED_MESSAGES, FEED_WITH_ACCESS_MESSAGES, status_error
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import Access, Feed
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, GivenBack, NotModified, Response

STUCK_AFTER = timedelta(days=30)
"""Nothing but 304 for so long, and one request goes without validators: stuck caches exist. It is the only
one once a document was stored, also after one that could not be read: publishers count them."""

_SAME_DOCUMENT = "This is the same document as last time, which could not be read"

_DOCUMENT_KINDS: frozenset[FailureKind] = frozenset(
    {"html", "not_a_feed", "parse_timeout", "parse_memory", "crashed", "storage_rejected"}
)
"""Kinds that a document's bytes cause. A time-out since then must not become the bytes' fault."""


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str | None
    permanent: bool


@dataclass(slots=True, kw_only=True)
class FeedVisit:
    """One feed's way through its requests. `run` once."""

    feed: Feed
    access: Access
    client: Client
    turns: Turns
    holds: Holds
    policy: FetchPolicy
    spool: Path
    clock: Clock
    _asking: VisitRequests = field(init=False)
    _with_access: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._asking = VisitRequests(
            client=self.client,
            turns=self.turns,
            policy=self.policy,
            clock=self.clock,
            allow_private=self.feed.allow_private,
        )

    async def run(self) -> NotModified | Document | Failure | GivenBack | OnHold:
        """The outcome. Raises `InfrastructureError` only, where the spool cannot be written."""
        try:
            return await self._follow()
        except TurnRefused as refusal:
            return GivenBack(reason=str(refusal))
        except HoldActive as held:
            return OnHold(hold=held.hold)
        except FetchError as trouble:
            return self._asking.failure(trouble, scrubbed(trouble.advised, self.access))

    async def _follow(self) -> NotModified | Document:
        here = request_url(self.feed.requested_url)
        registered = request_url(self.feed.url).origin
        validators_url = here.url if self.feed.http.validators_url is None else self.feed.http.validators_url
        is_stuck = self._is_stuck()
        trail = RedirectChain(here, most=self.policy.max_redirects)
        while True:
            extra = access_headers(self.access) if here.origin == registered else []
            self._with_access = bool(extra)
            validators = self._validators() if here.url == validators_url and not is_stuck else []
            match await self._ask(here, [*extra, *validators], conditional=bool(validators)):
                case _Redirect(location, permanent):
                    there = trail.follow(here, location, permanent=permanent)
                    if repeats_a_secret(there.url, self.access):
                        # It would be told whoever is there, and be stored as where the document was.
                        raise FetchError(
                            "redirect",
                            f"{here.host} redirects to an address that repeats this feed's password or a "
                            "header of feeds.yaml; it is not followed.",
                            advice="Its publisher has to mend that.",
                        )
                    here = there
                case outcome if trail.is_permanent:
                    return replace(outcome, response=replace(outcome.response, moved_to=here.url))
                case outcome:
                    return outcome

    async def _ask(
        self, here: RequestUrl, headers: list[tuple[bytes, bytes]], *, conditional: bool
    ) -> NotModified | Document | _Redirect:
        """One request in its turn."""
        async with self._asking.turn(here), self._asking.answer(here, headers) as answer:
            return await self._read(here, answer, conditional=conditional)

    async def _read(
        self, here: RequestUrl, answer: HttpResponse, *, conditional: bool
    ) -> NotModified | Document | _Redirect:
        now = self.clock()
        retry_after = parse_retry_after(answer.head.first("retry-after"), now=now)
        self.holds.feed_answered(self.feed.id, here.host, answer.status, retry_after)
        if answer.status in REDIRECTS:
            return _Redirect(answer.head.first("location"), answer.status in PERMANENT)
        if answer.status == 304 and not conditional:
            raise FetchError(
                "unexpected_304",
                f"{here.host} says 304 Not Modified although it was not asked whether; its cache is broken.",
                status=304,
            )
        if answer.status not in {200, 304}:
            messages = FEED_WITH_ACCESS_MESSAGES if self._with_access else FEED_MESSAGES
            raise status_error(answer.status, answer.head, retry_after=retry_after, messages=messages)
        max_age = fresh_seconds(answer.head, now=now)
        if max_age is None and answer.status == 304:
            # It freshens the stored answer and takes nothing from it (RFC 9111 4.3.4).
            max_age = self.feed.schedule.hints.max_age
        response = Response(
            status=answer.status,
            requested_url=request_url(self.feed.requested_url).url,
            url=here.url,
            fetched_at=now,
            fetch_ms=self._asking.milliseconds(),
            content_type=self._unless_secret(answer.head.first("content-type")),
            etag=self._unless_secret(answer.head.first("etag")),
            last_modified=self._unless_secret(answer.head.first("last-modified")),
            max_age=max_age,
            retry_after=parse_retry_after(answer.head.first("retry-after"), now=now),
            conditional=conditional,
        )
        if answer.status == 304:
            return NotModified(response=response)
        return await self._receive(answer, response)

    async def _receive(self, answer: HttpResponse, response: Response) -> NotModified | Document:
        """The body of a 200: new, the stored one, or the one that could not be read last time."""
        path = self.spool / self.feed.id
        keep = False
        try:
            body = await save_body(answer, path, policy=self.policy)
            if body.content_hash == self.feed.http.content_hash:
                return NotModified(response=response, body_bytes=body.size)
            if body.content_hash == self.feed.http.failed_hash:
                raise self._still_unreadable(body.content_hash, body.size)
            keep = True
            return Document(
                response=replace(response, fetch_ms=self._asking.milliseconds()),
                path=path,
                body_bytes=body.size,
                content_hash=body.content_hash,
            )
        finally:
            if not keep:
                # What cannot be removed is the spool's trouble, and `save_body` has said so.
                with suppress(OSError):
                    path.unlink()

    def _unless_secret(self, value: str | None) -> str | None:
        """A header's value, which will be stored; None where it echoes what we sent."""
        return None if value is None or repeats_a_secret(value, self.access) else value

    def _still_unreadable(self, document_hash: str, size: int) -> FetchError:
        kind, before = self.feed.failures.last_kind, self.feed.failures.last_message
        message = f"{_SAME_DOCUMENT}."
        if before and kind in _DOCUMENT_KINDS:
            message = before if before.startswith(_SAME_DOCUMENT) else f"{_SAME_DOCUMENT} ({before})."
        return FetchError(
            kind if kind in _DOCUMENT_KINDS else "not_a_feed",
            message,
            status=200,
            document_hash=document_hash,
            body_bytes=size,
        )

    def _validators(self) -> list[tuple[bytes, bytes]]:
        """Byte for byte as they were received: Latin-1, as `Head` gave them (RFC 9110 13.1.2, 13.1.3)."""
        pairs = (("If-None-Match", self.feed.http.etag), ("If-Modified-Since", self.feed.http.last_modified))
        return [(name.encode(), value.encode("latin-1", "replace")) for name, value in pairs if value]

    def _is_stuck(self) -> bool:
        last = self.feed.http.last_body_at
        if last is None or self.feed.failures.in_a_row:
            # A feed that fails for a month has no stuck cache, and asking for all of it mends nothing.
            return False
        return self.clock() - last >= STUCK_AFTER
