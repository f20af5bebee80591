"""Dagster's own commands, typed in a clone of this project as Dagster's documentation has them.

The commands of `rss-pipeline` are tested in cli/.
"""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(pipeline: DagsterPipeline) -> Path:
    """A folder with what the top of a clone holds, and an instance in it that has polled nothing yet."""
    folder = pipeline.settings.home
    for name in ("pyproject.toml", "workspace.yaml", "rss_pipeline"):
        (folder / name).symlink_to(ROOT / name)
    pipeline.write_registry()
    return folder


def run(folder: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command of this Python in a folder, with the folder as home and without any other setting."""
    program, *arguments = command
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "RSS_"))}
    return subprocess.run(
        [str(Path(sys.executable).with_name(program)), *arguments],
        cwd=folder,
        env={
            **env,
            "RSS_PIPELINE_HOME": ".",
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "COLUMNS": "200",
            **environ,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_definitions_load_without_a_word_where_dagster_s_home_is_known(clone: Path) -> None:
    done = run(clone, "python", "-c", "import rss_pipeline.definitions", DAGSTER_HOME=str(clone / "dagster"))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_definitions_can_be_validated_and_listed_and_one_sentence_says_what_is_missing(clone: Path) -> None:
    validated = run(clone, "dagster", "definitions", "validate")
    assert validated.returncode == 0, validated.stderr
    assert "Validation successful for code location rss_pipeline." in validated.stdout
    [sentence] = [line for line in validated.stderr.splitlines() if "DAGSTER_HOME is not set" in line]
    assert sentence.endswith(f"export DAGSTER_HOME={clone / 'dagster'}")

    listed = run(clone, "dg", "list", "defs", DAGSTER_HOME=str(clone / "dagster"))
    assert listed.returncode == 0, listed.stderr
    for name in ("feed_items", "item_images", "registry", "polls", "poll_feeds", "poll_feeds_when_due"):
        assert name in listed.stdout


@pytest.mark.slow
def test_a_feed_is_materialized_and_a_job_executed_on_the_project_s_own_instance(
    clone: Path, pipeline: DagsterPipeline, server: FeedServer
) -> None:
    known = {"DAGSTER_HOME": str(clone / "dagster"), "DAGSTER_MODULE_NAME": "rss_pipeline.definitions"}
    id = pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    listed = run(clone, "dagster", "asset", "list", **known)
    assert listed.stdout.split() == ["feed_items", "item_images", "stream_items", "topics"], listed.stderr

    polled = run(clone, "dagster", "job", "execute", "-j", "poll_feeds", **known)
    assert polled.returncode == 0, polled.stderr
    assert len(server.requests) == 1

    chosen = ("--select", "feed_items", "--partition", id)
    done = run(clone, "dagster", "asset", "materialize", *chosen, **known)
    assert done.returncode == 0, done.stderr
    assert len(server.requests) == 2

    filter_ = dg.AssetRecordsFilter(asset_key=dg.AssetKey("feed_items"), asset_partitions=[id])
    assert len(pipeline.instance.fetch_materializations(filter_, limit=10).records) == 2
