"""The switch of a subscription: a known feed has articles for all of its readers, requested once, in turn."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from rss_pipeline.features.full_text import sql
from rss_pipeline.features.full_text.about import about_feed, about_item, request_article
from rss_pipeline.features.full_text.service import want
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.edit import edit_feed, unsubscribe
from rss_pipeline.reader.refresh import queue
from rss_pipeline_tests.features.full_text.made import article, paragraphs_of
from rss_pipeline_tests.features.full_text.test_articles import (
    HOST,
    asked,
    collect,
    document,
    ended,
    fetched,
    shown,
)
from rss_pipeline_tests.features.full_text.test_read_again import again
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def owner(pipeline: Pipeline) -> Caller:
    """The user who was first, and has no limit."""
    return signed_in(pipeline.database, "owner", clock=pipeline.clock)


@pytest.fixture
def ann(pipeline: Pipeline, owner: Caller) -> Caller:
    pipeline.clock.turn(seconds=1)
    return signed_in(pipeline.database, "ann", clock=pipeline.clock)


@pytest.fixture
def bob(pipeline: Pipeline, ann: Caller) -> Caller:
    pipeline.clock.turn(seconds=1)
    return signed_in(pipeline.database, "bob", clock=pipeline.clock)


def come(pipeline: Pipeline, server: FeedServer, guids: Sequence[str]) -> None:
    """Items that the feed lists from now on."""
    server.route(HOST, "/feed", Answer(body=document(server, {each: f"/{each}" for each in guids})))
    pipeline.clock.turn(minutes=1)
    pipeline.poll("feed")


def switch(pipeline: Pipeline, caller: Caller, *, on: bool) -> None:
    edit_feed(caller, pipeline.settings, "feed", full_text=on)


def wanted(pipeline: Pipeline) -> int:
    with pipeline.session() as session, session.step():
        return want(session)


def test_a_switch_has_the_articles_of_later_items_requested_once_for_all_who_want_them(
    pipeline: Pipeline, server: FeedServer, ann: Caller, bob: Caller
) -> None:
    for n in range(1, 4):
        server.route(HOST, f"/{n}", Answer(body=article(n).encode()))
    collect(pipeline, server, {"1": "/1"}, full_text=None, shared=True)
    for each in (ann, bob):
        subscribe(pipeline.database, each.user_id, "feed")
        switch(pipeline, each, on=True)
    come(pipeline, server, ["2"])
    assert fetched(pipeline).shown == 1
    assert asked(server) == ["/2"], "not the item of before"
    # An item is one for all: who reads the feed sees its article, with a switch or without.
    assert paragraphs_of(2)[0] in shown(pipeline)["2"]
    switch(pipeline, ann, on=False)
    come(pipeline, server, ["3"])
    assert fetched(pipeline).shown == 1
    unsubscribe(bob, ["feed"])
    come(pipeline, server, ["4"])
    assert (fetched(pipeline).wanted, asked(server)) == (0, ["/2", "/3"])


def test_only_subscribers_learn_anything_of_an_article(
    pipeline: Pipeline, server: FeedServer, ann: Caller, bob: Caller
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"1": "/1"}, shared=True, headers={"X-Key": "secret"})
    subscribe(pipeline.database, ann.user_id, "feed")
    assert fetched(pipeline).shown == 1
    [id] = [row["id"] for row in pipeline.items("feed") if row["guid"] == "1"]
    found = ann.ask(about_item(ann.user_id, id))
    assert found is not None
    assert found.status == "shown"
    now = pipeline.clock()
    assert ann.ask(about_feed("feed", now=now, user_id=ann.user_id)) is not None
    assert bob.ask(about_item(bob.user_id, id)) is None
    assert bob.ask(about_feed("feed", now=now, user_id=bob.user_id)) is None


def test_pages_that_a_switch_wants_have_their_turns_among_the_new_addresses_of_its_user(
    pipeline: Pipeline, server: FeedServer, owner: Caller, ann: Caller
) -> None:
    collect(pipeline, server, {}, full_text=None, shared=True)
    subscribe(pipeline.database, ann.user_id, "feed")
    switch(pipeline, ann, on=True)
    come(pipeline, server, [str(n) for n in range(70)])
    begin = pipeline.clock()
    assert wanted(pipeline) == 70
    due = pipeline.rows("SELECT next_attempt_at AS at, count(*) AS n FROM articles GROUP BY 1 ORDER BY 1")
    assert [each["n"] for each in due] == [60, 10]
    waiting = ann.ask(queue(ann.user_id, now=begin))
    assert (waiting.waiting, waiting.until) == (10, begin + timedelta(hours=1))
    state = ann.ask(about_feed("feed", now=begin, user_id=ann.user_id))
    assert state is not None
    assert (state.waiting, state.until) == (70, begin + timedelta(hours=1))
    # The owner has no limit.
    subscribe(pipeline.database, owner.user_id, "feed")
    switch(pipeline, owner, on=True)
    come(pipeline, server, ["next"])
    assert wanted(pipeline) == 1
    [at] = pipeline.rows(
        """SELECT next_attempt_at AS at FROM articles AS a JOIN items AS i ON i.id = a.item_id
        WHERE i.guid = 'next'"""
    )
    assert at["at"] == pipeline.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
    # With all switches off they leave the queue.
    for each in (owner, ann):
        switch(pipeline, each, on=False)
    wanted(pipeline)
    assert pipeline.rows("SELECT * FROM articles") == []
    assert ann.ask(queue(ann.user_id, now=pipeline.clock())).waiting == 0


def test_what_feeds_yaml_wants_counts_for_no_user(
    pipeline: Pipeline, server: FeedServer, ann: Caller
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"1": "/1"}, shared=True)
    subscribe(pipeline.database, ann.user_id, "feed")
    switch(pipeline, ann, on=True)
    assert fetched(pipeline).shown == 1
    assert pipeline.rows("SELECT * FROM new_addresses") == []
    assert ended(pipeline) == {"1": ("shown", "article")}


@EVERYWHERE
def test_a_switch_works_in_all_databases(place: Pipeline, server: FeedServer) -> None:
    for name in ("owner", "ann"):
        place.clock.turn(seconds=1)
        caller = signed_in(place.database, name, clock=place.clock)
    server.route(HOST, "/1", Answer(body=article().encode()))
    server.route(HOST, "/0", Answer(body=article(2).encode()))
    collect(place, server, {"0": "/0"}, full_text=None, shared=True)
    subscribe(place.database, caller.user_id, "feed")
    switch(place, caller, on=True)
    come(place, server, ["1", "2"])
    assert sql.is_due(place.database, now=place.clock())
    done = fetched(place)
    assert (done.shown, done.none, ended(place)["1"]) == (1, 1, ("shown", "article"))
    assert len(place.rows("SELECT * FROM new_addresses")) == 2
    state = caller.ask(about_feed("feed", now=place.clock(), user_id=caller.user_id))
    assert state is not None
    assert (state.switched, state.shown, [each.items for each in state.reasons]) == (True, 1, [1])
    assert [(each.host, each.requests) for each in state.hosts] == [(HOST, 2)]
    for row in place.items("feed"):
        assert caller.ask(about_item(caller.user_id, row["id"])) is not None
    place.rows("UPDATE articles SET html = '<p>cut</p>' WHERE status = 'shown'")
    assert again(place).shown == 1
    # The item of before has its article by its reader's word, in turn.
    [first] = [row["id"] for row in place.items("feed") if row["guid"] == "0"]
    assert request_article(caller, place.settings, first)
    assert len(place.rows("SELECT * FROM new_addresses")) == 3
    assert (fetched(place).shown, ended(place)["0"]) == (1, ("shown", "article"))
    switch(place, caller, on=False)
    assert wanted(place) == 0
    assert place.feed("feed")["full_text_after"] is None
