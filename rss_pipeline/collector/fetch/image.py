"""One download of an image: redirects, the attempts with other Referers, and the storing of the image.

Not here: the round over many images (`images.py`), and the check that a body is an image (`image_body.py`).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from rss_pipeline.collector.fetch.holds import Holds
from rss_pipeline.collector.fetch.image_body import Image, receive_image
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.client import HttpResponse
from rss_pipeline.collector.http.cookies import with_cookies
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import requested_wait
from rss_pipeline.collector.http.private_hosts import PrivateHosts
from rss_pipeline.collector.http.redirects import Redirect, RedirectChain, redirect_of
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.http.status_errors import IMAGE_MESSAGES, status_error, status_name
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.errors import StorageRejected

T = TypeVar("T")

_REFUSALS = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One image to download."""

    id: str
    """The image task's id: distinct in a round, and a file name."""
    url: str
    item_link: str | None = None
    """The page of the item: its origin is sent as Referer to a host that refuses the image without one. None
    if image hosts may not know it."""
    sends_referer: bool = True
    """False for a feed with an address that is known to its readers alone: no Referer at all."""
    private: PrivateHosts = field(default_factory=PrivateHosts)
    """The private hosts that the feed opens."""


@dataclass(frozen=True, slots=True)
class KeptImage(Generic[T]):
    """The image was downloaded and stored."""

    value: T
    """The result of `keep`."""


ImageOutcome = KeptImage[T] | Failure | NotBegun | OnHold
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
    _attempt: int = field(default=0, init=False)

    async def run(self) -> ImageOutcome[T]:
        """The outcome. Raises `InfrastructureError` if the spool cannot be written, and every exception of
        `keep` except `StorageRejected`."""
        return await self.requests.outcome(self._downloaded(), lambda error: error.message)

    async def _downloaded(self) -> KeptImage[T]:
        here = request_url(self.image.url)
        chain = RedirectChain(here, most=self.requests.policy.max_redirects)
        while True:
            referers = self._referers(here)
            # There are fewer attempts after a redirect to http: the item's https link is not sent there.
            self._attempt = min(self._attempt, len(referers) - 1)
            async with self.requests.turn(here) as turn:
                referer = referers[self._attempt]
                headers = [] if referer is None else [(b"Referer", referer)]
                answer = await self._request(here, with_cookies(headers, chain.cookies(here)))
                turn.release_host()
                if isinstance(answer, Image):
                    return KeptImage(await self._keep(answer))
            match answer:
                case Redirect() as redirect:
                    here = chain.follow(here, redirect, now=self.requests.clock())
                case _Refused(error):
                    self._attempt += 1
                    if self._attempt == len(referers):
                        raise _all_refused(error, here, referers)

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

    def _referers(self, here: RequestUrl) -> list[bytes | None]:
        """The Referers to send in turn: many hosts that refuse hotlinks accept one of them."""
        if not self.image.sends_referer:
            return [None]
        referers: list[bytes | None] = [None, here.site + b"/"]
        if self.image.item_link is not None:
            with suppress(FetchError):
                page = request_url(self.image.item_link)
                # RFC 9110 10.1.3: a page read over TLS is not named in a request without TLS.
                if (page.scheme, here.scheme) != ("https", "http"):
                    # No path and no query: they may hold what only the reader of this item knows.
                    referers.append(page.site + b"/")
        return list(dict.fromkeys(referers))

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


def _all_refused(error: FetchError, here: RequestUrl, referers: list[bytes | None]) -> FetchError:
    tried = ["without Referer", "with its own address", "with the address of the item's site"]
    said = " and ".join(filter(None, [", ".join(tried[: len(referers) - 1]), tried[len(referers) - 1]]))
    return FetchError(
        error.kind,
        f"{status_name(error.status or 0)}: {here.host} refuses the image, requested {said}.",
        status=error.status,
        retry_after=error.retry_after,
    )
