"""`purge` and `migrate`: what each did, or would do, in the command's words."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from rss_pipeline_tests.support.dagster_pipeline import DagsterPipeline


def test_purge_reports_what_would_go_and_removes_it(invoke: Any, collected_in_runs: DagsterPipeline) -> None:
    polled = set(collected_in_runs.instance.get_run_ids())
    foretold = json.loads(invoke("purge", "--days", "0.0000001", "--dry-run", "--json").stdout)
    assert (foretold["dry_run"], foretold["runs_removed"], foretold["heartbeats"]) == (True, len(polled), 1)
    assert set(collected_in_runs.instance.get_run_ids()) > polled
    said = invoke("purge", "--days", "0.0000001")
    assert said.exit_code == 0
    assert f"{len(polled) + 1} runs removed" in said.stdout
    assert "1 feeds reported again" in said.stdout
    assert polled.isdisjoint(collected_in_runs.instance.get_run_ids())
    assert invoke("purge", "--days", "0").exit_code == 2


def test_migrate_says_what_it_applied(invoke: Any, tmp_path: Path) -> None:
    assert "schema.sql" in invoke("migrate").stdout
    assert "already up to date" in invoke("migrate").stdout
    with sqlite3.connect(tmp_path / "rss.sqlite") as database:
        database.execute("INSERT INTO schema_migrations VALUES (9999, 'x', 'x')")
    database.close()
    ahead = invoke("status")
    assert ahead.exit_code == 1
    assert "the database has schema 9999" in ahead.stderr
    assert "update rss_pipeline" in ahead.stderr
