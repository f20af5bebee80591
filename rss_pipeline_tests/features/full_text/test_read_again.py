"""Pages read again from the object store: better texts, a lost database, a feed that is forgotten."""

import json

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.features.feature import ReadAgain
from rss_pipeline.features.full_text.kept_pages import page_key
from rss_pipeline.features.full_text.read_again import read_pages_again
from rss_pipeline.storage.items import body_parts as bodies
from rss_pipeline_tests.cli.program import environment
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
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


def again(pipeline: Pipeline, *, dry_run: bool = False) -> ReadAgain:
    pipeline.clock.turn(seconds=1)
    with pipeline.session() as session, session.step():
        return read_pages_again(
            session.run,
            pool=session.parser_pool,
            spool=session.spool,
            feed_ids=["feed"],
            dry_run=dry_run,
        )


def test_old_items_get_the_text_that_is_read_of_their_page_now_without_a_request(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(4):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(4)})
    fetched(pipeline)
    whole = shown(pipeline)
    # As older rules read them: one page as a stub, one cut off, one of another text as its article.
    pipeline.rows(
        "UPDATE articles SET status = 'none', verdict = 'stub', html = NULL WHERE item_id = ?",
        of("0", pipeline),
    )
    pipeline.rows("UPDATE articles SET html = '<p>cut</p>' WHERE item_id = ?", of("1", pipeline))
    put(pipeline, "2", b"<p>A login</p><input type=password>")
    requests = asked(server)
    tried = again(pipeline, dry_run=True)
    assert (tried.read, tried.changed, tried.shown) == (4, 3, 2)
    assert ended(pipeline)["0"] == ("none", "stub")
    kept = version(pipeline, "2")
    done = again(pipeline)
    assert version(pipeline, "2") != kept, "what is kept of its text is valid no more"
    assert (done.changed, done.shown, done.unread) == (3, 2, [])
    now = shown(pipeline)
    assert {guid: now[guid] for guid in ("0", "1", "3")} == {guid: whole[guid] for guid in ("0", "1", "3")}
    assert ended(pipeline)["2"] == ("none", "login")
    assert "The bridge over the harbour is open." in now["2"], "the feed's own text"
    assert asked(server) == requests
    assert again(pipeline).changed == 0


def version(pipeline: Pipeline, guid: str) -> str:
    """The version of an item's body."""
    id = of(guid, pipeline)
    return bodies.keys_of(pipeline.database.batch([bodies.versions([id])])[0])[id].version


def put(pipeline: Pipeline, guid: str, page: bytes) -> None:
    """Keep another page of an item."""
    pipeline.objects.put(page_key("feed", of(guid, pipeline)), page, content_type="text/html")


def of(guid: str, pipeline: Pipeline) -> str:
    [id] = [str(row["id"]) for row in pipeline.items("feed") if row["guid"] == guid]
    return id


def test_articles_and_their_images_are_back_after_the_database_was_lost_and_nothing_is_requested(
    pipeline: Pipeline, server: FeedServer
) -> None:
    replays = pytest.importorskip("rss_pipeline_tests.features.replay.replays")
    image = server.url(HOST, "/bridge.jpg")
    for n in range(2):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1, image=image).encode()))
    server.route(HOST, "/2", Answer(status=404))
    server.route(HOST, "/3", Answer(body=article().encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(3)})
    fetched(pipeline)
    before, tasks, requests = shown(pipeline), pipeline.tasks(), asked(server)
    assert image in tasks
    replays.drop_database(pipeline)
    done = replays.restored(pipeline)
    assert (done.articles, done.pages_unread) == (2, [])
    assert shown(pipeline) == before
    assert pipeline.tasks() == tasks
    assert (fetched(pipeline).wanted, asked(server)) == (0, requests)
    # What is new goes on.
    server.route(HOST, "/feed", Answer(body=document(server, {"3": "/3"})))
    pipeline.poll("feed")
    assert fetched(pipeline).wanted == 1


def test_pages_of_several_items_with_one_text_are_none_of_them_an_article(
    pipeline: Pipeline, server: FeedServer
) -> None:
    for n in range(2):
        server.route(HOST, f"/{n}", Answer(body=article(n + 1).encode()))
    collect(pipeline, server, {str(n): f"/{n}" for n in range(2)})
    assert fetched(pipeline).shown == 2
    for guid in "01":
        put(pipeline, guid, article().encode())
    again(pipeline)
    assert ended(pipeline) == {"0": ("none", "same_text"), "1": ("none", "same_text")}


@pytest.mark.slow
def test_commands_show_the_state_read_pages_again_and_forget_them(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rss_pipeline.features.replay")
    home = pipeline.settings.home
    monkeypatch.chdir(home)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"1": "/1"})
    assert fetched(pipeline).shown == 1
    state = json.loads(CliRunner().invoke(main, ["status", "feed", "--json"]).stdout)["full_text"]
    assert (state["in_registry"], state["shown"], state["waiting"]) == ("on", 1, 0)
    assert "articles that are shown: 1" in CliRunner().invoke(main, ["status", "feed"]).stdout
    pipeline.rows("UPDATE articles SET html = '<p>cut</p>'")
    found = CliRunner().invoke(main, ["replay", "feed", "--pages", "--json"])
    assert found.exit_code == 0, found.output
    said = json.loads(found.stdout)
    assert (said["read"], said["changed"], said["shown"]) == (1, 1, 1)
    assert paragraphs_of()[0] in shown(pipeline)["1"]
    assert CliRunner().invoke(main, ["replay", "feed", "--pages", "--repair"]).exit_code == 2
    assert len(list(pipeline.objects.list("pages/feed/"))) == 1
    pipeline.feeds = []
    pipeline.write_registry()
    gone = CliRunner().invoke(main, ["forget", "feed", "--yes"])
    assert gone.exit_code == 0, gone.output
    assert list(pipeline.objects.list("pages/")) == []
    assert pipeline.backups("feed") != []
