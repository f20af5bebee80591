"""The program `rss-pipeline` in a process of its own: its path, its environment, and what it says.

No test is in here.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rss_pipeline_tests.support.waiting import PATIENCE

PROGRAM = str(Path(sys.executable).with_name("rss-pipeline"))
HOST = "127.0.0.2"


def environment(folder: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    return {
        **clean,
        "RSS_PIPELINE_HOME": str(folder),
        "RSS_FEEDS_FILE": str(folder / "feeds.yaml"),
        "RSS_HOST_DELAY_SECONDS": "0",
        "RSS_PARSE_WORKERS": "1",
    }


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    out: str
    err: str


def run(folder: Path, *arguments: str, env: Mapping[str, str] | None = None) -> Said:
    """The command in a process of its own, in a folder of its own."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        env={**environment(folder), **(env or {})},
        cwd=folder,
        check=False,
        capture_output=True,
        timeout=PATIENCE,
    )
    said = Said(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in said.err, said.err
    return said
