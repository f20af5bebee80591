"""One image asked once: redirects, the Referer ladder, and keeping what came.

Not here: the round over many images (`image_fetch.py`), and whether a body is an image (`image_body.py`).
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
from rss_pipeline.collector.fetch.pacing import HoldActive, TurnRefused
from rss_pipeline.collector.fetch.visit_requests import VisitRequests
from rss_pipeline.collector.http.client import HttpResponse
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.headers import parse_retry_after
from rss_pipeline.collector.http.redirects import REDIRECTS, RedirectChain
from rss_pipeline.collector.http.request_url import RequestUrl, request_url
from rss_pipeline.collector.http.status_errors import IMAGE_MESSAGES, status_error, status_name
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import GivenBack
from rss_pipeline.errors import StorageRejected

T = TypeVar("T")

_REFUSALS = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """One image to be asked for."""

    id: str
    """Distinct in a round, and a file name: the image task's id."""
    url: str
    item_link: str | None = None
    """The page it stands on, where a refusing host may be told; None keeps it from all (a private feed)."""
    allow_private: bool = False
    """Of its feed: the image may be on this machine or the local network."""


@dataclass(frozen=True, slots=True)
class KeptImage(Generic[T]):
    """The image came and was kept."""

    value: T
    """What keeping it returned."""


ImageOutcome = KeptImage[T] | Failure | GivenBack | OnHold
KeepImage = Callable[[ImageRequest, Image], T]


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str | None


@dataclass(frozen=True, slots=True)
class _Refused:
    trouble: FetchError


@dataclass(slots=True, kw_only=True)
class ImageVisit(Generic[T]):
    """One image's way through its requests. `run` once."""

    request: ImageRequest
    asking: VisitRequests
    holds: Holds
    spool: Path
    keep: KeepImage[T]
    keepers: Executor
    is_last: Callable[[str], bool]
    """Whether nobody is known to ask this host after us."""
    _rung: int = field(default=0, init=False)

    async def run(self) -> ImageOutcome[T]:
        """The outcome. Raises `InfrastructureError`, where the spool cannot be written, and what `keep`
        raises, `StorageRejected` apart."""
        try:
            return KeptImage(await self._follow())
        except TurnRefused as refusal:
            return GivenBack(reason=str(refusal))
        except HoldActive as held:
            return OnHold(hold=held.hold)
        except FetchError as trouble:
            return self.asking.failure(trouble, trouble.message)

    async def _follow(self) -> T:
        here = request_url(self.request.url)
        trail = RedirectChain(here, most=self.asking.policy.max_redirects)
        while True:
            referers = self._referers(here)
            # A redirect to http has fewer rungs: the item's https link is none of its.
            self._rung = min(self._rung, len(referers) - 1)
            async with self.asking.turn(here) as turn:
                came = await self._ask(here, referers[self._rung])
                turn.leave_host()
                if isinstance(came, Image):
                    return await self._keep(came)
            match came:
                case _Redirect(location):
                    here = trail.follow(here, location)
                case _Refused(trouble):
                    self._rung += 1
                    if self._rung == len(referers):
                        raise _all_refused(trouble, here, referers)

    async def _ask(self, here: RequestUrl, referer: bytes | None) -> Image | _Redirect | _Refused:
        headers = [] if referer is None else [(b"Referer", referer)]
        path = self.spool / self.request.id
        whole = False
        try:
            async with self.asking.answer(here, headers, stay=not self.is_last(here.host)) as answer:
                came = await self._read(here, answer, path)
            whole = True
            return came
        finally:
            if not whole:
                with suppress(OSError):
                    path.unlink()

    async def _read(self, here: RequestUrl, answer: HttpResponse, path: Path) -> Image | _Redirect | _Refused:
        retry_after = parse_retry_after(answer.head.first("retry-after"), now=self.asking.clock())
        self.holds.image_answered(
            here.host, answer.status, retry_after, asked_first=request_url(self.request.url).host
        )
        if answer.status == 200:
            return await receive_image(answer, path, policy=self.asking.policy, host=here.host, url=here.url)
        await answer.drain()
        if answer.status in REDIRECTS:
            return _Redirect(answer.head.first("location"))
        trouble = status_error(answer.status, answer.head, retry_after=retry_after, messages=IMAGE_MESSAGES)
        if answer.status in _REFUSALS and trouble.kind != "challenge":
            return _Refused(trouble)
        raise trouble

    def _referers(self, here: RequestUrl) -> list[bytes | None]:
        """The rungs of the ladder: many hosts that refuse hotlinks want one of these."""
        referers: list[bytes | None] = [None, here.site + b"/"]
        if self.request.item_link is not None:
            with suppress(FetchError):
                page = request_url(self.request.item_link)
                # RFC 9110 10.1.3: what was read over TLS is not told in the clear.
                if (page.scheme, here.scheme) != ("https", "http"):
                    referers.append(page.site + page.target)
        return list(dict.fromkeys(referers))

    async def _keep(self, image: Image) -> T:
        future = self.keepers.submit(self._keep_and_remove, image)
        try:
            return await asyncio.wrap_future(future)
        except StorageRejected as error:
            raise FetchError("storage_rejected", str(error), status=200, body_bytes=image.size) from error
        finally:
            # Cancelled before it began. One that has begun removes the file itself, when it has been read.
            if future.cancelled():
                _remove(image)

    def _keep_and_remove(self, image: Image) -> T:
        try:
            return self.keep(self.request, image)
        finally:
            _remove(image)


def _remove(image: Image) -> None:
    if isinstance(image.body, Path):
        with suppress(OSError):
            image.body.unlink()


def _all_refused(trouble: FetchError, here: RequestUrl, referers: list[bytes | None]) -> FetchError:
    tried = "its own address as Referer and none"
    if len(referers) > 2:
        tried = "its own address, the item's page and no Referer"
    return FetchError(
        trouble.kind,
        f"{status_name(trouble.status or 0)}: {here.host} refuses the image; it was asked with {tried}.",
        status=trouble.status,
        retry_after=trouble.retry_after,
    )
