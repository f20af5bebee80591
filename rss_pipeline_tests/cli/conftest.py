"""The command in this process: one of its own loads Dagster anew, for seconds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rss_pipeline.cli.main import main
from rss_pipeline.collector.models.clock import instant, utc_now
from rss_pipeline_tests.cli.test_main import environment
from rss_pipeline_tests.support.waiting import soon


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command in this process."""
    monkeypatch.chdir(tmp_path)
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "dagster"))
    monkeypatch.setenv("COLUMNS", "400")

    ended = ""

    def call(*arguments: str, input: str | None = None, env: Mapping[str, str] | None = None) -> Result:
        nonlocal ended
        # Visits have an instant in seconds, and a command visits a feed once: the next one begins later.
        soon(lambda: arguments[0] != "poll" or instant(utc_now()) > ended)
        result = CliRunner().invoke(main, arguments, input=input, env=env)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        ended = instant(utc_now())
        return result

    return call
