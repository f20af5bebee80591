"""What Dagster loads: everything assembled from one Settings, once for production, tests and command line.

The definitions themselves stand in orchestration/.
"""

import os
from pathlib import Path

from dotenv import load_dotenv

from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.settings import Settings

load_dotenv(Path.cwd() / ".env")
defs = build_definitions(Settings.from_environ(os.environ, cwd=Path.cwd()))
