"""`rss-pipeline replay`: what it does and prints, and its exit code."""

import json
import re
from typing import Any

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline_tests.cli.test_terminal import CONTROLS, HOSTILE, hostile
from rss_pipeline_tests.features.replay.replays import collected, serve
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import FeedServer

__all__ = ["hostile"]


def test_the_command_replays_and_reports(invoke: Any, pipeline: Pipeline, server: FeedServer) -> None:
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


@pytest.mark.slow
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


def test_it_prints_no_control_character_or_line_of_a_publisher(hostile: Pipeline) -> None:
    backup = hostile.backups("stored")[0]
    hostile.objects.put(backup.replace("12:", "13:"), HOSTILE.encode(), content_type="application/xml")
    for command in (["replay", "--all"], ["replay", "stored", "--dry-run", "--json"]):
        output = CliRunner().invoke(main, command).output
        assert output.strip(), command
        assert CONTROLS.findall(output) == [], command
        assert not re.search(r"^\s{0,4}FORGED", output, re.MULTILINE), command
