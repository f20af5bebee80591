"""A look at the requests of users in a process of its own, as that of `up` forks one.

Started by test_refresh_job.py.
"""

import os
import sys
from pathlib import Path

from rss_pipeline.orchestration.serving.refresher import serve
from rss_pipeline.settings import Settings


def main() -> None:
    sys.exit(serve(Settings.from_environ(os.environ, cwd=Path.cwd())))
