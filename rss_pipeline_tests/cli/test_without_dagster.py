"""No command loads Dagster before its arguments are checked, and none that only reads loads it at all.

Its import takes seconds. All commands of a test run in one process of its own, in which that import is an
error.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import click

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import utc_now
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer

_PROGRAM = """
import json, sys
from click.testing import CliRunner
from rss_pipeline_tests.support.no_dagster import refuse

refuse("dagster")
from rss_pipeline.cli.main import main

said = []
for command in json.load(sys.stdin):
    result = CliRunner().invoke(main, command, input="n\\n")
    assert result.exception is None or isinstance(result.exception, SystemExit), command
    said.append([result.exit_code, result.output])
assert not any(name.partition(".")[0] == "dagster" for name in sys.modules)
unneeded = ("boto3", "botocore", "bs4", "feedparser", "charset_normalizer", "pebble", "sqlalchemy")
print(json.dumps([said, [name for name in unneeded if name in sys.modules]]))
"""


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    text: str


def without_dagster(home: Pipeline, commands: Sequence[Sequence[str]]) -> list[Said]:
    """The result of each command; none of them may load what only others need."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    folder = home.settings.home
    own = {
        "RSS_PIPELINE_HOME": str(folder),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "COLUMNS": "400",
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps(commands).encode(),
        env={**clean, **own},
        cwd=folder,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr.decode()
    said, loaded = json.loads(done.stdout)
    assert loaded == []
    return [Said(*each) for each in said]


def collect(pipeline: Pipeline, server: FeedServer) -> None:
    """Collect two feeds, of which feeds.yaml no longer has the second. Nothing is due then."""
    pipeline.clock.now = utc_now() - timedelta(seconds=10)
    for number, id in enumerate(("news", "gone"), start=2):
        body = rss("a", "b", title=id)
        pipeline.register(server.route(f"127.0.0.{number}", "/feed", Answer(body=body)), id)
    pipeline.poll()
    pipeline.feeds.pop()
    pipeline.write_registry()
    pipeline.sync()


def test_commands_that_only_read_never_load_dagster(
    dagster_pipeline: DagsterPipeline, server: FeedServer
) -> None:
    collect(dagster_pipeline, server)
    item = dagster_pipeline.items("news")[0]["id"]
    expected = {
        ("status",): "1 feeds",
        ("status", "news"): "news",
        ("items", "news"): item[:8],
        ("publish",): "There are no topics",
        ("item", item): "Title of ",
        ("item", item, "--html"): "<html",
        ("export", "-o", "items.jsonl"): "4 items of 2 feeds",
        ("export-opml",): "<opml",
        ("doctor",): "ok      database",
        ("metrics",): "rss_feeds{",
        ("clean", "--dry-run"): "Nothing is old enough",
        ("purge", "--dry-run"): "0 runs would be removed (0.0 MB).",
        ("poll",): "Nothing was due.",
        ("migrate",): "already up to date",
    }
    commands = [each for each in expected if each[0] in main.list_commands(click.Context(main))]
    for command, said in zip(commands, without_dagster(dagster_pipeline, commands), strict=True):
        assert said.code == 0, (command, said.text)
        assert expected[command] in said.text, command


def test_a_mistake_in_its_arguments_ends_a_command_before_it_loads_dagster(
    pipeline: Pipeline, server: FeedServer
) -> None:
    """As help does, and a question."""
    collect(pipeline, server)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        (pipeline.settings.home / ".env").write_text(f"RSS_PORT={taken.getsockname()[1]}\n", "utf-8")
        expected = {
            ("forget", "gone"): (1, "Delete gone"),
            ("forget", "news"): (1, "news is still in feeds.yaml"),
            ("forget", "nosuch"): (1, "no feed matches 'nosuch'"),
            ("poll", "nosuch"): (1, "no feed matches 'nosuch'"),
            ("up",): (1, "is in use"),
            ("forget", "--unlisted"): (1, "Delete these feeds"),
            ("forget",): (2, "name a FEED, or use --unlisted"),
            ("purge", "--days", "0"): (2, "Invalid value for '--days'"),
            ("poll", "--nosuch"): (2, "No such option"),
            ("up", "--nosuch"): (2, "No such option"),
            ("nosuch",): (2, "No such command"),
            ("--help",): (0, "Usage:"),
            **{(name, "--help"): (0, "Usage:") for name in main.commands},
        }
        results = without_dagster(pipeline, list(expected))
    for (command, (code, text)), said in zip(expected.items(), results, strict=True):
        assert said.code == code, (command, said.text)
        assert text in said.text, command
    assert len(pipeline.items("gone")) == 2
