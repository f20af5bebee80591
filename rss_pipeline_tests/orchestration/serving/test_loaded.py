"""What `up` loads once for all its processes has nothing that none of them uses."""

import subprocess
import sys

_PROGRAM = """
import importlib, sys

import rss_pipeline.api.app
from rss_pipeline.orchestration.run_launcher import OWN_MODULE
from rss_pipeline.orchestration.serving import services

for module in (OWN_MODULE, *services._LOADED_BY_ALL):
    importlib.import_module(module)
unneeded = ("dagster._cli.job", "dagster._generate", "pydantic.v1.main")
assert [name for name in unneeded if name in sys.modules] == []

import dagster._cli

assert dagster._cli.job_cli.commands, "whoever wants the commands has them"
"""


def test_commands_of_dagster_and_pydantic_1_are_not_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
