"""Articles of a feed's items: requested once, kept, shown; an item without one keeps the feed's own text."""

import json
from collections.abc import Mapping
from datetime import timedelta

import pytest

from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.features.full_text import service
from rss_pipeline.features.full_text.kept_pages import clean_pages
from rss_pipeline.features.full_text.service import Articles, fetch_articles
from rss_pipeline.reader.bodies import Bodies
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline_tests.features.full_text.made import article, paragraphs_of
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer

HOST = "127.0.0.2"
ROBOTS = "/robots.txt"


def document(server: FeedServer, items: Mapping[str, str]) -> bytes:
    """A feed with a teaser for each item; by guid, the link or the path of it on the feed's own host."""
    entries = "".join(
        f"<item><guid isPermaLink='false'>{guid}</guid><title>The harbour bridge {guid}</title>"
        f"<link>{link if '://' in link else server.url(HOST, link)}</link>"
        "<description>The bridge over the harbour is open.</description></item>"
        for guid, link in items.items()
    )
    return (
        '<?xml version="1.0"?><rss version="2.0"><channel><title>A feed</title>'
        f"<link>http://{HOST}/</link>{entries}</channel></rss>"
    ).encode()


def collect(
    pipeline: Pipeline,
    server: FeedServer,
    items: Mapping[str, str],
    *,
    full_text: str | None = "on",
    **more: object,
) -> None:
    """Collect a feed that has one old item in its first document, and then these."""
    first, then = document(server, {"old": "/old"}), document(server, {"old": "/old", **items})
    url = server.route(HOST, "/feed", Answer(body=first), Answer(body=then))
    pipeline.register(url, "feed", **({} if full_text is None else {"full_text": full_text}), **more)
    pipeline.poll()
    pipeline.poll("feed")


def fetched(pipeline: Pipeline, feed_id: str | None = None) -> Articles:
    pipeline.clock.turn(seconds=1)
    with pipeline.session() as session, session.step():
        return fetch_articles(session, feed_id=feed_id)


def shown(pipeline: Pipeline) -> dict[str, str]:
    """By guid, the HTML as readers get it."""
    rows = {row["id"]: row["guid"] for row in pipeline.items("feed")}
    keys = bodies.keys_of(pipeline.database.batch([bodies.versions(rows)])[0])
    found = Bodies(pipeline.objects, seconds=lambda: 0.0).all_of(pipeline.database, keys.values())
    return {rows[id]: body.html for id, body in found.items()}


def asked(server: FeedServer) -> list[str]:
    return [each.target for each in server.asked(HOST) if each.target not in ("/feed", ROBOTS)]


def ended(pipeline: Pipeline) -> dict[str, tuple[str, str]]:
    """By guid, how the request for its article ended."""
    rows = pipeline.rows(
        """SELECT i.guid, a.status, a.verdict FROM articles AS a JOIN items AS i ON i.id = a.item_id
        ORDER BY i.guid"""
    )
    return {row["guid"]: (row["status"], row["verdict"]) for row in rows}


def test_an_item_s_page_is_requested_once_ever_and_its_article_is_shown_with_its_images(
    pipeline: Pipeline, server: FeedServer
) -> None:
    image = server.url(HOST, "/bridge.jpg")
    server.route(HOST, "/1", Answer(body=article(image=image).encode()))
    collect(pipeline, server, {"one": "/1"})
    before = pipeline.items("feed")
    assert fetched(pipeline).shown == 1
    assert paragraphs_of()[0] in shown(pipeline)["one"]
    assert image in shown(pipeline)["one"]
    assert "The bridge over the harbour is open." in shown(pipeline)["old"]
    assert image in pipeline.tasks()
    assert pipeline.items("feed") == before
    [row] = pipeline.rows("SELECT backup_key FROM articles")
    found = pipeline.objects.get(row["backup_key"])
    assert found is not None
    assert found[0] == article(image=image).encode()
    pipeline.poll("feed")
    assert (fetched(pipeline).shown, asked(server)) == (0, ["/1"])
    assert pipeline.rows("SELECT * FROM leases") == []


def test_a_feed_without_full_text_has_no_article_unless_a_person_requests_it(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"one": "/1"}, full_text=None)
    assert (fetched(pipeline).wanted, pipeline.rows("SELECT * FROM articles"), asked(server)) == (0, [], [])


def test_only_items_that_come_after_the_first_document_have_their_article(
    pipeline: Pipeline, server: FeedServer
) -> None:
    collect(pipeline, server, {})
    assert (fetched(pipeline).wanted, asked(server)) == (0, [])


def test_a_page_that_robots_txt_keeps_from_programs_is_not_requested(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, ROBOTS, Answer(body=b"User-agent: *\nDisallow: /closed\n"))
    server.route(HOST, "/open", Answer(body=article().encode()))
    collect(pipeline, server, {"one": "/closed/1", "two": "/open"})
    done = fetched(pipeline)
    assert ended(pipeline) == {"one": ("none", "robots"), "two": ("shown", "article")}
    assert asked(server) == ["/open"]
    assert any("robots.txt" in reason for _, _, reason in done.reasons)


def test_no_header_and_no_password_of_a_feed_goes_with_the_request_for_an_article(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"one": "/1"}, headers={"X-Key": "secret"}, allow_private=True)
    assert fetched(pipeline).shown == 1
    [request] = [each for each in server.asked(HOST) if each.target == "/1"]
    assert "x-key" not in request.headers
    assert "authorization" not in request.headers


def test_a_host_that_wants_a_pause_gets_it_and_then_gives_its_article(
    pipeline: Pipeline, server: FeedServer
) -> None:
    server.route(
        HOST, "/1", Answer(status=429, headers={"Retry-After": "7200"}), Answer(body=article().encode())
    )
    collect(pipeline, server, {"one": "/1"})
    assert fetched(pipeline).waiting == 1
    pipeline.clock.turn(seconds=3_600)
    assert (fetched(pipeline).shown, asked(server)) == (0, ["/1"])
    pipeline.clock.turn(seconds=3_700)
    assert (fetched(pipeline).shown, asked(server)) == (1, ["/1", "/1"])


def test_a_host_has_its_most_requests_of_a_day_and_the_rest_waits(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HOST_A_DAY", 2)
    for n in range(3):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(3)})
    done = fetched(pipeline)
    assert (done.shown, done.waiting, done.full_hosts) == (2, 1, {HOST: 2})
    pipeline.clock.turn(seconds=86_500)
    assert fetched(pipeline).shown == 1


def test_requests_that_give_no_page_count_among_the_host_s_of_a_day(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "HOST_A_DAY", 2)
    server.route(HOST, "/0", Answer(status=503, headers={"Retry-After": "300"}))
    server.route(HOST, "/1", Answer(raw=b""))
    collect(pipeline, server, {"0": "/0"})
    assert fetched(pipeline).waiting == 1
    [(link, until, reason)] = fetched(pipeline, "feed").later
    assert (link, until > instant(pipeline.clock())) == (server.url(HOST, "/0"), True)
    assert "503" in reason
    server.route(HOST, "/feed", Answer(body=document(server, {"1": "/1"})))
    pipeline.clock.turn(seconds=310)
    pipeline.poll("feed")
    # A host that limits the rate gets its next request after a gap.
    pipeline.clock.turn(minutes=10)
    assert (fetched(pipeline).waiting, asked(server)) == (1, ["/0", "/1"])
    pipeline.clock.turn(hours=2)
    assert fetched(pipeline).full_hosts == {HOST: 2}
    assert asked(server) == ["/0", "/1"]


def test_pages_with_one_text_for_several_items_are_none(pipeline: Pipeline, server: FeedServer) -> None:
    for n in range(2):
        server.route(HOST, f"/{n}", Answer(body=article().encode()))
    collect(pipeline, server, {"a": "/0", "b": "/1"})
    fetched(pipeline)
    assert ended(pipeline) == {"a": ("none", "same_text"), "b": ("none", "same_text")}


def test_auto_compares_five_items_and_goes_on_only_where_the_feed_is_truncated(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(9):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(7)}, full_text="auto")
    done = fetched(pipeline)
    assert len(asked(server)) == 5
    assert done.decisions["feed"].is_truncated
    decided = json.loads(pipeline.feed("feed")["full_text_decision"])
    assert (decided["compared"], decided["longer"]) == (5, 5)
    server.route(HOST, "/feed", Answer(body=document(server, {"8": "/8"})))
    pipeline.poll("feed")
    assert fetched(pipeline).shown == 1


def test_pages_expire_as_backups_do_and_with_their_items_but_a_starred_item_keeps_its_page(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(3):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(3)})
    fetched(pipeline)
    items = {row["guid"]: row for row in pipeline.items("feed")}

    def cleaned(days: int) -> list[str]:
        now = utc_now() + timedelta(days=days)
        assert clean_pages(pipeline.database, pipeline.objects, pipeline.settings, now) == {}
        return [info.key.rpartition("/")[2].removesuffix(".html") for info in pipeline.objects.list("pages/")]

    assert sorted(cleaned(0)) == sorted(items[guid]["id"] for guid in "012")
    pipeline.rows("DELETE FROM item_versions")
    pipeline.rows("DELETE FROM items WHERE guid = '0'")
    star(pipeline, items["1"])
    assert sorted(cleaned(0)) == sorted(items[guid]["id"] for guid in "12")
    assert cleaned(pipeline.settings.backup_days + 1) == [items["1"]["id"]]
    kept = pipeline.rows("SELECT item_id FROM articles WHERE backup_key IS NOT NULL")
    assert [row["item_id"] for row in kept] == [items["1"]["id"]]


def star(pipeline: Pipeline, item: Mapping[str, object]) -> None:
    """A star of some user."""
    pipeline.rows(
        """INSERT INTO users (id, name, password_hash, created_at)
        VALUES ('u', 'u', 'x', '2026-01-01T00:00:00Z')"""
    )
    pipeline.rows(
        """INSERT INTO subscriptions (user_id, feed_id, read_up_to, added_at)
        VALUES ('u', 'feed', 0, '2026-01-01T00:00:00Z')"""
    )
    pipeline.rows(
        """INSERT INTO item_states (user_id, feed_id, arrived, item_id, is_read, starred_at)
        SELECT 'u', feed_id, arrived, id, 1, '2026-01-01T00:00:00Z' FROM items WHERE id = ?""",
        str(item["id"]),
    )
