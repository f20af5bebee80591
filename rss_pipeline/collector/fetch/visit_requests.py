"""What all requests of one visit share: their turns, their time, and what is known when it fails.

Not here: what is asked and what the answers mean (`fetch_one.py` for feeds, `image_fetch_one.py`).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from rss_pipeline.collector.fetch.pacing import Turn, Turns
from rss_pipeline.collector.http.client import Client, FetchPolicy, HttpResponse
from rss_pipeline.collector.http.errors import FetchError
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import Failure


@dataclass(slots=True, kw_only=True)
class VisitRequests:
    """One visit's requests: each an `answer` within a `turn`."""

    client: Client
    turns: Turns
    policy: FetchPolicy
    clock: Clock
    allow_private: bool
    """Of the feed whose visit it is: it, and its images, may be on this machine or the local network."""
    _spent: float = field(default=0.0, init=False)
    _started: float | None = field(default=None, init=False)
    _begun: bool = field(default=False, init=False)
    _answered: bool = field(default=False, init=False)
    _status: int | None = field(default=None, init=False)
    _host: str | None = field(default=None, init=False)

    def turn(self, here: RequestUrl) -> AbstractAsyncContextManager[Turn]:
        """Wait for `here`'s host. Raises `TurnRefused`, `HoldActive`."""
        return self.turns.turn(here.host, begun=self._begun)

    @asynccontextmanager
    async def answer(
        self, here: RequestUrl, headers: list[tuple[bytes, bytes]], *, stay: bool = False
    ) -> AsyncIterator[HttpResponse]:
        """One request, to be read in the block, within what is left of the visit's time.

        `stay` leaves the connection open, where the policy keeps any. Raises `FetchError`.
        """
        self._begun = True
        self._answered, self._status = False, None
        self._host = here.host
        time = asyncio.get_running_loop().time
        started = self._started = time()
        try:
            async with asyncio.timeout_at(started + self.policy.deadline - self._spent) as limit:
                async with self.client.get(
                    here, headers, stay=stay, allow_private=self.allow_private
                ) as answer:
                    self._answered, self._status = True, answer.status
                    yield answer
        except TimeoutError:
            if not limit.expired():
                raise
            raise FetchError(
                "timeout", f"{here.host} gave no complete answer within {self.policy.deadline:g} s."
            ) from None
        finally:
            self._spent += time() - started
            self._started = None

    def milliseconds(self) -> int:
        """Time spent on requests so far, one that runs included; waiting for a turn is not counted."""
        running = 0.0 if self._started is None else asyncio.get_running_loop().time() - self._started
        return round((self._spent + running) * 1000)

    def failure(self, trouble: FetchError, message: str) -> Failure:
        """The failure that ends the visit."""
        return Failure(
            kind=trouble.kind,
            message=message,
            status=self._status if trouble.status is None else trouble.status,
            retry_after=trouble.retry_after,
            fetched_at=self.clock(),
            fetch_ms=self.milliseconds(),
            answered=self._answered,
            host=self._host,
            document_hash=trouble.document_hash,
            body_bytes=trouble.body_bytes,
        )
