"""One visit of a feed: validators, redirects, credentials, and the meaning of the response.

Not here: the round over many feeds (`feed_round.py`), and the decision whether a document is a feed
(`parse/`).
"""

import copy
import math
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.pacing import HoldActive, Turns
from rss_pipeline.collector.fetch.shared_answers import Asker, Headers, SharedAnswer, SharedAnswers
from rss_pipeline.collector.fetch.validators import is_unchecked, sent_validators
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.address_policy import private_hosts
from rss_pipeline.collector.http.body import SpooledBody, save_body
from rss_pipeline.collector.http.client import Client, FetchPolicy, HttpResponse, access_headers
from rss_pipeline.collector.http.cookies import with_cookies
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import (
    DAY_SECONDS,
    Head,
    fresh_seconds,
    http_date,
    requested_wait,
    seconds_ahead,
)
from rss_pipeline.collector.http.redaction import repeats_a_secret, scrubbed
from rss_pipeline.collector.http.redirects import Redirect, RedirectChain, redirect_of
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.http.status_errors import FEED_MESSAGES, FEED_WITH_ACCESS_MESSAGES, status_error
from rss_pipeline.collector.models.clock import LONGEST, Clock, duration, whole_second
from rss_pipeline.collector.models.failure import Failure, FailureKind
from rss_pipeline.collector.models.feed import Access, Feed, FeedAddress, Validators
from rss_pipeline.collector.models.hold import FeedHold, LedTo, OnHold
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotBegun, NotModified, Response
from rss_pipeline.collector.parse.parser_version import parser_version
from rss_pipeline.errors import spooling

SHORT_WAIT = 10
"""Seconds that a visit waits for before it follows a redirect."""
MAX_VALIDATOR_CHARACTERS = 8_170
"""Apache takes a line of 8,190 bytes, nginx one of 8 KB, with the name of the header. A longer one would come
back as a request that is refused."""

_DOCUMENT_KINDS: frozenset[FailureKind] = frozenset(
    {
        "html",
        "not_a_feed",
        "no_list",
        "list_lost",
        "parse_timeout",
        "parse_memory",
        "crashed",
        "storage_rejected",
    }
)
"""Kinds of failures that the bytes of a document cause; others, such as a time-out, do not describe them."""


Get = Callable[[str], Awaitable[FetchOutcome]]
"""Makes a request of another URL beside a visit, in its round, guarded and paced as its own."""
RequestCheck = Callable[[RequestUrl, Get], Awaitable[None]]
"""Called before each request of a visit. Raises FetchError, TurnRefused or HoldActive if none may be made."""


@dataclass(slots=True, kw_only=True)
class FeedVisit:
    """One feed and the requests of its visit. `run` once."""

    feed: Feed
    access: Access
    client: Client
    turns: Turns
    holds: Holds
    answers: SharedAnswers
    policy: FetchPolicy
    spool: Path
    clock: Clock
    begin: Callable[[], Awaitable[bool]] | None = None
    """Called in the turn of its first request; False: no request may be made."""
    check: RequestCheck | None = None
    _requests: VisitRequests = field(init=False)
    _with_access: bool = field(default=False, init=False)
    _network: str | None = field(default=None, init=False)
    """That of the host that was requested first, if it answered."""
    _led_until: datetime | None = field(default=None, init=False)
    """The time until which a redirect of this visit may be used unasked."""
    _led_to: LedTo | None = field(default=None, init=False)
    """A redirect of this visit that is followed in a later one."""
    _requested: RequestUrl = field(init=False)
    """The feed's URL, split once: that takes a tenth of a request's time."""

    def __post_init__(self) -> None:
        self._requests = VisitRequests(
            client=self.client,
            turns=self.turns,
            policy=self.policy,
            clock=self.clock,
            begin=self.begin,
            user=self.feed.brought_by,
            is_daily=self._is_daily(),
            private=private_hosts(
                self.feed.url, allow_private=self.feed.allow_private, named=self.feed.private_hosts
            ),
        )

    def _is_daily(self) -> bool:
        last = self.feed.schedule.last_visited_at
        return last is not None and self.clock() - last >= LONGEST

    async def run(self) -> FetchOutcome:
        """The outcome. Raises only `InfrastructureError`, if the spool cannot be written."""
        outcome = await self._requests.outcome(
            self._follow(), lambda error: scrubbed(error.advised, self.access)
        )
        if isinstance(outcome, Failure) and self._network is not None:
            outcome = replace(outcome, network=self._network)
        if isinstance(outcome, OnHold) and self._led_to is not None:
            return replace(outcome, led_to=self._led_to)
        return outcome if self._led_until is None else _waiting(outcome, self._led_until, now=self.clock())

    async def _follow(self) -> NotModified | Document:
        here = self._requested = request_url(self.feed.requested_url)
        registered = here.origin if here.url == self.feed.url else request_url(self.feed.url).origin
        must_check = is_unchecked(self.feed, now=self.clock())
        chain = RedirectChain(here, most=self.policy.max_redirects)
        if (led := self._led_before(here)) is not None:
            here = request_url(led.url)
            chain.resume(here, is_permanent=led.is_permanent)
            self._led_until = led.fresh_until
        while True:
            if self.check is not None:
                await self.check(here, self._beside)
            extra = access_headers(self.access) if here.origin == registered else []
            self._with_access = bool(extra)
            known = None if must_check else self._known_at(here.url)
            validators = (
                []
                if known is None or known.false
                else sent_validators(known.etag, known.last_modified, dated=known.dated)
            )
            headers = with_cookies([*extra, *validators], chain.cookies(here))
            # What secrets or cookies bring is this feed's own.
            is_plain = self.access.is_open and headers == validators
            match await self._request(here, headers, validators, is_plain=is_plain):
                case Redirect() as redirect:
                    there = chain.follow(here, redirect, now=self.clock())
                    if repeats_a_secret(there.url, self.access):
                        # The secret would be sent to that server, and stored as the document's address.
                        raise FetchError(
                            "redirect",
                            f"{here.host} redirects to an address that repeats this feed's password or a "
                            "header that is set for it; the redirect is not followed.",
                            advice="Its publisher has to fix that.",
                        )
                    await self._wait_to_follow(redirect, there, chain)
                    here = there
                case outcome if chain.is_permanent:
                    return replace(outcome, response=replace(outcome.response, moved_to=here.url))
                case outcome:
                    return outcome

    def _led_before(self, here: RequestUrl) -> LedTo | None:
        """The redirect of the last visit that may be followed by now."""
        led = self.feed.led_to
        if led is None or led.source != here.url or not led.at <= self.clock() < led.at + LONGEST:
            return None
        return led

    async def _wait_to_follow(self, redirect: Redirect, there: RequestUrl, chain: RedirectChain) -> None:
        """Wait for as long as a redirect asks before it is followed; in another visit if that is long."""
        now = self.clock()
        wait = requested_wait(HTTPStatus.FOUND, redirect.head, now=now)
        if not wait:
            return
        if wait <= SHORT_WAIT:
            await self.turns.pause(wait)
            return
        self._led_to = LedTo(
            source=self._requested.url,
            url=there.url,
            is_permanent=chain.is_permanent,
            at=whole_second(now + timedelta(seconds=wait)),
            fresh_until=self._led_until,
        )
        reason = f"a redirect to it asks to wait {duration(timedelta(seconds=wait))}"
        raise HoldActive(
            FeedHold(feed_id=self.feed.id, host=there.host, until=self._led_to.at, reason=reason)
        )

    async def _beside(self, url: str) -> FetchOutcome:
        """A request of another URL, without access; it may go where this visit may."""
        visit = FeedVisit(
            feed=Feed(
                id=f"-{self.feed.id}",
                url=url,
                address=FeedAddress(host=request_url(url).host),
                brought_by=self.feed.brought_by,
            ),
            access=Access(),
            client=self.client,
            turns=self.turns,
            holds=self.holds,
            answers=self.answers,
            policy=self.policy,
            spool=self.spool,
            clock=self.clock,
        )
        visit._requests.private = self._requests.private
        return await visit.run()

    async def _request(
        self, here: RequestUrl, headers: Headers, validators: Headers, *, is_plain: bool
    ) -> NotModified | Document | Redirect:
        """One request in its turn, or what another feed of the round got for the same."""
        asker = Asker(url=here, validators=validators, policy=self.policy, private=self._requests.private)
        if is_plain and self._requests.has_begun and (shared := self._shared(asker)) is not None:
            is_held = self.holds.active_at(here.host, here.wire_url) is not None
            # By the hold that began with this answer, the turn refuses it: that is no failure.
            if shared.error is None or not is_held:
                return self._read_shared(asker, shared)
        async with self._requests.turn(here) as turn:
            if is_plain and (shared := self._shared(asker)) is not None:
                turn.release_unused()
                return self._read_shared(asker, shared)
            async with self._requests.response(here, headers) as answer:
                try:
                    return await self._read(asker, answer, is_plain=is_plain)
                except FetchError as error:
                    if is_plain and error.document_hash is None:
                        self.answers.keep(asker, answer, error=error)
                    raise

    async def _read(
        self, asker: Asker, answer: HttpResponse, *, is_plain: bool
    ) -> NotModified | Document | Redirect:
        now, here = self.clock(), asker.url
        retry_after = requested_wait(answer.status, answer.head, now=now)
        is_led = here.host != self._requested.host
        self.holds.feed_answered(
            self.feed.id, here.host, answer.status, retry_after, url=here.wire_url, is_led=is_led
        )
        judged = self._judge(asker, answer.status, answer.head, answer.network())
        if isinstance(judged, Response) and judged.status == 200:
            return await self._receive(asker, answer, judged, is_plain=is_plain)
        if is_plain:
            self.answers.keep(asker, answer)
        return NotModified(response=judged) if isinstance(judged, Response) else judged

    def _shared(self, asker: Asker) -> SharedAnswer | None:
        """The answer of another visit, unless its document is new to this feed and not there any more."""
        shared = self.answers.for_request(asker)
        if shared is None or shared.body is None or shared.path is not None:
            return shared
        return shared if self._is_known(shared.body) else None

    def _read_shared(self, asker: Asker, shared: SharedAnswer) -> NotModified | Document | Redirect:
        self._requests.take_shared(asker.url, shared.status)
        if shared.error is not None:
            raise copy.copy(shared.error)
        asked = replace(shared.asker, url=asker.url)
        judged = self._judge(asked, shared.status, shared.head, shared.network)
        if not isinstance(judged, Response):
            return judged
        if shared.body is None:
            return NotModified(response=judged)
        if asker.validators != shared.asker.validators:
            # What this feed would have sent was not tried: the same bytes did not come in vain.
            judged = replace(judged, conditional=False)
        if (known := self._known(shared.body, judged)) is not None:
            return known
        assert shared.path is not None
        path = self.spool / self.feed.id
        with spooling(path):
            shutil.copyfile(shared.path, path)
        return self._document(shared.body, judged, path)

    def _judge(self, asker: Asker, status: int, head: Head, network: str | None) -> Response | Redirect:
        """The meaning of the head of an answer: of a document or a 304 what is kept of it. `asker` has the
        request that was answered."""
        now, here = self.clock(), asker.url
        conditional = bool(asker.validators)
        if here.url == self._requested.url:
            self._network = network
        retry_after = requested_wait(status, head, now=now)
        if redirect := redirect_of(status, head):
            if wait := _usable_seconds(head, retry_after, now=now):
                until = now + timedelta(seconds=wait)
                self._led_until = max(self._led_until or until, until)
            return redirect
        if status == 304 and not conditional:
            raise FetchError(
                "unexpected_304",
                f"{here.host} answered 304 Not Modified to an unconditional request; its cache is broken.",
                status=304,
                retry_after=_usable_seconds(head, retry_after, now=now) or None,
            )
        if status not in {200, 304}:
            messages = FEED_WITH_ACCESS_MESSAGES if self._with_access else FEED_MESSAGES
            error = status_error(status, head, retry_after=retry_after, messages=messages)
            error.retry_after = _usable_seconds(head, retry_after, now=now) or None
            raise error
        etag, last_modified = self._validator(head, "etag"), self._validator(head, "last-modified")
        dated = http_date(head.first("date")) or now
        max_age = fresh_seconds(head, now=now)
        if max_age is None and status == 304:
            # A 304 updates the stored response and removes nothing from it (RFC 9111 4.3.4).
            max_age = self.feed.schedule.hints.max_age
        return Response(
            status=status,
            requested_url=self._requested.url,
            url=here.url,
            fetched_at=now,
            fetch_ms=self._requests.milliseconds(),
            content_type=self._unless_secret(head.first("content-type")),
            etag=etag,
            last_modified=last_modified,
            dated=dated,
            sends_validators=bool(sent_validators(etag, last_modified, dated=dated)),
            max_age=max_age,
            retry_after=retry_after,
            conditional=conditional,
            network=self._network,
            ahead=seconds_ahead(head, now=now),
        )

    async def _receive(
        self, asker: Asker, answer: HttpResponse, response: Response, *, is_plain: bool
    ) -> NotModified | Document:
        """The body of a 200: new, the same as the stored one, or the one that could not be read last time."""
        path = self.spool / self.feed.id
        keep = False
        try:
            body = await save_body(answer, path, policy=self.policy)
            keep = not self._is_known(body)
            if is_plain:
                self.answers.keep(asker, answer, body=body, path=path if keep else None)
            return self._known(body, response) or self._document(body, response, path)
        except FetchError as error:
            # Of a body that did not come whole nothing is fresh.
            error.retry_after = error.retry_after or response.retry_after
            raise
        finally:
            if not keep:
                # If the file cannot be removed, `save_body` has reported the error of the spool.
                with suppress(OSError):
                    path.unlink()

    def _document(self, body: SpooledBody, response: Response, path: Path) -> Document:
        response = self._with_false_validators(response, is_new=True)
        return Document(
            response=replace(response, fetch_ms=self._requests.milliseconds()),
            path=path,
            body_bytes=body.size,
            content_hash=body.content_hash,
        )

    def _known(self, body: SpooledBody, response: Response) -> NotModified | None:
        """The outcome of bytes that came before; None for new ones. Raises `FetchError` for those that could
        not be read last time."""
        if body.content_hash == self.feed.http.content_hash:
            response = self._with_false_validators(response, is_new=False)
            return NotModified(response=response, body_bytes=body.size)
        if body.content_hash == self.feed.http.cut_hash:
            return NotModified(response=response, body_bytes=body.size, cut_off=True)
        if self._failed_before(body.content_hash):
            raise self._still_unreadable(body, response)
        return None

    def _is_known(self, body: SpooledBody) -> bool:
        http = self.feed.http
        return body.content_hash in (http.content_hash, http.cut_hash) or self._failed_before(
            body.content_hash
        )

    def _validator(self, head: Head, name: str) -> str | None:
        """A validator that is worth keeping."""
        value = self._unless_secret(head.first(name))
        return None if value is not None and len(value) > MAX_VALIDATOR_CHARACTERS else value

    def _unless_secret(self, value: str | None) -> str | None:
        """A header's value, which will be stored; None if it repeats a secret that was sent."""
        return None if value is None or repeats_a_secret(value, self.access) else value

    def _failed_before(self, document_hash: str) -> bool:
        http = self.feed.http
        return document_hash == http.failed_hash and http.failed_version == parser_version()

    def _still_unreadable(self, body: SpooledBody, response: Response) -> FetchError:
        """The failure of last time again; without one of the document's own, since a time-out came between
        for instance, a general one."""
        last = self.feed.failures
        kind: FailureKind = "not_a_feed"
        message = "The server sent the same document again that could not be read before."
        if last.last_kind in _DOCUMENT_KINDS:
            kind, message = last.last_kind, last.last_message or message
        return FetchError(
            kind,
            message,
            status=200,
            retry_after=response.usable_seconds or None,
            document_hash=body.content_hash,
            body_bytes=body.size,
        )

    def _known_at(self, url: str) -> Validators | None:
        return self.feed.http.validators_at(url, requested_url=self._requested.url)

    def _with_false_validators(self, response: Response, *, is_new: bool) -> Response:
        """The answer to an unconditional request with the count of documents that came under its validators,
        if the stored ones are the same."""
        known = self._known_at(response.url)
        if known is None or response.conditional:
            return response
        same = sent_validators(known.etag, known.last_modified, dated=known.dated)
        given = sent_validators(response.etag, response.last_modified, dated=response.dated)
        if not same or same != given:
            return response
        # Of another mirror, whose document may be an older one, it is no proof.
        is_newest = response.url == (self.feed.http.validators_url or self._requested.url)
        return replace(response, false_validators=known.false + (is_new and is_newest))


def _usable_seconds(head: Head, retry_after: int | None, *, now: datetime) -> int:
    """Seconds for which a redirect or an error is not to be requested again: by Retry-After, or for as long
    as it is fresh (RFC 9111 4.2.1), at most a day."""
    return max(retry_after or 0, min(fresh_seconds(head, now=now) or 0, DAY_SECONDS))


def _waiting(outcome: FetchOutcome, until: datetime, *, now: datetime) -> FetchOutcome:
    """The outcome of a visit with redirects that are not to be requested again before `until`."""
    seconds = max(math.ceil((until - now).total_seconds()), 0)
    match outcome:
        case NotModified(response=response) | Document(response=response):
            longest = max(response.retry_after or 0, seconds)
            return replace(outcome, response=replace(response, retry_after=longest or None))
        case Failure():
            return replace(outcome, retry_after=max(outcome.retry_after or 0, seconds) or None)
        case NotBegun() | OnHold():
            return replace(outcome, not_before=until)
