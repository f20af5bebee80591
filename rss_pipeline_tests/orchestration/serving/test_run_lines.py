"""The lines about runs in the terminal of `up`. The real one's are tested in cli/up/test_up.py."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from rss_pipeline.errors import ObjectStoreUnavailable
from rss_pipeline.orchestration.serving.run_lines import RunLines, print_lines
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline
from rss_pipeline_tests.support.pipeline import rss
from rss_pipeline_tests.support.server import Answer, FeedServer


class BrokenStore:
    """An ObjectStore that fails with a text that would forge a line and command the terminal."""

    def probe(self) -> None:
        raise ObjectStoreUnavailable("object folder: \x1b[2Jgone\n00:00:00 poll: 9 feeds")


def fresh(pipeline: DagsterPipeline) -> RunLines:
    return RunLines(pipeline.instance, began=datetime.now(UTC) - timedelta(minutes=1))


def texts(lines: RunLines) -> list[str]:
    """The lines without their times."""
    found = list(lines.new())
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in found)
    return [line[9:] for line in found]


def test_a_poll_has_one_line_with_its_failures_and_one_without_feeds_has_none(
    pipeline: DagsterPipeline, server: FeedServer
) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a", "b"))), "news")
    for n in range(7):
        status = 500 if n else 404
        pipeline.register(server.route(f"127.0.0.{n + 3}", "/feed", Answer(status=status)), f"bad-{n}")
    pipeline.register("http://127.0.0.20:1/feed", "refused")
    lines = fresh(pipeline)
    assert texts(lines) == []
    pipeline.poll()
    (line,) = texts(lines)
    assert line.startswith("poll: 9 feeds, 2 new items, 8 failed: ")
    assert line.endswith(" and 3 more")
    assert "bad-1 (http_status 500)" in line
    pipeline.poll()
    assert texts(lines) == [], "nothing was due, and a line comes once"
    assert texts(RunLines(pipeline.instance, began=datetime.now(UTC) + timedelta(minutes=1))) == []


def test_a_red_run_has_one_line_with_its_cause(pipeline: DagsterPipeline, server: FeedServer) -> None:
    pipeline.register(server.route("127.0.0.2", "/feed", Answer(body=rss("a"))), "news")
    lines = fresh(pipeline)
    broken = {"objects": dg.ResourceDefinition.hardcoded_resource(BrokenStore())}
    pipeline.try_poll(resources=broken)
    assert texts(lines) == ["poll failed: object folder: \ufffd[2Jgone 00:00:00 poll: 9 feeds"]
    pipeline.try_download_job(resources=broken)
    (line,) = texts(lines)
    assert line.startswith("download_images failed: ")


def test_a_run_that_was_killed_has_a_line(pipeline: DagsterPipeline) -> None:
    lines = fresh(pipeline)
    run = pipeline.instance.create_run_for_job(pipeline.definitions().resolve_job_def("purge_history"))
    pipeline.instance.report_run_failed(run, "its process no longer exists")
    assert texts(lines) == ["purge_history failed: its process no longer exists"]


class Unreadable:
    def new(self) -> list[str]:
        raise OSError(28, "No space left on device")


def test_a_history_that_cannot_be_read_ends_nothing(tmp_path: Path) -> None:
    print_lines(Unreadable(), home=tmp_path, every=0.0)()  # type: ignore[arg-type]


def test_a_full_disk_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The system's own file system /proc has no room at all."""
    look = print_lines(Unreadable(), home=Path("/proc"), every=0.0)  # type: ignore[arg-type]
    look()
    look()
    assert capsys.readouterr().out == "the disk is full: make room below /proc (0 bytes are free)\n"
