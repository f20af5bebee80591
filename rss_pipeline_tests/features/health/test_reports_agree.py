"""One database, one set of numbers: `status`, `doctor`, each check and each alert count the same feeds."""

import json
import re
from typing import Any

import dagster as dg
import pytest
from click.testing import CliRunner

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline.collector.models.feed import FeedSpec
from rss_pipeline.features.health.doctor import examine
from rss_pipeline.features.health.sql import just_prominent
from rss_pipeline.storage.feeds import registered
from rss_pipeline.storage.reports.overview import feed_health
from rss_pipeline_tests.orchestration.conftest import pipeline
from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline

__all__ = ["pipeline"]

FAILING, NOT_ANSWERING, FAILING_LONG = 10, 7, 4
STATES: dict[str, tuple[int, dict[str, Any]]] = {
    # Ten fail; seven of them do not answer, four of these for long. One of the two that are gone failed often
    # as well; one of the three that moved is redirected again.
    "failing": (3, {"consecutive_failures": 2, "last_error_kind": "timeout"}),
    "failing-thrice": (2, {"consecutive_failures": 3, "last_error_kind": "timeout"}),
    "failing-from-the-first": (
        1,
        {"consecutive_failures": 1, "last_error_kind": "http_status", "last_success_at": None},
    ),
    "failing-long": (3, {"consecutive_failures": 10, "last_error_kind": "dns"}),
    "failing-since-spring": (1, {"consecutive_failures": 90, "last_error_kind": "http_status"}),
    "gone": (1, {"consecutive_failures": 1, "last_error_kind": "gone"}),
    "gone-long": (1, {"consecutive_failures": 15, "last_error_kind": "gone"}),
    "moved": (2, {"fetch_url": "https://new.example/"}),
    "moved-again": (1, {"fetch_url": "https://new.example/", "move_url": "https://newer.example/"}),
    "redirecting": (4, {"move_url": "https://soon.example/"}),
    "warned": (2, {"warning": "unstable guids", "warning_kinds": '["unstable_guids"]'}),
    "well": (5, {}),
}
DOCTOR = {
    "failing feeds": NOT_ANSWERING,
    "gone feeds": 2,
    "moved feeds": 3,
    "feed warnings": 2,
}
NOT_POLLED = {"disabled": {"enabled": 0}, "left": {"registered": 0}}
"""For each state there is also a feed that is disabled, and one that feeds.yaml has no longer."""


@pytest.fixture
def known(pipeline: DagsterPipeline) -> DagsterPipeline:
    """Feeds in all these states, visited and failing just now."""
    now = instant(pipeline.clock())
    rows = [
        (f"{state}-{number}", values) for state, (count, values) in STATES.items() for number in range(count)
    ]
    rows += [
        (f"{state}-{why}", {**values, **reason})
        for state, (_, values) in STATES.items()
        for why, reason in NOT_POLLED.items()
    ]
    added = tuple(FeedSpec(id=id, url=f"https://{id}.example/", host=f"{id}.example") for id, _ in rows)
    registered.apply(pipeline.database, registered.RegistryChanges(added=added), now=utc_now())
    for id, values in rows:
        columns = {
            "last_success_at": now,
            **values,
            "last_visited_at": now,
            "prominent_at": now,
            "last_error": "x",
        }
        pipeline.database.query(
            f"UPDATE feeds SET {', '.join(f'{name} = ?' for name in columns)} WHERE id = ?",
            [*columns.values(), id],
        )
    return pipeline


def status(pipeline: DagsterPipeline, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The numbers of `status --json`, which the text of `status` has too."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("RSS_PIPELINE_HOME", str(pipeline.settings.home))
    monkeypatch.setenv("RSS_FEEDS_FILE", str(pipeline.settings.feeds_file))
    monkeypatch.chdir(pipeline.settings.home)
    result = CliRunner().invoke(main, ["status", "--json"])
    assert result.exit_code == 1, "feeds fail for long"
    whole: dict[str, Any] = json.loads(result.stdout)
    text = CliRunner().invoke(main, ["status"], env={"COLUMNS": "200"}).stdout
    assert (
        f"{whole['registered']} feeds scheduled, {whole['failing']} failing"
        f" ({whole['failing_long']} of them ten times or more), {whole['gone']} gone, {whole['moved']} moved,"
        f" {whole['redirecting']} redirecting, {whole['disabled']} disabled\n"
    ) in text
    assert f"{whole['unregistered']} no longer in feeds.yaml: " in text
    names = (
        "registered",
        "disabled",
        "unregistered",
        "failing",
        "not_answering",
        "failing_long",
        "gone",
        "moved",
        "redirecting",
    )
    return {name: whole[name] for name in names}


def doctor(pipeline: DagsterPipeline) -> dict[str, int]:
    """The number of feeds that each of doctor's findings names."""
    environ = {
        "RSS_PIPELINE_HOME": str(pipeline.settings.home),
        "RSS_FEEDS_FILE": str(pipeline.settings.feeds_file),
    }
    found = {}
    for check in examine(environ, cwd=pipeline.settings.home, clock=pipeline.clock):
        if number := re.match(r"(\d+) feeds? ", check.found):
            found[check.name] = int(number[1])
    return found


def checks(pipeline: DagsterPipeline) -> dict[str, dg.AssetCheckEvaluation]:
    job = pipeline.definitions().resolve_job_def("check_health")
    result = job.execute_in_process(instance=pipeline.instance)
    return {evaluation.check_name: evaluation for evaluation in result.get_asset_check_evaluations()}


def test_every_report_gives_the_same_numbers(known: DagsterPipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    polled = sum(count for count, _ in STATES.values())
    assert status(known, monkeypatch) == {
        "registered": polled,
        "disabled": len(STATES),
        "unregistered": len(STATES),
        "failing": FAILING,
        "not_answering": NOT_ANSWERING,
        "failing_long": FAILING_LONG,
        "gone": 2,
        "moved": 3,
        "redirecting": 4,
    }
    found = doctor(known)
    assert {name: found.get(name) for name in DOCTOR} == DOCTOR
    evaluated = checks(known)
    figures = {
        (check, figure): evaluated[check].metadata[figure].value
        for check, figure in (
            ("feeds_answer", "feeds"),
            ("feeds_not_gone", "feeds"),
            ("feeds_not_moved", "feeds"),
            ("feeds_not_moved", "redirecting"),
            ("guids_stable", "feeds"),
        )
    }
    assert list(figures.values()) == [NOT_ANSWERING, 2, 3, 4, 2]
    alerted = just_prominent(known.database, since=known.clock())
    table = evaluated["feeds_answer"].metadata["concerned"]
    assert isinstance(table, dg.TableMetadataValue)
    listed = {record.data["feed"]: record.data["failures"] for record in table.records}
    assert len(listed) == NOT_ANSWERING
    assert {row["id"] for row in alerted} == {id for id, failures in listed.items() if failures >= 10}
    assert len(alerted) == FAILING_LONG


def test_the_list_of_feeds_begins_with_those_that_fail_and_are_polled(known: DagsterPipeline) -> None:
    listed = [row["id"] for row in feed_health(known.database)]
    assert listed[0] == "failing-since-spring-0"
    assert not any(id.endswith(tuple(NOT_POLLED)) for id in listed[:8])
