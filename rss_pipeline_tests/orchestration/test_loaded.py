"""Modules that processes of Dagster load: none that no process uses."""

import subprocess
import sys
from pathlib import Path

_PROGRAM_OF_A_JOB = """
import sys
from pathlib import Path
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.settings import Settings

home = Path(sys.argv[1])
settings = Settings(home=home, feeds_file=home / "feeds.yaml", user_agent="a reader")
build_definitions(settings).resolve_job_def("download_images")
print(*(name for name in ("lxml", "feedparser", "prometheus_client") if name in sys.modules))
"""
_PROGRAM_OF_UP = """
import importlib, sys

from rss_pipeline.cli.services import _left_out, _load_reader

with _left_out():
    _load_reader()
    from rss_pipeline.orchestration.instance.own_location import OWN_MODULE
    from rss_pipeline.orchestration.serving import services

for module in (OWN_MODULE, *services._LOADED_BY_ALL, *services.PRELOADED):
    importlib.import_module(module)
unneeded = ("dagster._cli.job", "dagster._generate", "pydantic.v1.main", "trafilatura", "justext")
print(*(name for name in unneeded if name in sys.modules))

import dagster._cli, pydantic.v1

assert dagster._cli.job_cli.commands and pydantic.v1.BaseModel, "whoever wants them has them"
"""


def _loaded(program: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_job_that_parses_nothing_loads_no_parser(tmp_path: Path) -> None:
    """They would take 9 MB where it has a process of its own."""
    assert _loaded(_PROGRAM_OF_A_JOB, tmp_path) == ""


def test_up_loads_no_commands_of_dagster_nothing_of_pydantic_1_and_no_reader_of_articles(
    tmp_path: Path,
) -> None:
    """They would take 2.5 MB of what all its processes share, and that of articles 20 MB and 0.2 s."""
    assert _loaded(_PROGRAM_OF_UP, tmp_path) == ""
