"""The visits that users wait for, by one run: claimed with their requests, and answered one by one.

The first ones go through the ops of a poll. Those that come meanwhile, and those with a feed or host that
another run held, are visited before the run ends, so that many requests share it. How a request is made is
refresh.py's.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from rss_pipeline.collector.models.clock import instant, milliseconds
from rss_pipeline.collector.models.failure import Failure
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import CutOff, NotModified
from rss_pipeline.errors import InfrastructureError, NetworkUnavailable
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits import session_steps as steps
from rss_pipeline.pipeline.visits.claim import Accesses, claim_named, go_first
from rss_pipeline.pipeline.visits.session_steps import run_through
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Stored, Visit, Visits
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.refresh.open_requests import MOST_ATTEMPTS, OpenRequest, RequestResult

MOST_AT_ONCE = 200
"""Requests of one claim; the next claim takes the next ones."""
STAY_SECONDS = 30.0
"""A run takes requests for so long; what is left then, another run takes."""
ROUND_SECONDS = 10.0
"""Requests to publishers begin for so long; then what came meanwhile takes its turn with the rest: a user may
have requested a hundred slow feeds."""
LOOK_SECONDS = 0.5
LEASE_SECONDS = 45
"""The lease of a run for requests: they are done within two minutes although the run was killed."""

Search = Callable[[Session, OpenRequest], tuple[Row, Visits]]
"""The search of an address: the result that its task shows, and the visit of a feed that is new."""


@dataclass(slots=True)
class Claimed:
    """A claim of requests: its lease, and the requests by feed; searches apart."""

    token: str
    by_feed: dict[str, OpenRequest] = field(default_factory=dict)
    searches: list[OpenRequest] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.by_feed or self.searches)


class Requests:
    """The requests that one run has claimed."""

    def __init__(
        self,
        session: Session,
        *,
        accesses: Accesses,
        suspects: Collection[str] | None = None,
        search: Search,
        stay_seconds: float = STAY_SECONDS,
    ) -> None:
        self._session = session
        self._accesses = accesses
        self._suspects = suspects
        self._search = search
        self._claimed = Claimed("")
        self._awaited: set[str] = set()
        self._until = time.monotonic() + stay_seconds

    def claim(self) -> Visits:
        """Claim open requests and the feeds that they name; one visit a feed."""
        with self._kept():
            self._take()
            return self._visits()

    def fetch(self, visits: Visits) -> Visits:
        """The step of a poll; where our own network is down, the requests are answered so."""
        with self._kept():
            return steps.fetch(self._session, visits, round_seconds=ROUND_SECONDS)

    def answer(self, visits: Sequence[Visit]) -> None:
        """Answer the requests with a visit that has ended; called as soon as the items are stored."""
        run = self._session.run
        now = run.clock()
        answers = []
        for visit in visits:
            request = self._claimed.by_feed.get(visit.feed.id)
            if request is not None and (result := result_of(visit)) is not None:
                answers.append(RequestResult(id=request.id, result=self._timed(request, result)))
                del self._claimed.by_feed[visit.feed.id]
        open_requests.answer_requests(run.database, self._claimed.token, answers, now=now)

    def visit_the_rest(self) -> Visits:
        """Visit what could not be visited at once and what is requested meanwhile, for `STAY_SECONDS` in all;
        return those visits. No request is the run's any more."""
        done: list[Visit] = []
        with self._kept():
            while time.monotonic() < self._until and self._take_again():
                visits = self._visits()
                held = {visit.feed.id for visit in visits if isinstance(visit.outcome, HeldElsewhere)}
                ours = run_through(
                    self._session,
                    [visit for visit in visits if visit.feed.id not in held],
                    round_seconds=ROUND_SECONDS,
                )
                self.answer(ours)
                done += ours
                done += self._run_search()
                if held and not ours:
                    time.sleep(LOOK_SECONDS)
            self._leave()
        return done

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Around what may fail by us: the requests are open again, or answered if our network is down."""
        try:
            yield
        except NetworkUnavailable as error:
            self._answer_all(_our_network(str(error)))
            raise
        except InfrastructureError:
            with suppress(InfrastructureError):
                self._leave()
            raise

    def _answer_all(self, result: Row) -> None:
        requests = [*self._claimed.by_feed.values(), *self._claimed.searches]
        answers = [RequestResult(id=request.id, result=self._timed(request, result)) for request in requests]
        run = self._session.run
        open_requests.answer_requests(run.database, self._claimed.token, answers, now=run.clock())
        self._claimed = Claimed(self._claimed.token)

    def _take(self) -> None:
        run = self._session.run
        token, requests = self._session.leases.claim_requests(now=run.clock(), limit=MOST_AT_ONCE)
        self._claimed = Claimed(token)
        answers = []
        for request in requests:
            if request.attempts > MOST_ATTEMPTS:
                answers.append(RequestResult(id=request.id, result=self._timed(request, _CRASHED)))
            elif request.feed_id is None:
                self._claimed.searches.append(request)
            else:
                self._claimed.by_feed[request.feed_id] = request
        open_requests.answer_requests(run.database, token, answers, now=run.clock())

    def _take_again(self) -> bool:
        """Claim again what is left of this claim, settled by other runs where they visited it, with what is
        new."""
        self._leave()
        self._take()
        return bool(self._claimed)

    def _leave(self) -> None:
        token = self._claimed.token
        if token:
            if self._claimed:
                open_requests.release_requests(self._session.run.database, token)
            self._session.leases.end({token})
        self._claimed = Claimed("")

    def _visits(self) -> Visits:
        if not self._claimed.by_feed:
            return []
        ids = list(self._claimed.by_feed)
        visits = claim_named(self._session, ids, self._accesses, suspects=self._suspects)
        # A run that dies while this one waits for its feeds leaves more of them.
        self._suspects = None
        # One lease on their hosts for the run's length is enough.
        go_first(self._session, [visit for visit in visits if visit.feed.id not in self._awaited])
        self._awaited |= {visit.feed.id for visit in visits}
        # Here it counts who waits, and not who has brought the feed.
        return [
            replace(visit, feed=replace(visit.feed, brought_by=self._claimed.by_feed[visit.feed.id].users))
            for visit in visits
        ]

    def _run_search(self) -> Visits:
        """One search: then come the visits that were requested meanwhile."""
        if not self._claimed.searches:
            return []
        request = self._claimed.searches.pop(0)
        result, visits = self._search(self._session, request)
        run = self._session.run
        answer = RequestResult(id=request.id, result=self._timed(request, result))
        open_requests.answer_requests(run.database, self._claimed.token, [answer], now=run.clock())
        return visits

    def _timed(self, request: OpenRequest, result: Mapping[str, object]) -> Row:
        waited = milliseconds(self._session.run.clock()) - request.requested_ms
        return {"items_new": 0, **result, "milliseconds": max(waited, 0)}


_CRASHED: Row = {
    "outcome": "failed",
    "error_kind": "crashed",
    "error": f"It was given up after {MOST_ATTEMPTS} runs that did not end.",
}


def _our_network(message: str) -> Row:
    return {"outcome": "failed", "error_kind": "our_network", "error": message}


def result_of(visit: Visit) -> Row | None:
    """The result that the task of a visit shows; None for one that has not ended, and is visited again."""
    if visit.lost:
        return None
    match visit.outcome:
        case Stored() as stored:
            return {"outcome": "stored" if stored.items_new else "unchanged", "items_new": stored.items_new}
        case NotModified():
            return {"outcome": "unchanged"}
        case Failure() as failure:
            return {"outcome": "failed", "error_kind": failure.kind, "error": failure.message}
        case CutOff(message=message):
            return _our_network(message)
        case OnHold(hold=hold):
            return {
                "outcome": "held",
                "error_kind": "host_on_hold",
                "error": f"{visit.outcome}.",
                "until": instant(hold.until),
            }
        case Refused():
            message = "This feed is not collected: it is switched off, or no longer registered."
            return {"outcome": "refused", "error_kind": "not_polled", "error": message}
    return None


def reportable(visits: Sequence[Visit]) -> Visits:
    """The visits that Dagster's events are about: not those of feeds that could not be visited, which
    are reported to the users, nor of those that another run holds."""
    return [visit for visit in visits if not isinstance(visit.outcome, HeldElsewhere | Refused)]
