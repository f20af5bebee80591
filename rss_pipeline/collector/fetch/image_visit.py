"""One download of an image: redirects, with a Referer or without, and the storing of the image.

Not here: the round over many images (`image_round.py`), and the check that a body is an image
(`image_body.py`).
"""

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import Generic, TypeVar

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.image_body import Image, receive_image
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.address_policy import PrivateHosts
from rss_pipeline.collector.http.client import HttpResponse
from rss_pipeline.collector.http.cookies import with_cookies
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.headers import requested_wait
from rss_pipeline.collector.http.redirects import Redirect, RedirectChain, redirect_of
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.http.status_errors import IMAGE_MESSAGES, status_error, status_name
from rss_pipeline.collector.models.clock import whole_second
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import IMAGE_AGAIN_AFTER, OnHold, url_hash
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.errors import StorageRejected

T = TypeVar("T")

_REFUSALS = frozenset({401, 403})
_WITHOUT, _WITH = "without Referer", "with the page of its item as Referer"
_LAST = 2
"""Attempts before the last one."""
_LONGEST_WAIT = 60
"""Seconds that a download waits for before it follows a redirect with Retry-After."""
_LONGEST_REFERER = 4096
"""A browser names only the site of a page with a longer address (Referrer Policy 8.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One image to download."""

    id: str
    """The image task's id: distinct in a round, and a file name."""
    url: str
    item_link: str | None = None
    """The page of the item, to be named as Referer to a host that refuses the image without one. None if no
    image host may know it."""
    private: PrivateHosts = field(default_factory=PrivateHosts)
    """The private hosts that the feed opens."""
    attempts: int = 0
    """Attempts before this one."""
    shares: bool = False
    """True if the URLs to which it redirects are requested once for all images that lead there."""


@dataclass(frozen=True, slots=True)
class LedTo:
    """A redirect has led to a URL that is requested for another image, or was on this day."""

    target: str
    """Its `url_hash`."""
    targets: tuple[str, ...] = ()
    """`url_hash` of the URLs between."""


@dataclass(frozen=True, slots=True)
class KeptImage(Generic[T]):
    """The image was downloaded and stored."""

    value: T
    """The result of `keep`."""
    inside: frozenset[str] = field(default=frozenset(), compare=False)
    """The private hosts, opened by the feed, that it came from or over."""
    targets: tuple[str, ...] = field(default=(), compare=False)
    """`url_hash` of the URLs to which redirects have led, if others may share them."""


class Referers:
    """The hosts that give images only to requests with a Referer, as far as one round knows them.

    An image that is refused one way is requested the other way at its next attempt, and not at once; what the
    refusal shows serves the other images of its host in the round.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._known = set(known)
        self._changed: dict[str, bool] = {}
        self._refused: dict[str, set[bool]] = {}
        """By host the ways that it refused in this round: True is with a Referer."""

    def are_named(self, host: str, *, attempts: int) -> bool:
        """True if a request after so many attempts names the page of its item."""
        usual = host in self._known
        refused = self._refused.get(host, set())
        if usual in refused and (not usual) not in refused:
            return not usual
        # A known host refuses for another reason, as a rule.
        is_other_way = attempts == _LAST if usual else attempts % 2 == 1
        return usual != is_other_way

    def refused(self, hosts: Iterable[str], *, named: bool) -> None:
        """Note hosts that refused an image, requested this way."""
        for host in hosts:
            self._refused.setdefault(host, set()).add(named)

    def gave(self, hosts: Iterable[str], *, named: bool, attempts: int) -> None:
        """Note hosts that gave an image, requested this way after so many attempts."""
        for host in hosts:
            was_refused = (not named) in self._refused.get(host, set()) or attempts > 0
            if was_refused and named != (host in self._known):
                (self._known.add if named else self._known.discard)(host)
                self._refused.pop(host, None)
                self._changed[host] = named

    def changes(self) -> dict[str, bool]:
        """The hosts to store, with True, and those to forget; each is returned once."""
        changed, self._changed = self._changed, {}
        return changed


ImageOutcome = KeptImage[T] | Failure | NotBegun | OnHold | LedTo
KeepImage = Callable[[ImageRequest, Image], T]


@dataclass(frozen=True, slots=True)
class _Refused:
    error: FetchError


@dataclass(slots=True, kw_only=True)
class ImageVisit(Generic[T]):
    """One image and the requests of its download. `run` once."""

    image: ImageRequest
    requests: VisitRequests
    holds: Holds
    spool: Path
    keep: KeepImage[T]
    keepers: Executor
    is_last: Callable[[str], bool]
    """True if no other download waits for this host."""
    referers: Referers = field(default_factory=Referers)
    requested: set[str] = field(default_factory=set)
    """`url_hash` of each URL that the round requests for images that share."""
    was_requested: Callable[[str], bool] = lambda _: False
    """True if the URL with this hash was requested before, on this day. Called in a thread."""
    _inside: frozenset[str] = field(default=frozenset(), init=False)
    _targets: tuple[str, ...] = field(default=(), init=False)
    _is_answered: bool = field(default=False, init=False)

    async def run(self) -> ImageOutcome[T]:
        """The outcome. Raises `InfrastructureError` if the spool cannot be written, and every exception of
        `keep` except `StorageRejected`."""
        outcome = await self.requests.outcome(self._downloaded(), lambda error: error.message)
        if isinstance(outcome, Failure):
            return replace(outcome, inside=self._inside, targets=self._targets)
        if self._is_answered and isinstance(outcome, NotBegun | OnHold):
            # A redirect, say: its URL is not requested again today.
            return replace(outcome, not_before=whole_second(self.requests.clock() + IMAGE_AGAIN_AFTER))
        return outcome

    async def _downloaded(self) -> KeptImage[T] | LedTo:
        here = first = request_url(self.image.url)
        chain = RedirectChain(here, most=self.requests.policy.max_redirects)
        names_page, attempts = False, self.image.attempts
        while True:
            async with self.requests.turn(here) as turn:
                # Asked in the turn: the request before it may have shown it.
                names_page = names_page or self.referers.are_named(here.host, attempts=attempts)
                page = self._page(here)
                referer = page if names_page else None
                headers = [] if referer is None else [(b"Referer", referer)]
                answer = await self._allowed(here, with_cookies(headers, chain.cookies(here)))
                self._is_answered = True
                turn.release_host()
                if isinstance(answer, Image):
                    if page is not None:
                        hosts = {first.host, here.host}
                        self.referers.gave(hosts, named=referer is not None, attempts=attempts)
                    return KeptImage(await self._keep(answer), self._inside, self._targets)
            match answer:
                case Redirect() as redirect:
                    await self._wait_to_follow(here, redirect)
                    here = chain.follow(here, redirect, now=self.requests.clock())
                    # What cookies change is for this visit alone.
                    if self.image.shares and not chain.cookies(here):
                        target = url_hash(here.wire_url)
                        if await self._is_requested(target):
                            return LedTo(target, self._targets)
                        self._targets += (target,)
                case _Refused(error):
                    if page is not None:
                        self.referers.refused({first.host, here.host}, named=referer is not None)
                    raise _refusal(error, here, _WITHOUT if referer is None else _WITH)

    async def _wait_to_follow(self, here: RequestUrl, redirect: Redirect) -> None:
        wait = requested_wait(HTTPStatus.FOUND, redirect.head, now=self.requests.clock()) or 0
        if wait > _LONGEST_WAIT:
            message = f"{here.host} redirects, and asks to wait {wait:,} s before that is followed."
            raise FetchError("redirect", message, retry_after=wait)
        if wait:
            await self.requests.turns.pause(wait)

    async def _is_requested(self, target: str) -> bool:
        if target in self.requested:
            return True
        self.requested.add(target)
        return await asyncio.to_thread(self.was_requested, target)

    async def _allowed(
        self, here: RequestUrl, headers: list[tuple[bytes, bytes]]
    ) -> Image | Redirect | _Refused:
        """The answer, by the rights that every feed has or else by those of this one: what came without the
        private hosts that it opens may be given to the items of other feeds."""
        try:
            return await self._request(here, headers)
        except FetchError as error:
            opens = self.image.private.hosts or self.image.private.networks
            if error.kind != "blocked_address" or not opens:
                raise
        closed, self.requests.private = self.requests.private, self.image.private
        try:
            answer = await self._request(here, headers)
        except FetchError as error:
            if error.kind != "blocked_address":
                self._inside |= {here.host}
            raise
        finally:
            self.requests.private = closed
        self._inside |= {here.host}
        return answer

    async def _request(
        self, here: RequestUrl, headers: list[tuple[bytes, bytes]]
    ) -> Image | Redirect | _Refused:
        path = self.spool / self.image.id
        is_complete = False
        try:
            async with self.requests.response(here, headers, stay=not self.is_last(here.host)) as response:
                answer = await self._read(here, response, path)
            is_complete = True
            return answer
        finally:
            if not is_complete:
                with suppress(OSError):
                    path.unlink()

    async def _read(
        self, here: RequestUrl, response: HttpResponse, path: Path
    ) -> Image | Redirect | _Refused:
        status, head = response.status, response.head
        retry_after = requested_wait(status, head, now=self.requests.clock())
        first_host = request_url(self.image.url).host
        self.holds.image_answered(here.host, status, retry_after, first_host=first_host)
        if status == 200:
            return await receive_image(
                response, path, policy=self.requests.policy, host=here.host, url=here.url
            )
        await response.drain()
        if redirect := redirect_of(status, head):
            return redirect
        error = status_error(status, head, retry_after=retry_after, messages=IMAGE_MESSAGES)
        if status in _REFUSALS and error.kind != "challenge":
            return _Refused(error)
        raise error

    def _page(self, here: RequestUrl) -> bytes | None:
        """The page of the item as a browser names it by default (strict-origin-when-cross-origin).

        Whole to its own origin, to others only its site, for path and query may hold what a reader of the
        item alone knows; and not at all without TLS where the page was read over it."""
        if self.image.item_link is None:
            return None
        try:
            page = request_url(self.image.item_link)
        except FetchError:
            return None
        if (page.scheme, here.scheme) == ("https", "http"):
            return None
        whole = page.site + page.target
        return whole if page.origin == here.origin and len(whole) <= _LONGEST_REFERER else page.site + b"/"

    async def _keep(self, image: Image) -> T:
        future = self.keepers.submit(self._keep_and_remove, image)
        try:
            return await asyncio.wrap_future(future)
        except StorageRejected as error:
            raise FetchError("storage_rejected", str(error), status=200, body_bytes=image.size) from error
        finally:
            # Cancelled before it began; a call that has begun removes the file itself.
            if future.cancelled():
                _remove(image)

    def _keep_and_remove(self, image: Image) -> T:
        try:
            return self.keep(self.image, image)
        finally:
            _remove(image)


def _remove(image: Image) -> None:
    if isinstance(image.body, Path):
        with suppress(OSError):
            image.body.unlink()


def _refusal(error: FetchError, here: RequestUrl, how: str) -> FetchError:
    return FetchError(
        error.kind,
        f"{status_name(error.status or 0)}: {here.host} refuses the image, requested {how}.",
        status=error.status,
        retry_after=error.retry_after,
    )
