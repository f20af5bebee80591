"""`rss-pipeline replay`: what it does and prints, and its exit code."""

import json
from typing import Any

import pytest

from rss_pipeline_tests.features.replay.replays import collected, serve
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer


def test_the_command_replays_and_tells(invoke: Any, pipeline: Pipeline, server: FeedServer) -> None:
    serve(pipeline, server, "one", rss("a", "b", title="News [/b]"))
    serve(pipeline, server, "two", rss("c"))
    pipeline.poll()
    before = collected(pipeline)
    pipeline.database.query("DELETE FROM items WHERE guid IN ('b', 'c')")
    pipeline.database.query("UPDATE items SET title = 'Wrong' WHERE guid = 'a'")

    said = invoke("replay", "--all", "--dry-run")
    assert said.exit_code == 0, said.stderr
    assert "2 items would be new" in said.stdout
    assert "Title of b" in said.stdout
    assert "differs" in said.stdout
    said = invoke("replay", "two", "--json")
    told = json.loads(said.stdout)
    assert (said.exit_code, told["items_new"], [feed["feed_id"] for feed in told["feeds"]]) == (0, 1, ["two"])
    said = invoke("replay", "one", "one", "--repair", "--json")
    assert json.loads(said.stdout)["items_repaired"] == 1
    assert collected(pipeline)["items"] == before["items"]

    pipeline.objects.put("backups/one/0.xml", b"?", content_type="text/xml")
    said = invoke("replay", "--all")
    assert said.exit_code == 1
    assert "backups/one/0.xml" in said.stdout


@pytest.mark.parametrize("arguments", [(), ("--all", "one"), ("nothing like it",)], ids=" ".join)
def test_the_command_wants_feeds_or_all(
    arguments: tuple[str, ...], invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"))
    pipeline.poll()
    said = invoke("replay", *arguments)
    assert said.exit_code in {1, 2}
    assert said.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("one", "--queue"), 2, "--queue replays all feeds: use it with --all"),
        (("--all", "--queue"), 1, "start `rss-pipeline up` first: its daemon makes the runs"),
    ],
    ids=str,
)
def test_a_replay_in_the_queue_is_of_all_feeds_and_needs_a_daemon(
    arguments: tuple[str, ...], code: int, sentence: str, invoke: Any, pipeline: Pipeline, server: FeedServer
) -> None:
    serve(pipeline, server, "one", rss("a"))
    pipeline.poll()
    said = invoke("replay", *arguments)
    assert (said.exit_code, sentence in said.stderr) == (code, True), said.stderr


# A law: replay after any history gives what the history gave, and a second replay nothing.
