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
from rss_pipeline.collector.models.feed import Access
from rss_pipeline.collector.models.hold import OnHold
from rss_pipeline.collector.models.outcome import CutOff, NotModified
from rss_pipeline.collector.registry.feed_url import completed, literal, read_url, same_as
from rss_pipeline.errors import InfrastructureError, NetworkUnavailable, StorageRejected
from rss_pipeline.pipeline.adding.add_feed import visit_found
from rss_pipeline.pipeline.adding.find_feed import Found, find_feed
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits import session_steps as steps
from rss_pipeline.pipeline.visits.claim import Accesses, claim_named, go_first
from rss_pipeline.pipeline.visits.session_steps import run_through
from rss_pipeline.pipeline.visits.visit import HeldElsewhere, Refused, Stored, Visit, Visits
from rss_pipeline.reader.subscribe import AddressedFeed, known_feeds, named_statements, plan_subscriptions
from rss_pipeline.storage.accounts import user_rows as users
from rss_pipeline.storage.database import Row
from rss_pipeline.storage.feeds.feed_row import urls_by_id
from rss_pipeline.storage.feeds.stored_holds import known_holds, known_statement
from rss_pipeline.storage.feeds.subscribed import add_feeds
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.refresh.open_requests import MOST_ATTEMPTS, Answer, OpenRequest
from rss_pipeline.storage.subscriptions.listing import look_for_feed, subscription_count
from rss_pipeline.storage.subscriptions.subscriptions import MAX_SUBSCRIPTIONS, Wanted, subscribe

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
                answers.append(Answer(id=request.id, result=self._timed(request, result)))
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
        answers = [Answer(id=request.id, result=self._timed(request, result)) for request in requests]
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
                answers.append(Answer(id=request.id, result=self._timed(request, _CRASHED)))
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
        answer = Answer(id=request.id, result=self._timed(request, result))
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


# The search for the feed of an address that a user named: found, subscribed for that user, and visited.
#
# It belongs to a run (refresh_run.py): the reader makes no request to a publisher. An address is searched as
# `rss-pipeline add` does it, but never with a password and never in a private network.

_REFUSED = "The feed could not be subscribed."
_TOO_MANY = f"There would be more than {MAX_SUBSCRIPTIONS:,} subscriptions."


def search(session: Session, request: OpenRequest) -> tuple[Row, Visits]:
    """Find the feed, subscribe to it, and store the items of the document that the search has brought.

    Return the result that the task shows, and the visit of a feed that is new.
    """
    try:
        address = read_url(literal(completed(request.address or "")), {})
    except ValueError as error:
        return _failed("bad_url", f"{error}."), []
    if address.username is not None or address.password is not None:
        return _failed("bad_url", "An address with a name or a password cannot be subscribed."), []
    run = session.run
    run.objects.probe()
    [held] = run.database.batch([known_statement(run.clock())])
    holds = known_holds(held)
    session.politeness.load(holds.hosts, holds.feeds, recent_hosts=holds.recent_hosts)
    found = find_feed(session, address.url, access=Access(), allow_private=False)
    if isinstance(found, Failure):
        return _failed(found.kind, found.message), []
    return _subscribed(session, request, found)


def _subscribed(session: Session, request: OpenRequest, found: Found) -> tuple[Row, Visits]:
    database, now = session.run.database, session.run.clock()
    registered = read_url(literal(found.url), {})
    feed = AddressedFeed(url=registered.url, host=registered.host, same_as=same_as(registered.url))
    user_id, wishes = request.user_id, request.wishes
    count, stored, *taken = database.batch([subscription_count(user_id), *named_statements(user_id, [feed])])
    plan = plan_subscriptions([feed], stored.rows, urls_by_id(taken))
    if not plan.wanted:
        known = known_feeds(stored.rows)[feed.same_as]
        return {"outcome": "known", "feed_id": known["id"]}, []
    if int(count.rows[0]["n"]) >= MAX_SUBSCRIPTIONS:
        return _failed("too_many", _TOO_MANY), []
    [chosen] = plan.wanted
    wanted = Wanted(
        feed_id=chosen.feed_id,
        url=chosen.url,
        title=wishes.title,
        folder=wishes.folder,
        wished_interval=wishes.wished_interval,
    )
    try:
        *_, subscribed = database.batch(
            [
                *add_feeds(plan.new, now=now),
                *subscribe(user_id, [wanted], at=now),
                users.note_change(user_id),
                look_for_feed(user_id, wanted.feed_id),
            ]
        )
    except StorageRejected:
        # The user was removed meanwhile.
        return _failed("refused", _REFUSED), []
    if not subscribed.rows:
        # The feed got another address meanwhile.
        return _failed("refused", _REFUSED), []
    result: Row = {"outcome": "subscribed", "feed_id": wanted.feed_id}
    if not plan.new:
        return result, []
    visit = visit_found(session, wanted.feed_id, found, {})
    items_new = visit.outcome.items_new if isinstance(visit.outcome, Stored) else 0
    return {**result, "items_new": items_new}, [visit]


def _failed(kind: str, message: str) -> Row:
    return {"outcome": "failed", "error_kind": kind, "error": message}
