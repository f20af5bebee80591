"""Links of articles into the private network: users do not learn from their reasons what is there."""

import json

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.features.full_text.about import about_feed, about_item
from rss_pipeline.reader.failures import PRIVATE
from rss_pipeline_tests.cli.program import environment
from rss_pipeline_tests.features.full_text.test_articles import HOST, collect, fetched
from rss_pipeline_tests.reader.accounts.signed_in import signed_in
from rss_pipeline_tests.storage.subscriptions.readers import subscribe
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.mark.slow
def test_all_reasons_of_the_private_network_are_one_sentence_for_users(
    pipeline: Pipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.route(HOST, "/leads", Answer(status=302, headers={"Location": "http://127.0.0.9:3000/ui"}))
    links = {
        "address": "http://10.1.2.3/wiki",
        "port": "http://10.1.2.4:5432/",
        "unknown": "http://payroll.invalid/",
        "redirect": "/leads",
    }
    collect(pipeline, server, links, shared=True)
    ann = signed_in(pipeline.database, "ann", clock=pipeline.clock)
    subscribe(pipeline.database, ann.user_id, "feed")
    ids = {row["guid"]: row["id"] for row in pipeline.items("feed")}
    for hours, status in ((0, "pending"), (2, "pending"), (8, "none")):
        pipeline.clock.turn(hours=hours)
        fetched(pipeline)
        found = [ann.ask(about_item(ann.user_id, ids[name])) for name in links]
        seen = {(each.status, each.verdict, each.reason) for each in found if each is not None}
        verdict = None if status == "pending" else "blocked_address"
        assert seen == {(status, verdict, PRIVATE.rstrip("."))}
    state = ann.ask(about_feed("feed", now=pipeline.clock(), user_id=ann.user_id))
    assert state is not None
    assert [(each.items, each.example) for each in state.reasons] == [(4, PRIVATE.rstrip("."))]
    text = json.dumps(state.as_json()["reasons"])
    assert not [each for each in ("10.1", "5432", "3000", "ALLOW_", "payroll") if each in text]
    monkeypatch.chdir(pipeline.settings.home)
    for name, value in environment(pipeline.settings.home).items():
        monkeypatch.setenv(name, value)
    of_operator = CliRunner().invoke(main, ["status", "feed", "--json"]).stdout
    assert {each["verdict"] for each in json.loads(of_operator)["full_text"]["reasons"]} == {
        "blocked_address",
        "dns",
    }
    assert "payroll.invalid does not resolve" in of_operator
