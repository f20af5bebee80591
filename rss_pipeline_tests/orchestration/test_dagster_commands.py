"""Dagster's own commands, typed in a clone of this project as Dagster's documentation has them.

The commands of `rss-pipeline` are tested in cli/.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer

ROOT = Path(__file__).parents[2]
DAGSTER = "dagster._cli"


@pytest.fixture
def clone(pipeline: DagsterPipeline) -> Path:
    """A folder with what the top of a clone holds, and an instance in it that has polled nothing yet."""
    folder = pipeline.settings.home
    for name in ("pyproject.toml", "workspace.yaml", "rss_pipeline"):
        (folder / name).symlink_to(ROOT / name)
    pipeline.write_registry()
    return folder


COMMANDS = """
import importlib, json, sys
for line in json.load(sys.stdin):
    module, sys.argv[1:] = line[0], line[1:]
    code = 0
    try:
        loaded = importlib.import_module(module)
        if sys.argv[1:]:
            loaded.main()
    except SystemExit as ended:
        code = ended.code or 0
    for stream in (sys.stdout, sys.stderr):
        print(f"\\nended {code}", file=stream, flush=True)
"""
"""A program that runs one command after the other, as their scripts do: each loads Dagster for seconds."""


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


def run(folder: Path, *commands: Sequence[str], **environ: str) -> list[Said]:
    """Run commands, each a module's `main` with arguments or its import alone, with the folder as home and
    without any other setting."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DAGSTER_", "RSS_"))}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=folder,
        env={
            **env,
            "RSS_PIPELINE_HOME": ".",
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "COLUMNS": "200",
            **environ,
        },
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outs, errs = (re.split(r"\nended (\d+)\n", text) for text in (done.stdout, done.stderr))
    codes = [int(code) for code in outs[1::2]]
    return [Said(*each) for each in zip(codes, outs[:-1:2], errs[:-1:2], strict=True)]


@pytest.mark.slow
def test_definitions_can_be_validated_and_one_sentence_says_what_is_missing(clone: Path) -> None:
    [validated] = run(clone, (DAGSTER, "definitions", "validate"))
    assert validated.code == 0, validated.err
    assert "Validation successful for code location rss_pipeline." in validated.out
    [sentence] = [line for line in validated.err.splitlines() if "DAGSTER_HOME is not set" in line]
    assert sentence.endswith(f"export DAGSTER_HOME={clone / 'dagster'}")


@pytest.mark.slow
def test_definitions_load_without_a_word_and_a_feed_is_materialized_and_a_job_executed_on_the_own_instance(
    clone: Path, pipeline: DagsterPipeline, server: FeedServer
) -> None:
    known = {"DAGSTER_HOME": str(clone / "dagster"), "DAGSTER_MODULE_NAME": "rss_pipeline.definitions"}
    id = pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "feed")
    loaded, listed, polled, done, defs = run(
        clone,
        ("rss_pipeline.definitions",),
        (DAGSTER, "asset", "list"),
        (DAGSTER, "job", "execute", "-j", "poll_feeds"),
        (DAGSTER, "asset", "materialize", "--select", "feed_items", "--partition", id),
        ("dagster_dg_cli.cli", "list", "defs"),
        **known,
    )
    assert (loaded.code, loaded.err) == (0, "")
    assert {"feed_items", "item_images"} <= set(listed.out.split()), listed.err
    assert polled.code == 0, polled.err
    assert done.code == 0, done.err
    assert len(server.requests) == 2
    filter_ = dg.AssetRecordsFilter(asset_key=dg.AssetKey("feed_items"), asset_partitions=[id])
    assert len(pipeline.instance.fetch_materializations(filter_, limit=10).records) == 2
    assert defs.code == 0, defs.err
    for name in ("feed_items", "item_images", "registry", "polls", "poll_feeds", "poll_feeds_when_due"):
        assert name in defs.out
