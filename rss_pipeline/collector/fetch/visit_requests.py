"""The requests of one visit: their turns, their time limit, and the values of a failure.

Not here: the headers of a request and the meaning of its response (`feed_visit.py`, `image_visit.py`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from rss_pipeline.collector.fetch.pacing import LAPSED, HoldActive, Turn, TurnRefused, Turns
from rss_pipeline.collector.http.address_policy import PrivateHosts
from rss_pipeline.collector.http.client import Client, FetchPolicy, HttpResponse
from rss_pipeline.collector.http.fetch_error import FetchError, NotSent
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import NotBegun
from rss_pipeline.collector.parse.parser_version import parser_version

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class VisitRequests:
    """One visit's requests: each is a `response` within a `turn`."""

    client: Client
    turns: Turns
    policy: FetchPolicy
    clock: Clock
    private: PrivateHosts
    """The private hosts that the visited feed opens, for itself and its images."""
    user: str = ""
    """By whom rounds are shared: `Feed.brought_by`."""
    is_daily: bool = False
    """The feed was not visited for a day."""
    begin: Callable[[], Awaitable[bool]] | None = None
    """Called in the turn of the first request; False: no request may be made."""
    _spent: float = field(default=0.0, init=False)
    _started: float | None = field(default=None, init=False)
    _begun: bool = field(default=False, init=False)
    _accepted: bool = field(default=False, init=False)
    _answered: bool = field(default=False, init=False)
    _status: int | None = field(default=None, init=False)
    _host: str | None = field(default=None, init=False)

    @property
    def has_begun(self) -> bool:
        """True if a request was made."""
        return self._begun

    async def outcome(
        self, visit: Awaitable[T], message: Callable[[FetchError], str]
    ) -> T | Failure | NotBegun | OnHold:
        """The result of `visit`, or the value for the exception that ended it; other exceptions pass.

        `message` gives the text of a `Failure`.
        """
        try:
            return await visit
        except TurnRefused as refusal:
            return NotBegun(reason=str(refusal))
        except HoldActive as held:
            return OnHold(hold=held.hold)
        except FetchError as error:
            return self._failure(error, message(error))

    @asynccontextmanager
    async def turn(self, url: RequestUrl) -> AsyncIterator[Turn]:
        """Wait for the host of `url`. Raises `TurnRefused`, `HoldActive`."""
        async with self.turns.turn(
            url.host, begun=self._begun, url=url.wire_url, user=self.user, is_daily=self.is_daily
        ) as turn:
            if not self._begun and self.begin is not None and not await self.begin():
                raise TurnRefused(LAPSED)
            yield turn

    @asynccontextmanager
    async def response(
        self, url: RequestUrl, headers: list[tuple[bytes, bytes]], *, stay: bool = False
    ) -> AsyncIterator[HttpResponse]:
        """One request; the block reads its response within the rest of the visit's time.

        `stay` leaves the connection open if the policy keeps connections. Raises `FetchError`, and
        `TurnRefused` if the lease lapsed while the connection was made.
        """
        self._begun = True
        self._accepted = self._answered = False
        self._status = None
        self._host = url.host
        time = asyncio.get_running_loop().time
        started = self._started = time()
        try:
            async with asyncio.timeout_at(started + self.policy.deadline - self._spent) as limit:
                async with self.client.get(
                    url,
                    headers,
                    stay=stay,
                    most=self.policy.max_wire_bytes,
                    private=self.private,
                    is_wanted=self.turns.is_leased,
                    on_accepted=self._note_accepted,
                ) as response:
                    self._answered, self._status = True, response.status
                    yield response
        except NotSent:
            raise TurnRefused(LAPSED) from None
        except TimeoutError:
            if not limit.expired():
                raise
            raise FetchError(
                "timeout", f"{url.host} gave no complete answer within {self.policy.deadline:g} s."
            ) from None
        finally:
            self._spent += time() - started
            self._started = None

    def take_shared(self, url: RequestUrl, status: int) -> None:
        """Note an answer that another visit of the round got."""
        self._begun = self._answered = True
        self._status, self._host = status, url.host

    def _note_accepted(self) -> None:
        # Behind an outbound proxy nobody but that has accepted it.
        self._accepted = self.policy.proxy is None

    def milliseconds(self) -> int:
        """Time spent on requests so far, including one that is running; time between turns does not count."""
        running = 0.0 if self._started is None else asyncio.get_running_loop().time() - self._started
        return round((self._spent + running) * 1000)

    def _failure(self, error: FetchError, message: str) -> Failure:
        return Failure(
            kind=error.kind,
            message=message,
            status=self._status if error.status is None else error.status,
            retry_after=error.retry_after,
            fetched_at=self.clock(),
            fetch_ms=self.milliseconds(),
            answered=self._answered,
            accepted=self._accepted,
            # Behind an outbound proxy nobody but that has answered.
            reached=error.reached and self.policy.proxy is None,
            host=self._host,
            document_hash=error.document_hash,
            parser_version=None if error.document_hash is None else parser_version(),
            body_bytes=error.body_bytes,
        )
