"""The packages that may be missing, as the project declares them."""

import tomllib
from pathlib import Path

from rss_pipeline.extras import EXTRAS

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
OF_DEVELOPERS = {"dev", "bench"}


def names(requirements: list[str]) -> set[str]:
    """The packages of requirements such as `psycopg[binary]>=3.2`, as they are imported."""
    return {each.split(">")[0].split("[")[0].replace("-", "_") for each in requirements}


def test_each_extra_is_known_with_its_packages() -> None:
    project = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]
    declared = project["optional-dependencies"]
    assert declared["full-text"] == [], "commands that name it still work"
    of_extras = [names(some) for name, some in declared.items() if some and name not in OF_DEVELOPERS]
    assert sorted(map(sorted, of_extras)) == sorted(
        sorted(each.packages) for each in EXTRAS if each.is_optional
    )
    always = {name for each in EXTRAS if not each.is_optional for name in each.packages}
    assert always <= names(project["dependencies"])
    assert [each.problem for each in EXTRAS] == [None] * len(EXTRAS), "developers have them all"
