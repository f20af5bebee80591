"""`defs`, the definitions that Dagster loads, built from the environment and `.env` in the current folder.

The definitions themselves are in orchestration/; build.py puts them together, also for tests and the command.
"""

import os
from pathlib import Path

from rss_pipeline.environment import load_env_file
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.orchestration.instance.home import warn_without_home
from rss_pipeline.settings import Settings

load_env_file(Path.cwd())
settings = Settings.from_environ(os.environ, cwd=Path.cwd())
warn_without_home(settings)
defs = build_definitions(settings)
