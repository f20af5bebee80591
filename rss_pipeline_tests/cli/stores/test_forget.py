"""`forget --unlisted`, and what `status` says of feeds that are no longer in feeds.yaml.

`forget FEED` is in test_forget_feed.py beside this; a forget that is killed is in orchestration/instance/.
"""

import json

import dagster as dg
import pytest
from click.testing import CliRunner, Result
from dagster._core.test_utils import create_run_for_test

from rss_pipeline.cli.main import main
from rss_pipeline_tests.cli.program import environment
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


@pytest.fixture
def left(
    dagster_pipeline: DagsterPipeline, server: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> DagsterPipeline:
    """Five feeds with items, of which two have left feeds.yaml; no sync has seen that yet."""
    home = dagster_pipeline.settings.home
    monkeypatch.chdir(home)
    for name, value in {**environment(home), "COLUMNS": "400"}.items():
        monkeypatch.setenv(name, value)
    for n in range(5):
        url = server.route(f"127.0.0.{n + 2}", "/feed", Answer(body=rss("a", "b")))
        dagster_pipeline.register(url, f"feed-{n}")
    dagster_pipeline.visit()
    dagster_pipeline.feeds = dagster_pipeline.feeds[2:]
    dagster_pipeline.write_registry()
    return dagster_pipeline


def call(*arguments: str, input: str | None = None) -> Result:
    result = CliRunner().invoke(main, arguments, input=input)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def state(pipeline: DagsterPipeline) -> tuple[list[str], list[str]]:
    """Ids of the feeds, and partition keys."""
    rows = pipeline.rows("SELECT id FROM feeds ORDER BY id")
    return [row["id"] for row in rows], list(pipeline.instance.get_dynamic_partitions("feeds"))


ALL = [f"feed-{n}" for n in range(5)]


def test_unlisted_feeds_are_one_line_of_status_and_go_when_it_is_confirmed(left: DagsterPipeline) -> None:
    left.sync()
    said = call("status").stdout
    assert (
        "2 no longer in feeds.yaml: what was collected stays until it expires, or until"
        " `rss-pipeline forget --unlisted`\n"
    ) in said
    assert [id for id in ALL if f"\n{id} " in said] == ALL[2:], "one line for each feed of the file"
    assert "feed-1" in call("status", "feed-1").stdout
    assert {feed["id"] for feed in json.loads(call("status", "--json").stdout)["feeds"]} == set(ALL)

    asked = call("forget", "--unlisted", input="n\n")
    assert asked.exit_code == 1
    assert "feed-0" in asked.stdout
    assert "2 feeds are no longer in feeds.yaml; they have 4 items." in asked.stdout
    assert "Delete these feeds with their items? [y/N]" in asked.stdout
    assert state(left) == (ALL, ALL)

    done = call("forget", "--unlisted", input="y\n")
    assert done.exit_code == 0
    assert "2 feeds and 4 items deleted." in done.stdout
    assert state(left) == (ALL[2:], ALL[2:])
    assert left.backups("feed-0") != []
    assert "no longer in feeds.yaml" not in call("status").stdout
    again = call("forget", "--unlisted", "--yes")
    assert (again.exit_code, again.stdout) == (
        0,
        "There is nothing to forget: every feed is in feeds.yaml.\n",
    )


def test_a_change_that_no_sync_has_seen_yet_counts(left: DagsterPipeline, server: FeedServer) -> None:
    """Rows of feeds that were taken out, of one without items, and of one that is back."""
    left.register(server.route("127.0.0.9", "/feed", Answer(status=404)), "dead")
    left.visit()
    left.feeds.pop()
    left.register(server.url("127.0.0.2", "/feed"), "feed-0")
    done = call("forget", "--unlisted", "--yes")
    assert "1 feeds and 2 items deleted." in done.stdout
    assert "1 removed (nothing was collected)" in done.stderr
    kept = ["feed-0", *ALL[2:]]
    assert state(left) == (kept, kept)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("feeds: [", "nothing was changed"),
        ("- https://example.org/feed\n", "5 of 5 feeds would no longer be scheduled"),
    ],
)
def test_a_file_with_mistakes_or_the_wrong_file_forgets_nothing(
    text: str, sentence: str, left: DagsterPipeline
) -> None:
    left.settings.feeds_file.write_text(text, "utf-8")
    result = call("forget", "--unlisted", "--yes")
    assert result.exit_code == 1
    assert sentence in result.stderr
    assert state(left)[0] == ALL


def test_what_is_in_use_stays_and_is_named_and_the_others_go(left: DagsterPipeline) -> None:
    left.hold("feed-1")
    result = call("forget", "--unlisted", "--yes")
    assert result.exit_code == 1
    assert "1 feeds and 2 items deleted." in result.stdout
    assert "feed-1 is being visited now: try again in a minute" in result.stderr
    assert state(left)[0] == ALL[1:]
    create_run_for_test(left.instance, job_name="__ASSET_JOB", status=dg.DagsterRunStatus.STARTED)
    left.lapse_leases()
    result = call("forget", "--unlisted", "--yes")
    assert result.exit_code == 1
    assert "0 feeds and 0 items deleted." in result.stdout
    assert result.stderr.count("a materialization or backfill is in progress: try again after its end") == 1
    assert state(left)[0] == ALL[1:]


@pytest.mark.parametrize("arguments", [[], ["feed-0", "--unlisted"]])
def test_one_feed_or_all_unlisted_ones_are_named(arguments: list[str], left: DagsterPipeline) -> None:
    result = call("forget", *arguments)
    assert result.exit_code == 2
    assert "name a FEED, or use --unlisted for all that are no longer in feeds.yaml" in result.stderr
