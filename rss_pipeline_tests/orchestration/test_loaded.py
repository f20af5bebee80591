"""The modules that a process of Dagster loads for its jobs."""

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import sys
from pathlib import Path
from rss_pipeline.orchestration.build import build_definitions
from rss_pipeline.settings import Settings

home = Path(sys.argv[1])
settings = Settings(home=home, feeds_file=home / "feeds.yaml", user_agent="a reader")
build_definitions(settings).resolve_job_def("download_images")
print(*(name for name in ("lxml", "feedparser", "prometheus_client") if name in sys.modules))
"""


def test_a_job_that_parses_nothing_loads_no_parser(tmp_path: Path) -> None:
    """They take 9 MB, and such a job may have a process of its own."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM, tmp_path], check=True, capture_output=True)
    assert done.stdout == b"\n"
