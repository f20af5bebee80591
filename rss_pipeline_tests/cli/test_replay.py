"""`rss-pipeline replay`: what it does and prints, and its exit code."""

import json
from pathlib import Path

import pytest

from rss_pipeline_tests.cli.test_main import run
from rss_pipeline_tests.pipeline.replay.replays import collected
from rss_pipeline_tests.pipeline.replay.test_replay import serve
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer


def test_the_command_replays_and_tells(tmp_path: Path, pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b", title="News [/b]"))
    serve(pipeline, server, "two", rss("c"))
    pipeline.poll()
    before = collected(pipeline)
    pipeline.database.query("DELETE FROM items WHERE guid IN ('b', 'c')")
    pipeline.database.query("UPDATE items SET title = 'Wrong' WHERE guid = 'a'")

    said = run(tmp_path, "replay", "--all", "--dry-run")
    assert said.code == 0, said.err
    assert "2 items would be new" in said.out
    assert "Title of b" in said.out
    assert "differs" in said.out
    said = run(tmp_path, "replay", "two", "--json")
    told = json.loads(said.out)
    assert (said.code, told["items_new"], [feed["feed_id"] for feed in told["feeds"]]) == (0, 1, ["two"])
    said = run(tmp_path, "replay", "one", "one", "--repair", "--json")
    assert json.loads(said.out)["items_repaired"] == 1
    assert collected(pipeline)["items"] == before["items"]

    pipeline.objects.put("backups/one/0.xml", b"?", content_type="text/xml")
    said = run(tmp_path, "replay", "--all")
    assert said.code == 1
    assert "backups/one/0.xml" in said.out


@pytest.mark.parametrize("arguments", [(), ("--all", "one"), ("nothing like it",)], ids=" ".join)
def test_the_command_wants_feeds_or_all(
    arguments: tuple[str, ...], tmp_path: Path, pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"))
    pipeline.poll()
    said = run(tmp_path, "replay", *arguments)
    assert said.code in {1, 2}
    assert said.err


# A law: replay after any history gives what the history gave, and a second replay nothing.
