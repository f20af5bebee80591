"""`rss-pipeline clean`: what it says it would do, does, and its exit code."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant
from rss_pipeline_tests.features.retention.archive import let_visited, stock
from rss_pipeline_tests.support.faulty_stores import Refusing
from rss_pipeline_tests.support.pipeline import Pipeline
from rss_pipeline_tests.support.server import FeedServer


@pytest.fixture
def stocked(pipeline: Pipeline, server: FeedServer) -> Pipeline:
    stock(pipeline, server)
    return pipeline


def test_the_command_says_what_it_would_do_does_it_and_what_it_did(
    stocked: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stocked.settings.home)
    stocked.database.query("UPDATE items SET created_at = ? WHERE guid LIKE 'new%'", [_now()])
    let_visited(stocked, datetime.now(UTC))
    environ = {"RSS_PIPELINE_HOME": str(stocked.settings.home)}

    def said(*options: str) -> Any:
        result = CliRunner().invoke(main, ["clean", *options], env=environ)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout) if "--json" in options else result.stdout

    told = "6 items would be removed, 12 images (0.0 MB) would be removed."
    assert said("--dry-run").startswith(told)
    dry, real = said("--dry-run", "--json"), said("--json")
    assert {**dry, "dry_run": False} == real
    assert real["by_feed"]["one"]["images"] == 6
    assert said() == "Nothing is old enough to be removed.\n"


def test_an_old_file_says_how_it_can_be_made_to_shrink_and_how_much_room_that_needs(
    stocked: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stocked.settings.home)
    path = stocked.settings.database_path
    stocked.database.query("UPDATE items SET summary = ? WHERE guid LIKE 'old%'", ["x" * 100_000])
    let_visited(stocked, datetime.now(UTC))
    stocked.database.close()
    with closing(sqlite3.connect(path)) as old:
        old.execute("PRAGMA auto_vacuum = NONE")
        old.execute("VACUUM")
    before = path.stat().st_size

    def said(*command: str) -> str:
        result = CliRunner().invoke(main, command, env={"RSS_PIPELINE_HOME": str(path.parent)}, input="n\n")
        assert result.exit_code == (1 if command[-1] == "--compact" else 0), result.output
        return str(result.output)

    assert "are free for new rows; its file does not shrink yet. `rss-pipeline migrate --compact`" in said(
        "clean"
    )
    assert path.stat().st_size == before
    told = said("migrate", "--compact")
    assert "To write it anew takes" in told
    assert path.stat().st_size == before, "nobody said yes"
    assert "and shrinks with each clean" in said("migrate", "--compact", "--yes")
    assert path.stat().st_size < before - 500_000


def _now() -> str:
    return instant(datetime.now(UTC))


def test_the_command_exits_with_1_where_something_could_not_be_removed(
    stocked: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stocked.settings.home)
    refusing = Refusing(stocked.objects, lambda key: "/0." in key)
    monkeypatch.setattr("rss_pipeline.features.retention.cli.open_objects", lambda _: refusing)
    stocked.database.query("UPDATE items SET created_at = ? WHERE guid LIKE 'new%'", [_now()])
    let_visited(stocked, datetime.now(UTC))
    done = CliRunner().invoke(main, ["clean"], env={"RSS_PIPELINE_HOME": str(stocked.settings.home)})
    assert done.exit_code == 1
    assert "6 objects could not be removed" in done.stderr
    assert "AccessDenied: no" in done.stderr


def test_the_command_refuses_what_a_wrong_clock_would_do_until_it_is_confirmed(
    stocked: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No feed was visited since the spring, so this machine's clock may be wrong."""
    monkeypatch.chdir(stocked.settings.home)
    environ = {"RSS_PIPELINE_HOME": str(stocked.settings.home)}

    def clean(*options: str) -> Any:
        return CliRunner().invoke(main, ["clean", *options], env=environ)

    refused, dry = clean(), clean("--dry-run", "--json")
    for done in (refused, dry):
        assert done.exit_code == 1
        assert "the last visit of any feed was" in done.output
        assert "rss-pipeline clean --yes" in done.output
    assert json.loads(dry.stdout)["items_removed"] == 6
    assert len(stocked.guids("one")) == 5
    assert clean("--yes").exit_code == 0
    assert stocked.guids("one") == ["new-1", "new-2"]
