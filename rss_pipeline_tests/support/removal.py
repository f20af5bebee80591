"""A copy of the tree without a feature, and a program that uses what is left of it.

The program runs in a process of its own, in a folder with feeds.yaml and a database: it imports each module,
loads the definitions, polls, looks at the feeds and at its health, and reads a page of the reader.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rss_pipeline.features import FEATURES

ROOT = Path(__file__).parents[2]
_PARTS = ("rss_pipeline", "rss_pipeline_tests", "benchmarks")

_PROGRAM = """
import importlib, pkgutil, sys
from contextlib import ExitStack
from pathlib import Path

import rss_pipeline

assert Path(rss_pipeline.__path__[0]) == Path(sys.argv[1]) / "rss_pipeline", rss_pipeline.__path__
for module in pkgutil.walk_packages(rss_pipeline.__path__, "rss_pipeline."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        # Modules that only health loads may have its words.
        if "rss_pipeline.features.health" not in (error.name, str(error.name).rpartition(".")[0]):
            raise

from click.testing import CliRunner
from starlette.testclient import TestClient

from rss_pipeline.api.app import create_app
from rss_pipeline.cli.main import main
from rss_pipeline.definitions import defs, settings
from rss_pipeline.reader.stores import open_stores

assert "poll_feeds" in {job.name for job in defs.resolve_all_job_defs()}
has_doctor = "doctor" in main.list_commands(None)
for command in (["poll"], ["status"], ["doctor"] if has_doctor else ["user", "list"]):
    done = CliRunner().invoke(main, command)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    print(command, done.exit_code, done.output)
with ExitStack() as stack:
    client = TestClient(create_app(stack.enter_context(open_stores(settings))))
    for page in ("/login", "/", "/settings"):
        answer = client.get(page, headers={"Host": "127.0.0.1:3001"})
        assert answer.status_code == 200, (page, answer.status_code, answer.text)
        print(page, answer.status_code)
"""


def gone_with(name: str) -> set[str]:
    """The feature, and those that need it."""
    gone = {name}
    while more := {feature.name for feature in FEATURES if gone & set(feature.needs)} - gone:
        gone |= more
    return gone


def without(name: str, tree: Path) -> Path:
    """Copy the project to `tree`, without the folder of the feature, its tests, and its lines; those of the
    features that need it go, too."""
    # With what was compiled: else each process would compile all of it again.
    for part in _PARTS:
        shutil.copytree(ROOT / part, tree / part)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy2(file, tree)
    listed = tree / "rss_pipeline" / "features" / "__init__.py"
    lines = listed.read_text("utf-8")
    for each in gone_with(name):
        shutil.rmtree(tree / "rss_pipeline" / "features" / each)
        shutil.rmtree(tree / "rss_pipeline_tests" / "features" / each)
        lines, count = re.subn(rf"^    {each}(?:\.FEATURE)?,\n", "", lines, flags=re.MULTILINE)
        assert count == 2
    listed.write_text(lines, "utf-8")
    return tree


def use(tree: Path, home: Path) -> str:
    """Run the program in this tree, on the feeds and stores of this folder; return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RSS_", "DAGSTER_"))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM, str(tree)],
        env={
            **kept,
            "PYTHONPATH": str(tree),
            "RSS_PIPELINE_HOME": str(home),
            "RSS_FEEDS_FILE": str(home / "feeds.yaml"),
            "RSS_PARSE_WORKERS": "1",
        },
        cwd=home,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-5_000:]
    return done.stdout


_IMPORT = re.compile(
    r"^(?:from rss_pipeline(?:_tests)?\.features(?:\.(\w+)\S*)? import (\([^)]*\)|.*)"
    r"|import rss_pipeline(?:_tests)?\.features\.(\w+)\S*)",
    re.MULTILINE,
)


def imported(path: Path) -> set[str]:
    """The features that a module imports at its top."""
    found: set[str] = set()
    for package, names, module in _IMPORT.findall(path.read_text("utf-8")):
        found |= {package or module} if package or module else set(re.findall(r"\w+", names))
    return found & {feature.name for feature in FEATURES}
