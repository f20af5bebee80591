"""`rss-pipeline export`: to stdout, to a file, and what it refuses."""

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from rss_pipeline_tests.cli.program import environment, run
from rss_pipeline_tests.support.pipeline import Pipeline, rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def collected(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    """Two feeds: `news` with a, b and c, `other` with d."""
    pipeline.register(
        server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", "c"))), "news", title="News"
    )
    pipeline.register(server.route("127.0.0.3", "/feed", Answer(body=rss("d"))), "other")
    pipeline.poll()
    return pipeline


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_the_command_writes_to_stdout_and_to_a_file(collected: Pipeline) -> None:
    home = collected.settings.home
    said = run(home, "export", "news", "--since", "2026-01-01")
    assert (said.code, len(said.out.splitlines())) == (0, 3)
    assert "3 items of 1 feeds; for the next ones: --since " in said.err
    cursor = said.err.split("--since ")[1].strip()
    assert run(home, "export", "--since", cursor).out == ""
    told = json.loads(run(home, "export", "-o", str(home / "x.parquet"), "--json").out)
    assert (told["items"], pq.read_table(home / "x.parquet").num_rows) == (4, 4)


def test_the_command_refuses_what_it_cannot_do(collected: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from rss_pipeline.cli.main import main

    for name, value in environment(collected.settings.home).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(collected.settings.home)

    def told(*arguments: str) -> str:
        said = CliRunner().invoke(main, ["export", *arguments])
        assert said.exit_code == 2
        return said.output

    assert "parquet needs a file: -o FILE" in told("--format", "parquet")
    assert "neither a day (2026-02-18) nor an instant nor a cursor" in told("--since", "yesterday")
