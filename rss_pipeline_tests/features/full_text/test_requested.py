"""The article of one item, requested by a user whatever the feed: shown to those who requested it alone."""

import pytest

from rss_pipeline.features.full_text import sql
from rss_pipeline.features.full_text.about import about_item, hide_article, request_article
from rss_pipeline.features.full_text.service import fetch_articles, want
from rss_pipeline.reader.accounts.callers import Caller
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.reader.edit import edit_feed, unsubscribe
from rss_pipeline.reader.item_queries import item
from rss_pipeline.reader.user_backups import back_up_user
from rss_pipeline.storage.items import body_parts
from rss_pipeline_tests.features.full_text.made import article, paragraphs_of
from rss_pipeline_tests.features.full_text.test_articles import HOST, asked, collect, ended, fetched
from rss_pipeline_tests.features.full_text.test_read_again import again
from rss_pipeline_tests.features.full_text.test_switch import come
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.places import EVERYWHERE
from rss_pipeline_tests.support.server import Answer, FeedServer

TEASER, ARTICLE = "The bridge over the harbour is open.", paragraphs_of()[0]


def readers(place: Pipeline, *names: str) -> list[Caller]:
    """Users who subscribe to the feed; the first one is the owner, who has no limits."""
    found = []
    for name in names:
        place.clock.turn(seconds=1)
        caller = signed_in(place.database, name, clock=place.clock)
        subscribe(place.database, caller.user_id, "feed")
        found.append(caller)
    return found


def shown(place: Pipeline, bodies: Bodies, caller: Caller, id: str) -> str:
    """The text of an item as a user has it: of the article, the teaser, or neither."""
    row = caller.ask(item(caller.user_id, id))
    assert row is not None
    html = bodies.all_of(place.database, [row.body_key])[id].html
    return "article" if ARTICLE in html else "teaser" if TEASER in html else html


def ids(place: Pipeline) -> dict[str, str]:
    return {row["guid"]: row["id"] for row in place.items("feed")}


def requested(place: Pipeline) -> int:
    """Run the job for what users wait for; the number of articles that are shown by it."""
    place.clock.turn(seconds=1)
    with place.session() as session, session.step():
        return fetch_articles(session, is_requested=True).shown


@EVERYWHERE
def test_an_article_is_requested_once_and_shown_to_those_alone_who_requested_it(
    place: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(place, server, {"1": "/1"}, full_text=None, shared=True)
    ann, bob, carl = readers(place, "ann", "bob", "carl")
    bodies, id = Bodies(place.objects, seconds=lambda: 0.0), ids(place)["1"]
    assert {shown(place, bodies, each, id) for each in (ann, bob)} == {"teaser"}
    assert request_article(ann, place.settings, id)
    assert sql.next_requested(place.database) == place.clock()
    state = ann.ask(about_item(ann.user_id, id))
    others = bob.ask(about_item(bob.user_id, id))
    assert state is not None
    assert others is not None
    assert (state.status, others.status, others.can_fetch) == ("pending", "off", True)
    assert requested(place) == 1
    assert sql.next_requested(place.database) is None
    # In turn, from one cache: each has their own, and search, topics and the others the feed's.
    for _ in range(2):
        assert [shown(place, bodies, each, id) for each in (ann, bob)] == ["article", "teaser"]
    [common] = body_parts.keys_of(place.database.batch([body_parts.versions([id])])[0]).values()
    assert TEASER in bodies.all_of(place.database, [common])[id].html
    assert place.rows("SELECT * FROM item_versions") == []
    assert request_article(bob, place.settings, id)
    assert shown(place, bodies, bob, id) == "article", "at once"
    assert fetched(place).shown == 0
    assert asked(server) == ["/1"], "one request, whoever asks"
    assert hide_article(ann, id)
    assert [shown(place, bodies, each, id) for each in (ann, bob, carl)] == ["teaser", "article", "teaser"]
    assert request_article(ann, place.settings, id)
    # It is that of the page as it is read later, too.
    place.rows("UPDATE articles SET html = '<p>cut</p>'")
    assert again(place).shown == 1
    assert [shown(place, bodies, each, id) for each in (ann, bob, carl)] == ["article", "article", "teaser"]
    unsubscribe(ann, ["feed"])
    assert not request_article(ann, place.settings, id)
    place.rows("DELETE FROM users WHERE id = ?", bob.user_id)
    assert [row["user_id"] for row in place.rows("SELECT user_id FROM article_readers")] == [ann.user_id]


@pytest.mark.parametrize(
    ("answer", "link", "closed", "said"),
    [
        (Answer(status=403), "/1", False, "403"),
        (Answer(status=401), "/1", True, "are sent to the feed alone"),
        (Answer(body=b"<html><body><p>Three words only</p></body></html>"), "/1", False, "a few words"),
        (Answer(), "", False, "no link to a page"),
        (Answer(), "gopher://a.example/1", False, ""),
    ],
)
def test_an_item_says_why_its_article_is_not_shown(
    pipeline: Pipeline, server: FeedServer, answer: Answer, link: str, closed: bool, said: str
) -> None:
    server.route(HOST, "/1", answer)
    more = {"headers": {"X-Key": "secret"}} if closed else {}
    collect(pipeline, server, {"1": link or "/1"}, full_text=None, shared=True, **more)
    [ann, bob] = readers(pipeline, "ann", "bob")
    id = ids(pipeline)["1"]
    if not link:
        pipeline.rows("UPDATE items SET link = NULL")
    assert request_article(ann, pipeline.settings, id)
    assert requested(pipeline) == 0
    found = ann.ask(about_item(ann.user_id, id))
    assert found is not None
    assert (found.status, found.can_fetch) == ("none", False)
    assert found.sentence is not None
    assert said in found.sentence
    other = bob.ask(about_item(bob.user_id, id))
    assert other is not None
    assert other.status == ("off" if link else "none")
    assert (other.reason is None) == bool(link)
    # The feed's secret is sent to no page.
    assert all("x-key" not in each.headers for each in server.asked(HOST) if each.target == "/1")


def test_a_request_keeps_its_place_beside_a_switch(pipeline: Pipeline, server: FeedServer) -> None:
    for n in range(1, 4):
        server.route(HOST, f"/{n}", Answer(body=article(n).encode()))
    collect(pipeline, server, {"1": "/1"}, full_text=None, shared=True)
    ann, bob = readers(pipeline, "ann", "bob")
    edit_feed(bob, pipeline.settings, "feed", full_text=True)
    come(pipeline, server, ["2", "3"])
    # One is shown to Ann before the switch takes it for all, the other waits.
    request_article(ann, pipeline.settings, ids(pipeline)["2"])
    assert requested(pipeline) == 1
    request_article(ann, pipeline.settings, ids(pipeline)["3"])
    assert fetched(pipeline).shown == 1
    assert {row["for_all"] for row in pipeline.rows("SELECT for_all FROM articles")} == {1}
    assert len(pipeline.rows("SELECT * FROM item_versions")) == 2
    # What the switch has waiting, and Ann wants, stays hers without it.
    come(pipeline, server, ["4", "5"])
    with pipeline.session() as session, session.step():
        want(session)
    request_article(ann, pipeline.settings, ids(pipeline)["4"])
    edit_feed(bob, pipeline.settings, "feed", full_text=False)
    with pipeline.session() as session, session.step():
        want(session)
    waiting = pipeline.rows(
        """SELECT i.guid, a.for_all FROM articles AS a JOIN items AS i ON i.id = a.item_id
        WHERE a.status = 'pending'"""
    )
    assert waiting == [{"guid": "4", "for_all": 0}]


def test_requests_have_their_turns_and_the_user_s_backup_has_them(
    pipeline: Pipeline, server: FeedServer
) -> None:
    collect(pipeline, server, {str(n): f"/{n}" for n in range(1, 63)}, full_text=None, shared=True)
    _, ann = readers(pipeline, "owner", "ann")
    for guid, id in ids(pipeline).items():
        if guid != "old":
            request_article(ann, pipeline.settings, id)
    due = pipeline.rows("SELECT next_attempt_at AS at, count(*) AS n FROM articles GROUP BY 1 ORDER BY 1")
    assert [each["n"] for each in due] == [60, 2]
    assert ended(pipeline)["1"][0] == "pending"
    assert back_up_user(pipeline.database, pipeline.objects, ann.user_id, now=pipeline.clock())
    rows = pipeline.rows("SELECT item_id FROM article_readers ORDER BY item_id")
    pipeline.rows("DELETE FROM article_readers")
    kept = "[" + ",".join(f'["{row["item_id"]}"]' for row in rows) + ', ["gone"]]'
    pipeline.database.batch(sql.restore_readers(ann.user_id, kept))
    assert pipeline.rows("SELECT item_id FROM article_readers ORDER BY item_id") == rows
    assert sql.next_requested(pipeline.database) is not None
