"""The Makefile: which venv it sets up again. Its commands are only listed (`make -n`): they take a minute."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SET_UP = "-m venv --clear .venv"
INSTALL = "Installing rss_pipeline"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone that `make install` has set up, as far as make knows. Its path has what shells care for."""
    clone = tmp_path / "my feeds' clone"
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, clone)
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", clone / ".venv"], check=True)
    (clone / ".venv" / ".runtime").touch()
    return clone


def planned(folder: Path, target: str = "run") -> str:
    """The commands that make would run; they are not."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    done = subprocess.run(
        ["make", "-n", target], cwd=folder, env=environ, check=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    return done.stdout


def test_a_venv_that_is_up_to_date_is_used(clone: Path) -> None:
    assert planned(clone).splitlines() == [".venv/bin/rss-pipeline up"]


@pytest.mark.parametrize("target", ["run", "install", "quick", "bench"])
def test_a_folder_that_was_moved_is_set_up_again(clone: Path, target: str) -> None:
    moved = clone.rename(clone.with_name("moved"))
    plan = planned(moved, target)
    assert plan.index("because this folder was moved or copied") < plan.index(SET_UP) < plan.index(INSTALL)


def test_a_copied_folder_has_a_venv_of_its_own_and_the_first_one_keeps_its(clone: Path) -> None:
    """The programs of the copy would run the code of the first one."""
    copied = clone.with_name("copied")
    shutil.copytree(clone, copied, symlinks=True)
    assert SET_UP in planned(copied)
    assert SET_UP not in planned(clone)


def test_a_venv_that_is_a_link_belongs_to_the_folder_that_it_leads_to(clone: Path) -> None:
    """A second working tree that shares it must not clear it."""
    tree = clone.with_name("tree")
    tree.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tree / name).symlink_to(clone / name)
    (tree / ".venv").symlink_to(clone / ".venv")
    assert SET_UP not in planned(tree)


def test_a_venv_of_another_program_is_left_alone(clone: Path) -> None:
    """uv and virtualenv do not say for which path they made it."""
    settings = clone / ".venv" / "pyvenv.cfg"
    lines = settings.read_text("utf-8").splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if not line.startswith("command")), "utf-8")
    assert SET_UP not in planned(clone.rename(clone.with_name("moved")))


def test_the_rooms_of_make_quick_need_no_dagster() -> None:
    """Their tests run where its import fails: conftest.py of each, and with it what most tests import."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    (rooms,) = re.findall(r"^QUICK := .*?,([^)]+)\)", makefile, re.MULTILINE)
    program = """
import sys
from importlib import import_module
from rss_pipeline_tests.support.no_dagster import refuse
refuse("dagster")
for name in sys.argv[1:]:
    import_module(name)
"""
    found = [
        f"rss_pipeline_tests.{room}.conftest"
        for room in rooms.split()
        if (ROOT / "rss_pipeline_tests" / room / "conftest.py").is_file()
    ]
    assert "rss_pipeline_tests.reader.conftest" in found
    subprocess.run([sys.executable, "-c", program, *found], cwd=ROOT, check=True)
