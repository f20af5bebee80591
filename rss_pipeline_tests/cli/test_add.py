"""`rss-pipeline add`: what it prints, its exit code, and that it and its like need no Dagster."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer
from rss_pipeline_tests.support.waiting import PATIENCE


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("RSS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RSS_HOST_DELAY_SECONDS", "0")
    monkeypatch.setenv("RSS_PARSE_WORKERS", "1")
    monkeypatch.setenv("COLUMNS", "400")

    def call(*arguments: str) -> Result:
        result = CliRunner().invoke(main, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return call


def test_it_prints_title_id_items_and_next_visit_and_1_is_the_code_if_one_failed(
    tmp_path: Path, server: FeedServer, invoke: Callable[..., Result]
) -> None:
    url = server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b", title="News [/b]")))
    gone = server.url("127.0.0.2", "/gone").replace("//", "//me:hidden@")
    said = invoke("add", "--allow-private", gone, url)
    assert said.exit_code == 1
    assert "not added (http_status)" in said.stderr
    assert "hidden" not in said.stderr
    lines = dict(line.split(None, 1) for line in said.stdout.splitlines()[1:])
    assert said.stdout.startswith("News [/b]: added.\n")
    assert (lines["url"], lines["items"]) == (url, "2")
    assert lines["next"].startswith("visit")
    assert f"- url: {url}\n" in (tmp_path / "feeds.yaml").read_text("utf-8")

    again = invoke("add", "--json", url)
    assert (again.exit_code, json.loads(again.stdout)) == (
        0,
        [{"requested": url, "state": "already_listed", "feed_id": lines["id"], "url": url}],
    )


def test_commands_that_read_or_write_the_list_of_feeds_load_no_dagster(tmp_path: Path) -> None:
    (tmp_path / "feeds.yaml").write_text("feeds: [https://a.example/]\n", "utf-8")
    (tmp_path / "x.opml").write_text('<opml><outline xmlUrl="https://a.example/"/></opml>', "utf-8")
    program = """
from rss_pipeline_tests.support.no_dagster import refuse
refuse("dagster")
from rss_pipeline.cli.main import main
for arguments in (["import", "x.opml"], ["export-opml"], ["add", "https://a.example"]):
    if arguments[0] in main.list_commands(None):
        main(arguments, standalone_mode=False)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"https://a.example/ is in feeds.yaml already" in done.stdout
