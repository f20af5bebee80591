"""The version of the code, by which machines are compared."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rss_pipeline


@pytest.mark.slow
def test_the_version_changes_with_each_file_of_the_code_and_with_nothing_else(tmp_path: Path) -> None:
    whole = Path(rss_pipeline.__file__).parent
    copy = tmp_path / "rss_pipeline"
    shutil.copytree(whole, copy, ignore=shutil.ignore_patterns("__pycache__"))
    first = _version(tmp_path)
    assert _version(tmp_path) == first == _version(whole.parent)
    with (copy / "storage" / "schema.sql").open("a") as changed:
        changed.write("-- another line\\n")
    assert _version(tmp_path) != first


def _version(path: Path) -> str:
    program = "from rss_pipeline.features.fleet.membership import code_version; print(code_version())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=path,
        check=True,
        capture_output=True,
        env={"PYTHONPATH": str(path)},
    )
    return done.stdout.decode()
