"""The registry on its way into the feeds table."""

from typing import Any

import pytest

from rss_pipeline.collector.models.clock import instant
from rss_pipeline.errors import RegistryError
from rss_pipeline.pipeline.visits.visit import Refused, Stored
from rss_pipeline.storage.feeds import due
from rss_pipeline.storage.feeds.claimable import Due
from rss_pipeline_tests.support.pipeline import Pipeline, ends, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"


def take_out(pipeline: Pipeline, *ids: str) -> list[dict[str, Any]]:
    """Take feeds out of the registry; those taken."""
    gone = [feed for feed in pipeline.feeds if feed["id"] in ids]
    pipeline.feeds = [feed for feed in pipeline.feeds if feed["id"] not in ids]
    pipeline.write_registry()
    return gone


def refused(pipeline: Pipeline, id: str) -> str:
    """The sentence of a refresh by hand that may not visit the feed."""
    visit = pipeline.refresh(id)[id]
    assert isinstance(visit.outcome, Refused)
    return visit.outcome.message


def test_a_poll_syncs_first_so_a_new_feed_is_visited_by_the_poll_that_finds_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]


def test_a_new_url_is_a_row_that_is_due_now(pipeline: Pipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", title="Mine", interval="2h")
    synced = pipeline.sync()
    assert [spec.id for spec in synced.changes.added] == [id]
    feed = pipeline.feed(id)
    assert (feed["url"], feed["title"], feed["interval"]) == ("http://example.com/feed", "Mine", 7200)
    assert feed["next_fetch_at"] == feed["created_at"] == instant(pipeline.clock())

    assert pipeline.sync().changes.is_empty


def test_the_folder_of_feeds_yaml_is_stored_and_follows_it(pipeline: Pipeline) -> None:
    id = pipeline.register("http://example.com/feed", "feed", folder="News / Europe")
    pipeline.sync()
    assert pipeline.feed(id)["folder"] == "News/Europe"
    assert pipeline.sync().changes.is_empty
    del pipeline.feeds[0]["folder"]
    pipeline.write_registry()
    pipeline.sync()
    assert pipeline.feed(id)["folder"] is None


def test_a_feed_that_is_gone_is_not_scheduled_keeps_all_it_has_and_comes_back(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n, id in enumerate(("first", "second", "third"), start=2):
        pipeline.register(server.route(f"127.0.0.{n}", "/feed", Answer(body=rss(id), etag='"1"')), id)
    pipeline.poll()
    gone = take_out(pipeline, "first")
    server.forget()
    pipeline.poll(all_feeds=True)
    assert server.asked("127.0.0.2") == []
    assert pipeline.feed("first")["registered"] == 0
    assert pipeline.guids("first") == ["first"]

    assert "no longer in feeds.yaml, so it is not fetched; add it there again to do so" in refused(
        pipeline, "first"
    )
    assert server.asked("127.0.0.2") == []

    pipeline.feeds = [*pipeline.feeds, *gone]
    pipeline.write_registry()
    server.route("127.0.0.2", "/feed", Answer(body=rss("first", "more"), etag='"2"'))
    pipeline.sync()
    assert pipeline.feed("first")["next_fetch_at"] == instant(pipeline.clock())
    pipeline.poll()
    assert pipeline.guids("first") == ["first", "more"]
    assert server.requests[-1].headers["if-none-match"] == '"1"', "its validators were kept too"


def test_a_feed_that_is_switched_off_keeps_its_place_and_says_so(pipeline: Pipeline) -> None:
    id = pipeline.register("http://127.0.0.2:9/feed", "feed", enabled=False)
    pipeline.poll(all_feeds=True)
    assert pipeline.feed(id)["last_visited_at"] is None
    assert "`enabled: false` in feeds.yaml; remove that" in refused(pipeline, id)


WRONG = {
    "not YAML": "feeds: [",
    "an unknown key": "feeds:\n- url: http://example.com/feed\n  intervall: 1h\n",
    "nothing": "",
    "no text": "\0\0\0",
}


@pytest.mark.parametrize("text", [*WRONG.values(), None], ids=[*WRONG, "no file"])
def test_a_wrong_registry_changes_nothing_and_the_poll_goes_on_with_the_feeds_as_they_were(
    text: str | None, pipeline: Pipeline, server: FeedServer
) -> None:
    id = pipeline.register(server.route(HOST, "/feed", Answer(body=rss("a"))), "feed")
    pipeline.sync()
    before = pipeline.rows("SELECT * FROM feeds")
    if text is None:
        pipeline.settings.feeds_file.unlink()
    else:
        pipeline.settings.feeds_file.write_text(text, "utf-8")
    with pytest.raises(RegistryError, match="nothing was changed") as raised:
        pipeline.sync()
    assert str(pipeline.settings.feeds_file) in str(raised.value)
    assert pipeline.rows("SELECT * FROM feeds") == before
    pipeline.poll()
    assert pipeline.guids(id) == ["a"]


def test_feeds_with_a_password_wait_while_the_registry_cannot_be_read(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """Without it they would collect failures that are not their own."""
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    locked = pipeline.register(url.replace("//", "//me:secret@"), "locked")
    headed = pipeline.register(
        server.route("127.0.0.3", "/feed", Answer(body=rss("b"))), "headed", headers={"X-Key": "secret"}
    )
    plain = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("c"))), "plain")
    pipeline.sync()
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    rounds = pipeline.poll()
    assert ends(rounds, lambda visit: visit.feed.id) == [plain]
    pipeline.poll(all_feeds=True)
    for id in (locked, headed):
        assert "needs the headers or the password that feeds.yaml has for it" in refused(pipeline, id)
        feed = pipeline.feed(id)
        assert (feed["consecutive_failures"], feed["unclosed_claims"]) == (0, 0)
        assert (feed["lease_token"], feed["last_visited_at"]) == (None, None)
    assert pipeline.rows("SELECT token FROM leases") == []
    assert {request.host for request in server.requests} == {"127.0.0.4"}

    assert not due.is_claimable(pipeline.database, Due(now=pipeline.clock())), "or polls would not end"
    pipeline.write_registry()
    pipeline.clock.turn(minutes=5)
    pipeline.poll()
    assert (pipeline.guids(locked), pipeline.guids(headed)) == (["a"], ["b"])


def test_a_waiting_feed_of_a_dead_run_does_not_keep_the_others_of_it_from_being_visited(
    pipeline: Pipeline, server: FeedServer
) -> None:
    url = server.route(HOST, "/feed", Answer(body=rss("a")))
    locked = pipeline.register(url.replace("//", "//me:secret@"), "a-locked")
    plain = pipeline.register(server.route("127.0.0.4", "/feed", Answer(body=rss("c"))), "plain")
    pipeline.sync()
    pipeline.hold(locked, plain)
    pipeline.lapse_leases()
    pipeline.settings.feeds_file.write_text("feeds: [", "utf-8")
    assert ends(pipeline.poll(), lambda visit: (visit.feed.id, type(visit.outcome))) == [(plain, Stored)]
    assert (pipeline.feed(locked)["lease_token"], pipeline.rows("SELECT token FROM leases")) == (None, [])


def test_a_registry_that_would_unschedule_more_than_half_is_refused_unless_it_is_meant(
    pipeline: Pipeline,
) -> None:
    ids = [pipeline.register(f"http://example.com/{n}", f"feed-{n:02}") for n in range(12)]
    pipeline.sync()
    take_out(pipeline, *ids[:7])
    with pytest.raises(RegistryError, match=r"7 of 12 feeds would no longer be scheduled.*poll --yes"):
        pipeline.sync()
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 12
    pipeline.sync(yes=True)
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 5


@pytest.mark.parametrize(("before", "gone"), [(12, 6), (10, 10)])
def test_half_of_the_feeds_and_all_of_a_small_registry_may_go_without_a_question(
    before: int, gone: int, pipeline: Pipeline
) -> None:
    ids = [pipeline.register(f"http://example.com/{n}", f"feed-{n:02}") for n in range(before)]
    pipeline.sync()
    take_out(pipeline, *ids[:gone])
    assert len(pipeline.sync().changes.unregistered) == gone


def test_a_variable_takes_its_value_from_the_environment(pipeline: Pipeline) -> None:
    pipeline.register("http://${FEED_HOST}/feed", "feed", title="${FEED_TITLE}")
    pipeline.sync(environ={"FEED_HOST": "example.com", "FEED_TITLE": "Named elsewhere"})
    feed = pipeline.feed("feed")
    assert (feed["url"], feed["title"]) == ("http://example.com/feed", "Named elsewhere")
    with pytest.raises(RegistryError, match="FEED_HOST"):
        pipeline.sync(environ={"FEED_TITLE": "x"})
    assert pipeline.feed("feed")["registered"] == 1


def test_twelve_hundred_feeds_sync_and_sync_again(pipeline: Pipeline) -> None:
    """The database takes a megabyte a parameter."""
    ids = [f"feed-{n:04}" for n in range(1200)]
    pipeline.feeds = [
        {"url": f"http://example.com/{id}/{'p' * 400}", "id": id, "title": "t" * 500} for id in ids
    ]
    pipeline.write_registry()
    pipeline.sync()
    assert len(pipeline.rows("SELECT id FROM feeds WHERE registered = 1")) == 1200
    assert pipeline.sync().changes.is_empty
