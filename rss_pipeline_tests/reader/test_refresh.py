"""Refresh now, from the user's request to the result of its task: the steps of a run, without Dagster."""

import threading
from collections.abc import Callable, Collection
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.collector.models.outcome import NotModified
from rss_pipeline.errors import NetworkUnavailable, ObjectStoreUnavailable
from rss_pipeline.pipeline.session.session import Session
from rss_pipeline.pipeline.visits.claim import claim_named, wait_for
from rss_pipeline.pipeline.visits.session_steps import backup, extract_images, parse, store
from rss_pipeline.reader.edit import SubscriptionChanges, edit_feeds
from rss_pipeline.reader.failures import what_to_do
from rss_pipeline.reader.refresh import (
    Held,
    NotPolled,
    NotSubscribed,
    Queued,
    RefreshAnswer,
    Task,
    VisitRunning,
    read_mark,
    refresh_feed,
    refresh_feeds,
)
from rss_pipeline.reader.refresh_run import Requests
from rss_pipeline.reader.searches import search
from rss_pipeline.storage.feeds import claims, leases
from rss_pipeline.storage.feeds.claimable import Named
from rss_pipeline.storage.objects import ObjectStore
from rss_pipeline.storage.refresh import open_requests
from rss_pipeline.storage.subscriptions.chosen import Scope
from rss_pipeline.storage.subscriptions.refreshes import request_many
from rss_pipeline_tests.pipeline.visits.faults.test_our_outage import feeds_that_answered
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.reader.requests import read_task, request_refresh
from rss_pipeline_tests.storage.values import change
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def feed(pipeline: Pipeline, server: FeedServer) -> str:
    """A feed that was visited once, with the item a; ann subscribes to it."""
    return subscribed(pipeline, server, "feed", "127.0.0.2")


def subscribed(pipeline: Pipeline, server: FeedServer, id: str, host: str) -> str:
    pipeline.register(server.route(host, "/feed", Answer(body=rss("a"))), id, interval="12h")
    pipeline.poll()
    subscribe(pipeline.database, "ann", id)
    server.forget()
    # A visit by hand comes a minute after the last answer.
    pipeline.clock.turn(minutes=1)
    return id


def request(pipeline: Pipeline, feed_id: str, user: str = "ann") -> RefreshAnswer:
    return request_refresh(
        pipeline.database, pipeline.settings, user_id=user, feed_id=feed_id, clock=pipeline.clock
    )


def queued(pipeline: Pipeline, feed_id: str, user: str = "ann") -> str:
    answer = request(pipeline, feed_id, user)
    assert isinstance(answer, Queued)
    return answer.task_id


def task(pipeline: Pipeline, id: str, user: str = "ann") -> Task:
    found = read_task(pipeline.database, user, id, now=pipeline.clock())
    assert found is not None
    return found


def run(
    pipeline: Pipeline,
    *,
    stay: float = 0,
    objects: ObjectStore | None = None,
    before_the_rest: Callable[[], object] = lambda: None,
    suspects: Collection[str] | None = None,
) -> None:
    """The work of a run of the job, a second after the one before."""
    pipeline.clock.turn(seconds=1)
    with pipeline.session(objects=objects) as session, session.step():
        steps_of_a_run(session, stay=stay, before_the_rest=before_the_rest, suspects=suspects)


def steps_of_a_run(
    session: Session,
    *,
    stay: float = 0,
    before_the_rest: Callable[[], object] = lambda: None,
    suspects: Collection[str] | None = None,
) -> None:
    requests = Requests(session, accesses={}, suspects=suspects, search=search, stay_seconds=stay)
    visits = requests.fetch(requests.claim())
    for step in (backup, parse, store):
        visits = step(session, visits)
    requests.answer(visits)
    visits = extract_images(session, visits)
    session.leases.end({visit.token for visit in visits})
    before_the_rest()
    requests.visit_the_rest()


def is_waiting(pipeline: Pipeline) -> tuple[int, int]:
    """Requests that are open, and those among them that a run could begin with."""
    found = open_requests.waiting(pipeline.database, now=pipeline.clock())
    return found.count, found.can_begin


def test_a_refresh_stores_the_new_items_and_its_task_counts_them(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", "c")))
    before = read_mark(pipeline.settings)
    id = queued(pipeline, feed)
    assert read_mark(pipeline.settings) != before, "the processes of `up` are told"
    assert (task(pipeline, id).state, task(pipeline, id).result) == ("queued", None)
    run(pipeline)
    assert pipeline.guids(feed) == ["a", "b", "c"]
    done = task(pipeline, id)
    assert (done.state, done.feed_id, done.finished_at) == ("done", feed, pipeline.clock())
    assert done.result is not None
    assert (done.result.outcome, done.result.items_new, done.result.milliseconds) == ("stored", 2, 1000)
    assert done.result.what_to_do is None
    assert is_waiting(pipeline) == (0, 0)


def test_all_feeds_of_a_user_or_a_folder_are_requested_in_one_act(
    pipeline: Pipeline, server: FeedServer
) -> None:
    ann = signed_in(pipeline.database, "ann", clock=pipeline.clock)
    for n, id in enumerate(("one", "two", "off"), start=2):
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss("a"))), id, interval="12h")
    pipeline.poll()
    subscribe(pipeline.database, ann.user_id, "one", "two", "off")
    edit_feeds(ann, {"one": SubscriptionChanges(folder="News")})
    change(pipeline.database, "UPDATE feeds SET enabled = 0 WHERE id = 'off'")
    before = read_mark(pipeline.settings)
    assert refresh_feeds(ann, pipeline.settings, folder="Empty").requested == 0
    assert read_mark(pipeline.settings) == before
    found = refresh_feeds(ann, pipeline.settings, folder="News")
    assert (found.feeds, found.requested, found.off, found.held, found.over) == (1, 1, 0, 0, 0)
    assert read_mark(pipeline.settings) != before, "the processes of `up` are told"
    found = refresh_feeds(ann, pipeline.settings)
    assert (found.feeds, found.requested, found.off, found.held, found.over) == (3, 2, 1, 0, 0)
    joined = refresh_feed(ann, pipeline.settings, "two")
    assert isinstance(joined, Queued), "it joins the request for all"
    assert refresh_feed(ann, pipeline.settings, "unknown") == NotSubscribed()


def test_a_refresh_right_after_an_answer_waits_for_its_minute_and_is_not_lost(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Times of one feed, of many, and of one that is requested by its name."""
    one, two = "one", "two"
    for id, host in ((one, "127.0.0.2"), (two, "127.0.0.3")):
        pipeline.register(server.route(host, "/feed", Answer(body=rss("a"))), id, interval="12h")
    pipeline.poll()
    subscribe(pipeline.database, "ann", one, two)
    server.forget()
    begins_at = pipeline.clock() + timedelta(minutes=1)
    pipeline.clock.turn(seconds=10)

    answer = request(pipeline, one)
    assert isinstance(answer, Queued)
    assert (answer.begins_at, answer.delay_seconds) == (begins_at, 52)
    pipeline.database.batch(request_many("ann", Scope(), now=pipeline.clock()))
    [row] = pipeline.rows("SELECT id FROM refresh_requests WHERE feed_id = 'two'")
    tasks = [answer.task_id, row["id"]]
    found = open_requests.waiting(pipeline.database, now=pipeline.clock())
    assert (found.count, found.can_begin, found.soon) == (0, 0, 2), "no run is started for them"
    run(pipeline)
    assert server.requests == []
    for id in tasks:
        assert (task(pipeline, id).state, task(pipeline, id).begins_at) == ("queued", begins_at)

    with pipeline.session() as session:
        [refused] = claim_named(session, [one], {})
        assert str(refused.outcome).endswith(
            f"a visit by hand waits a minute after that: {instant(begins_at)}"
        )
        pipeline.clock.now = begins_at - timedelta(seconds=1)
        pipeline.after(0.1, lambda: pipeline.clock.turn(seconds=1))
        [visit] = wait_for(session, [refused], pause=0.02)
        assert isinstance(visit.outcome, NotModified), "one that a materialization names is waited for"
    assert len(server.requests) == 1
    run(pipeline)
    assert [task(pipeline, id).state for id in tasks] == ["done", "done"]
    assert len(server.requests) == 2, "the feed that was visited meanwhile is not visited again"

    # A feed that is due does not wait: a poll would visit it as well.
    pipeline.database.query("UPDATE feeds SET next_fetch_at = ?", [instant(pipeline.clock())])
    due = request(pipeline, one)
    assert isinstance(due, Queued)
    assert due.begins_at is None


def test_a_refresh_is_conditional_and_an_unchanged_feed_is_no_error(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a"), etag='"1"'))
    pipeline.register(url, "feed", interval="12h")
    pipeline.poll()
    subscribe(pipeline.database, "ann", "feed")
    pipeline.clock.turn(minutes=1)
    id = queued(pipeline, "feed")
    run(pipeline)
    assert server.requests[-1].headers["if-none-match"] == '"1"'
    result = task(pipeline, id).result
    assert result is not None
    assert (result.outcome, result.items_new) == ("unchanged", 0)


def test_a_feed_that_fails_says_why_and_what_the_user_can_do(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    server.route("127.0.0.2", "/feed", Answer(status=410))
    id = queued(pipeline, feed)
    run(pipeline)
    result = task(pipeline, id).result
    assert result is not None
    assert (result.outcome, result.error_kind) == ("failed", "gone")
    assert result.error
    assert result.what_to_do == what_to_do("gone")


def test_a_host_that_wants_no_request_is_left_alone_and_the_answer_says_until_when(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    server.route("127.0.0.2", "/feed", Answer(status=429, headers={"Retry-After": "600"}))
    id = queued(pipeline, feed)
    run(pipeline)
    result = task(pipeline, id).result
    assert result is not None
    assert result.outcome == "failed"
    server.forget()
    answer = request(pipeline, feed)
    assert isinstance(answer, Held)
    assert answer.until >= pipeline.clock() + timedelta(seconds=600)
    run(pipeline)
    assert server.requests == []


def test_who_does_not_subscribe_a_feed_refreshes_nothing(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    subscribe(pipeline.database, "ben")
    assert request(pipeline, feed, "ben") == NotSubscribed()
    assert request(pipeline, "unknown", "ben") == NotSubscribed()
    pipeline.database.query("UPDATE feeds SET enabled = 0")
    assert isinstance(request(pipeline, feed), NotPolled)
    run(pipeline)
    assert server.requests == []


@pytest.mark.slow
def test_two_hundred_clicks_on_fifty_feeds_are_one_run_and_one_request_a_feed(
    pipeline: Pipeline, server: FeedServer
) -> None:
    ids = []
    for number in range(50):
        url = server.route(f"127.0.1.{number + 2}", "/feed", Answer(body=rss("a")))
        ids.append(pipeline.register(url, f"f{number}", interval="12h"))
    pipeline.poll()
    subscribe(pipeline.database, "ann", *ids)
    server.forget()
    pipeline.clock.turn(minutes=1)
    tasks = [request(pipeline, ids[click % 50]) for click in range(200)]
    run(pipeline)
    assert len(server.requests) == 50
    assert len({request.host for request in server.requests}) == 50
    found = {answer.task_id for answer in tasks if isinstance(answer, Queued)}
    assert len(found) == 50
    assert {task(pipeline, id).state for id in found} == {"done"}


def test_who_requests_many_feeds_lets_no_one_else_wait_for_all_of_them(
    pipeline: Pipeline, server: FeedServer
) -> None:
    pipeline.set(fetch_concurrency=1)
    slow = Answer(body=rss("a"), delay=0.05)
    ids = [
        pipeline.register(server.route(f"127.0.1.{n}", "/feed", slow), f"f{n}", interval="12h")
        for n in range(2, 9)
    ]
    *anns, bens = ids
    pipeline.poll()
    subscribe(pipeline.database, "ann", *ids)
    subscribe(pipeline.database, "ben", bens, anns[-1])
    pipeline.clock.turn(minutes=1)

    def claimed(limit: int) -> list[str | None]:
        found = open_requests.claim_requests(
            pipeline.database, run_id="run", token="t", lease_seconds=45, limit=limit, now=pipeline.clock()
        )
        open_requests.release_requests(pipeline.database, "t")
        leases.end(pipeline.database, "t", forgive=True)
        return [request.feed_id for request in found]

    for id in anns:
        queued(pipeline, id)
        pipeline.clock.turn(seconds=1)
    queued(pipeline, bens, "ben")
    # Ben waits for one of ann's as well, and not for those before it.
    request(pipeline, anns[-1], "ben")
    assert claimed(3) == [anns[0], anns[-1], bens]
    server.forget()
    run(pipeline)
    hosts = [request.host for request in server.requests]
    assert len(hosts) == 7
    assert {"127.0.1.7", "127.0.1.8"} <= set(hosts[:3])
    # Who has had many comes after who has had none, also in the next run.
    pipeline.clock.turn(minutes=1)
    queued(pipeline, anns[1])
    pipeline.clock.turn(seconds=1)
    subscribe(pipeline.database, "cy", anns[2])
    queued(pipeline, anns[2], "cy")
    assert claimed(1) == [anns[2]]


def test_a_feed_that_is_being_visited_is_done_when_that_visit_is(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    pipeline.clock.turn(seconds=1)
    poll = claims.claim(
        pipeline.database,
        Named(ids=[feed], now=pipeline.clock()),
        run_id="poll",
        lease_seconds=60,
        limit=1,
    )
    answer = request(pipeline, feed)
    assert isinstance(answer, VisitRunning)
    assert is_waiting(pipeline) == (1, 0)
    run(pipeline)
    assert server.requests == []
    assert task(pipeline, answer.task_id).state == "queued"
    pipeline.database.query("UPDATE feeds SET last_visited_at = '2026-03-02T13:00:00Z'")
    leases.end(pipeline.database, poll.token, forgive=True)
    assert is_waiting(pipeline) == (0, 0)
    assert task(pipeline, answer.task_id).state == "done"
    assert server.requests == []


def test_the_visit_that_a_killed_poll_left_is_made_by_the_next_run(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    wanted = Named(ids=[feed], now=pipeline.clock())
    claims.claim(pipeline.database, wanted, run_id="poll", lease_seconds=60, limit=1)
    answer = request(pipeline, feed)
    assert isinstance(answer, VisitRunning)
    pipeline.lapse_leases()
    assert is_waiting(pipeline) == (1, 1)
    run(pipeline)
    assert len(server.requests) == 1
    assert task(pipeline, answer.task_id).state == "done"


def test_what_is_requested_while_a_run_works_is_visited_by_the_same_run(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    other = subscribed(pipeline, server, "other", "127.0.0.3")
    queued(pipeline, feed)
    later: list[str] = []
    run(pipeline, stay=60, before_the_rest=lambda: later.append(queued(pipeline, other)))
    assert [request.host for request in server.requests] == ["127.0.0.2", "127.0.0.3"]
    assert task(pipeline, later[0]).state == "done"


@pytest.mark.slow
def test_a_refresh_waits_for_a_feed_of_its_run_that_another_run_holds_until_then(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    wanted = Named(ids=[feed], now=pipeline.clock())
    held = claims.claim(pipeline.database, wanted, run_id="poll", lease_seconds=60, limit=1)
    answer = request(pipeline, feed)
    assert isinstance(answer, VisitRunning)
    release = threading.Timer(0.2, lambda: leases.end(pipeline.database, held.token, forgive=True))
    run(pipeline, stay=60, before_the_rest=release.start)
    release.join()
    assert len(server.requests) == 1
    assert task(pipeline, answer.task_id).state == "done"


def test_a_refresh_visits_a_feed_of_a_run_that_died_after_this_one_had_begun(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    wanted = Named(ids=[feed], now=pipeline.clock())
    claims.claim(pipeline.database, wanted, run_id="poll", lease_seconds=60, limit=1)
    answer = request(pipeline, feed)
    assert isinstance(answer, VisitRunning)

    def die() -> None:
        pipeline.database.query("DELETE FROM leases WHERE run_id = 'poll'")

    run(pipeline, stay=5, suspects=pipeline.sync().suspects, before_the_rest=die)
    assert len(server.requests) == 1
    assert task(pipeline, answer.task_id).state == "done"


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("UPDATE refresh_requests SET feed_id = 'forgotten'", "refused"),
        ("UPDATE feeds SET enabled = 0", "refused"),
        ("UPDATE feeds SET registered = 0", "refused"),
        ("UPDATE feeds SET needs_access = 1", "unchanged"),
        ("UPDATE feeds SET unclosed_claims = 1", "unchanged"),
        ("UPDATE feeds SET unclosed_claims = 9", "failed"),
        (
            """INSERT INTO hosts (host, hold_until, reason)
            SELECT host, strftime('%Y-%m-%dT%H:%M:%SZ', last_visited_at, '+1 hour'), '429' FROM feeds""",
            "held",
        ),
    ],
)
def test_a_request_for_a_feed_that_can_no_longer_be_visited_is_answered_all_the_same(
    pipeline: Pipeline, feed: str, change: str, outcome: str
) -> None:
    id = queued(pipeline, feed)
    pipeline.database.query(change)
    run(pipeline)
    result = task(pipeline, id).result
    assert result is not None
    assert result.outcome == outcome
    assert is_waiting(pipeline) == (0, 0)


class FullStore:
    """An ObjectStore that is found full before any request."""

    def probe(self) -> None:
        raise ObjectStoreUnavailable("object folder: [Errno 28] No space left on device; make room")


def test_a_store_that_does_not_work_loses_no_request_and_costs_no_attempt(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    id = queued(pipeline, feed)
    for _ in range(5):
        with pytest.raises(ObjectStoreUnavailable):
            run(pipeline, objects=FullStore())  # type: ignore[arg-type]
        assert is_waiting(pipeline) == (1, 1)
    assert server.requests == []
    run(pipeline)
    result = task(pipeline, id).result
    assert result is not None
    assert result.outcome == "unchanged"


def test_where_our_own_network_is_down_the_users_see_it(pipeline: Pipeline) -> None:
    ids = feeds_that_answered(pipeline, 1, 2, 3, 4)
    subscribe(pipeline.database, "ann", *ids)
    pipeline.clock.turn(minutes=1)
    tasks = [queued(pipeline, id) for id in ids]
    with pytest.raises(NetworkUnavailable):
        run(pipeline)
    for id in tasks:
        result = task(pipeline, id).result
        assert result is not None
        assert (result.outcome, result.error_kind) == ("failed", "our_network")
    assert is_waiting(pipeline) == (0, 0)


def test_a_request_that_three_runs_did_not_survive_is_given_up(
    pipeline: Pipeline, feed: str, server: FeedServer
) -> None:
    id = queued(pipeline, feed)
    for number in range(3):
        claimed = open_requests.claim_requests(
            pipeline.database,
            run_id=f"dead{number}",
            token=f"t{number}",
            lease_seconds=60,
            limit=9,
            now=pipeline.clock(),
        )
        assert len(claimed) == 1
        pipeline.lapse_leases()
    run(pipeline)
    result = task(pipeline, id).result
    assert result is not None
    assert (result.outcome, result.error_kind) == ("failed", "crashed")
    assert server.requests == []
