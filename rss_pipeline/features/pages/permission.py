"""The permission of robots.txt, before each request for a page: also where a redirect leads to another host.

The rules of an origin are requested at most once a day, whatever came, in the host's turn as any request.
"""

import asyncio
import json
import logging
from datetime import datetime, timedelta

from rss_pipeline.collector.fetch.feed_visit import Get
from rss_pipeline.collector.fetch.pacing import HoldActive, TurnRefused
from rss_pipeline.collector.http.fetch_error import FetchError
from rss_pipeline.collector.http.request_url import RequestUrl
from rss_pipeline.collector.models.clock import Clock
from rss_pipeline.collector.models.failure import UNREACHED_KINDS, Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import Document, FetchOutcome, NotBegun
from rss_pipeline.features.pages.robots import allows, rules_for_us
from rss_pipeline.features.pages.sql import drop_robots, keep_robots, robots_since
from rss_pipeline.storage.database import Database, Statement

logger = logging.getLogger(__name__)

ROBOTS_FOR = timedelta(days=1)
"""A host's robots.txt is requested at most once in this time, whatever came."""
Rules = tuple[str | None, str | None]
"""The rules as JSON, or a sentence on why they are not known."""
_ROBOTS_BYTES = 500_000


class Permission:
    """The check of a round: raises FetchError where robots.txt keeps a page from programs."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._asking: dict[str, asyncio.Lock] = {}

    async def __call__(self, url: RequestUrl, get: Get) -> None:
        """Return where a request of `url` is allowed. `get` makes another request in the same round.

        Raises:
            FetchError: it is not allowed, or the rules cannot be had.
            TurnRefused, HoldActive: they cannot be requested now.
        """
        origin = url.site.decode()
        # Two pages of a host wait for one answer.
        async with self._asking.setdefault(origin, asyncio.Lock()):
            known = await self._rules(origin, get)
        check(url, known)

    async def _rules(self, origin: str, get: Get) -> Rules:
        now = self._clock()
        known = await asyncio.to_thread(robots_since, self._database, origin, now - ROBOTS_FOR)
        if known is not None:
            return known
        outcome = await get(f"{origin}/robots.txt")
        found = await asyncio.to_thread(read_rules, outcome)
        await asyncio.to_thread(self._database.batch, keep(origin, found, at=now))
        return found


def check(url: RequestUrl, known: Rules) -> None:
    """Return where these rules allow a request of `url`.

    Raises:
        FetchError: they do not, or are not known.
    """
    rules, refusal = known
    if refusal is not None:
        raise FetchError("robots", refusal)
    if not allows(json.loads(rules or "[]"), url.target.decode()):
        raise FetchError(
            "robots", f"robots.txt of {url.host} keeps this page from programs. Look for a feed of the site."
        )


def keep(origin: str, known: Rules, *, at: datetime) -> list[Statement]:
    """Statements that keep the rules of an origin for a day."""
    rules, refusal = known
    return [drop_robots(at - ROBOTS_FOR), keep_robots(origin, rules=rules, refusal=refusal, at=at)]


def read_rules(outcome: FetchOutcome) -> Rules:
    """The rules in the answer to a request of robots.txt.

    Raises:
        FetchError: no server had the request.
        TurnRefused, HoldActive: it was not made.
    """
    match outcome:
        case Document():
            text = outcome.path.read_bytes()[:_ROBOTS_BYTES].decode("utf-8", "replace")
            outcome.path.unlink(missing_ok=True)
            return json.dumps(rules_for_us(text)), None
        case NotBegun():
            raise TurnRefused(outcome.reason or "robots.txt was not requested")
        case OnHold():
            raise HoldActive(outcome.hold)
        case Failure() if outcome.kind in UNREACHED_KINDS:
            raise FetchError(outcome.kind, outcome.message, reached=outcome.reached)
        # RFC 9309, 2.3.1.3: what is not there allows everything; 2.3.1.4: what cannot be read, nothing.
        case Failure() if outcome.kind in ("empty_body", "no_content", "gone") or _is_refusal(outcome.status):
            return "[]", None
        case Failure():
            # Users see the sentence, and what the failure says is for the operator.
            logger.info("robots.txt cannot be read: %s", outcome.message)
            return None, "robots.txt cannot be read, so no page of its host may be. Try again tomorrow."
        case _:
            return "[]", None


def _is_refusal(status: int | None) -> bool:
    """True for the statuses of the client's error, but for 429: that is the host's pace."""
    return status is not None and 400 <= status < 500 and status != 429
