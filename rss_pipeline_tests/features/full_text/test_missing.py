"""Articles cannot be read, because a package is missing or damaged: all who switch them on see it."""

import json
import sys
from pathlib import Path

import dagster as dg
import pytest
from click.testing import CliRunner

from rss_pipeline import extras
from rss_pipeline.cli.main import main
from rss_pipeline.errors import ExtraMissing
from rss_pipeline.extras import ARTICLES
from rss_pipeline.features.full_text.about import CANNOT_READ
from rss_pipeline.features.full_text.dagster import decide_articles
from rss_pipeline_tests.api.pages.browsing import browser
from rss_pipeline_tests.api.reading import ann
from rss_pipeline_tests.cli.program import environment
from rss_pipeline_tests.features.full_text.made import article
from rss_pipeline_tests.features.full_text.test_articles import HOST, asked, collect, ended, fetched
from rss_pipeline_tests.features.full_text.test_doors import end, ids
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.reader import Reader
from rss_pipeline_tests.support.server import Answer, FeedServer

NO_ARTICLES = "No articles come: this server cannot read them now."


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that is installed and cannot be imported."""
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "trafilatura.py").write_text("raise ImportError('a part of it is gone')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "damaged"))
    extras._import.cache_clear()


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml_html_clean", None)


@pytest.mark.usefixtures("missing")
def test_who_switches_articles_on_sees_that_none_come(reader: Reader) -> None:
    user = ann(reader, a=2)
    user.client.patch("/api/feeds/a", json={"full_text": True})
    first, second = ids(reader)
    end(reader, first, "pending", None, None)
    end(reader, second, "shown", "article", None)
    page = browser(reader, user)
    for path in ("/feeds/a/full-text", "/feeds/a/edit", "/feeds/add"):
        assert NO_ARTICLES in page.get(path).text, path
    assert CANNOT_READ in page.get(f"/items/{first}").text
    assert CANNOT_READ not in page.get(f"/items/{second}").text
    assert user.client.get(f"/api/items/{first}/full-text").json()["reason"] == CANNOT_READ
    assert user.client.get("/api/feeds/a/full-text").json()["can_read"] is False


@pytest.mark.slow
def test_with_all_packages_no_page_says_anything(reader: Reader) -> None:
    user = ann(reader, a=1)
    page = browser(reader, user)
    for path in ("/feeds/a/full-text", "/feeds/a/edit", "/feeds/add"):
        assert NO_ARTICLES not in page.get(path).text, path
    assert user.client.get("/api/feeds/a/full-text").json()["can_read"] is True


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["damaged", "missing"])
def test_doctor_and_status_say_so_and_nothing_is_requested(
    pipeline: Pipeline,
    server: FeedServer,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
    broken: str,
) -> None:
    home = pipeline.settings.home
    monkeypatch.chdir(home)
    for name, value in environment(home).items():
        monkeypatch.setenv(name, value)
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"1": "/1"}, full_text=None)
    request.getfixturevalue(broken)
    said = "a part of it is gone" if broken == "damaged" else "Full text needs lxml_html_clean, not installed"

    def told() -> tuple[str, str, list[str]]:
        """By doctor, its state and what it says; by `status`."""
        [found] = [
            each
            for each in json.loads(CliRunner().invoke(main, ["doctor", "--json"]).stdout)
            if each["name"] == "packages"
        ]
        status = CliRunner().invoke(main, ["status", "--json"])
        return (
            found["state"],
            f"{found['found']} {found['fix']}",
            json.loads(status.stdout)["missing_packages"],
        )

    state, text, sentences = told()
    assert (state, sentences) == ("warning", []), "nothing of it is switched on"
    assert said in text
    pipeline.feeds[0]["full_text"] = "on"
    pipeline.write_registry()
    pipeline.sync()
    state, text, [sentence] = told()
    assert state == "failure"
    for each in (text, sentence, CliRunner().invoke(main, ["status"]).stderr):
        assert said in each
        assert ARTICLES.command in each
    pipeline.rows("UPDATE feeds SET full_text_after = 0")
    with pytest.raises(ExtraMissing, match=ARTICLES.command.replace(".", r"\.")):
        fetched(pipeline)
    refused = CliRunner().invoke(main, ["full-text"])
    assert (refused.exit_code, said in refused.output) == (1, True)
    if broken == "missing":
        with dg.DagsterInstance.ephemeral() as instance:
            assert said in str(decide_articles(pipeline.database, instance, pipeline.clock()))
    assert (asked(server), ended(pipeline)) == ([], {})


@pytest.mark.slow
def test_articles_that_were_due_say_so_and_come_once_it_is_repaired(
    pipeline: Pipeline, server: FeedServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.route(HOST, "/1", Answer(body=article().encode()))
    collect(pipeline, server, {"1": "/1"})
    pipeline.rows(
        """INSERT INTO articles (item_id, feed_id, next_attempt_at)
        SELECT id, feed_id, '2026-01-01T00:00:00Z' FROM items WHERE guid = '1'"""
    )
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "trafilatura", None)
        with pytest.raises(ExtraMissing):
            fetched(pipeline)
    [row] = pipeline.rows("SELECT status, reason FROM articles")
    assert (row["status"], row["reason"]) == ("pending", CANNOT_READ)
    pipeline.clock.turn(hours=2)
    assert fetched(pipeline).shown == 1
