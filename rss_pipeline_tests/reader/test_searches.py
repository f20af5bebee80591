"""The search for the feed of an address: what becomes of the address, the subscription and the items."""

from ipaddress import ip_network

import pytest

from rss_pipeline.collector.models.feed import Wishes
from rss_pipeline.reader.refresh import Queued, Task, TooMany
from rss_pipeline_tests.reader.requests import read_task, request_search
from rss_pipeline_tests.reader.test_refresh import run
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.readers import subscribe
from rss_pipeline_tests.support.server import Answer, FeedServer

PAGE = b"""<!doctype html><html><head><title>A site</title>
<link rel="alternate" type="application/rss+xml" href="/feed"></head><body></body></html>"""


@pytest.fixture
def pipeline(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """An installation that lets users subscribe what is on loopback; ann has no subscription."""
    server.listen("127.0.0.2")
    pipeline.set(allow_networks=(ip_network("127.0.0.0/8"),), allow_ports=frozenset({server.port}))
    subscribe(pipeline.database, "ann")
    return pipeline


def searched(pipeline: Pipeline, address: str, *, user: str = "ann", wishes: Wishes | None = None) -> Task:
    """The task of a search, after a run."""
    answer = request_search(
        pipeline.database,
        pipeline.settings,
        user_id=user,
        address=address,
        clock=pipeline.clock,
        wishes=wishes,
    )
    assert isinstance(answer, Queued)
    run(pipeline, stay=60)
    found = read_task(pipeline.database, user, answer.task_id, now=pipeline.clock())
    assert found is not None
    assert found.state == "done"
    return found


def subscriptions(pipeline: Pipeline, user: str = "ann") -> list[tuple[object, ...]]:
    rows = pipeline.rows(
        "SELECT feed_id, title, folder, wished_interval FROM subscriptions WHERE user_id = ?", user
    )
    return [tuple(row.values()) for row in rows]


def test_the_feed_of_a_web_page_is_subscribed_as_wished_and_its_items_are_stored(
    pipeline: Pipeline, server: FeedServer
) -> None:
    page = server.route("127.0.0.2", "/", Answer(body=PAGE, headers={"Content-Type": "text/html"}))
    server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b")))
    task = searched(pipeline, page, wishes=Wishes(title="Mine", folder="News", wished_interval=900))
    assert task.result is not None
    assert (task.result.outcome, task.result.items_new) == ("subscribed", 2)
    assert task.feed_id is not None
    assert pipeline.guids(task.feed_id) == ["a", "b"]
    assert subscriptions(pipeline) == [(task.feed_id, "Mine", "News", 900)]
    assert pipeline.feed(task.feed_id)["registered"] == 1
    assert len(server.asked("127.0.0.2", "/feed")) == 1, "the search's document is the first visit's"
    [user] = pipeline.rows("SELECT state_version FROM users")
    assert user["state_version"] == 1


def test_a_feed_that_somebody_has_is_shared_and_one_that_the_user_has_is_known(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    first = searched(pipeline, url)
    subscribe(pipeline.database, "ben")
    second = searched(pipeline, url, user="ben")
    third = searched(pipeline, url)
    results = [each.result for each in (first, second, third)]
    assert [result and result.outcome for result in results] == ["subscribed", "subscribed", "known"]
    assert first.feed_id == second.feed_id == third.feed_id
    assert len(pipeline.rows("SELECT id FROM feeds")) == 1


def test_the_address_that_a_feed_had_before_is_a_feed_of_its_own(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """A search, as the page, the JSON API and the Google Reader API request it."""
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    other = server.route("127.0.0.2", "/other", Answer(body=rss("b")))
    first = searched(pipeline, url)
    assert first.feed_id is not None
    pipeline.database.query("UPDATE feeds SET url = ?", [other])
    subscribe(pipeline.database, "ben")
    second = searched(pipeline, url, user="ben")
    assert second.feed_id == f"{first.feed_id}-2"
    assert [feed for feed, *_ in subscriptions(pipeline, "ben")] == [second.feed_id]
    assert (pipeline.guids(first.feed_id), pipeline.guids(second.feed_id)) == (["a"], ["a"])
    # What its server demands is no hold of the feed that was there.
    server.route("127.0.0.2", "/feed", Answer(status=429, headers={"Retry-After": "3600"}))
    pipeline.database.query("UPDATE feeds SET url = ? WHERE id = ?", [f"{other}?2", second.feed_id])
    searched(pipeline, url)
    [held] = pipeline.rows("SELECT feed_id FROM feed_holds")
    assert held["feed_id"] not in (first.feed_id, second.feed_id)


def test_what_is_no_feed_subscribes_nothing_and_says_why(pipeline: Pipeline, server: FeedServer) -> None:
    url = server.route("127.0.0.2", "/", Answer(body=b"hello", headers={"Content-Type": "text/plain"}))
    task = searched(pipeline, url)
    assert task.result is not None
    assert (task.result.outcome, task.result.error_kind) == ("failed", "not_a_feed")
    assert task.result.what_to_do
    assert subscriptions(pipeline) == []
    assert pipeline.rows("SELECT id FROM feeds") == []


@pytest.mark.slow
def test_a_page_that_never_ends_is_given_up_at_its_limit_and_subscribes_nothing(
    pipeline: Pipeline, server: FeedServer
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!doctype html><html><body>"
    endless = Answer(raw=head, endless=b"<p>more of it</p>" * 1_000)
    task = searched(pipeline, server.route("127.0.0.2", "/", endless))
    assert task.result is not None
    assert (task.result.outcome, task.result.error_kind) == ("failed", "too_large")
    assert task.result.what_to_do
    assert subscriptions(pipeline) == []


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("http://ann:secret@127.0.0.2/feed", "bad_url"),
        ("http://${HOME}/feed", "bad_url"),
        ("file:///etc/passwd", "bad_url"),
        ("", "bad_url"),
        ("http://10.1.2.3/feed", "blocked_address"),
        ("http://[::1]/feed", "blocked_address"),
    ],
)
def test_an_address_that_no_user_may_name_is_refused_without_a_request(
    pipeline: Pipeline, server: FeedServer, address: str, kind: str
) -> None:
    task = searched(pipeline, address)
    assert task.result is not None
    assert (task.result.outcome, task.result.error_kind) == ("failed", kind)
    assert "10.1.2.3" not in str(task.result.error), "of private networks nobody learns what is there"
    assert server.requests == []


def test_the_address_of_a_private_feed_leads_to_a_public_one_of_its_own(
    pipeline: Pipeline, server: FeedServer
) -> None:
    def answer(request: object) -> Answer:
        headers = getattr(request, "headers", {})
        return Answer(body=rss("secret" if "x-token" in headers else "public"))

    url = server.route("127.0.0.2", "/feed", answer)
    pipeline.register(url, "private", headers={"X-Token": "t"})
    pipeline.poll()
    task = searched(pipeline, url)
    assert task.result is not None
    assert task.result.outcome == "subscribed"
    assert task.feed_id not in (None, "private")
    assert pipeline.guids(str(task.feed_id)) == ["public"]
    assert pipeline.guids("private") == ["secret"]


def test_a_user_who_was_removed_meanwhile_subscribes_nothing(pipeline: Pipeline, server: FeedServer) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a")))
    answer = request_search(
        pipeline.database, pipeline.settings, user_id="gone", address=url, clock=pipeline.clock
    )
    assert not isinstance(answer, TooMany)
    run(pipeline, stay=60)
    found = read_task(pipeline.database, "gone", answer.task_id, now=pipeline.clock())
    assert found is not None
    assert found.result is not None
    assert found.result.outcome == "failed"
    assert pipeline.rows("SELECT id FROM feeds") == []
