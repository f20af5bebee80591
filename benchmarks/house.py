"""The size and shape of the code: `python -m benchmarks.house [CLONE...]` prints a column for each clone.

Files of git in rss_pipeline/ count, those of a folder's docstring (`__init__.py`) in the lines only.
"""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median, quantiles

FIXED = {"model", "sql", "service", "dagster", "cli", "api", "pages", "checks"}
"""File names of every feature (docs/development.md)."""
FEATURES = (
    "copy",
    "fleet",
    "health",
    "opml",
    "replay",
    "retention",
    "search",
    "statistics",
    "streams",
    "topics",
)
"""Those of which the name means nothing else in the project."""


def measured(clone: Path) -> dict[str, object]:
    """The figures of a clone by name, in their order."""
    listed = subprocess.run(
        ["git", "ls-files", "rss_pipeline/*.py"], cwd=clone, check=True, capture_output=True, text=True
    )
    paths = [Path(each) for each in listed.stdout.splitlines() if (clone / each).is_file()]
    texts = {".".join(path.with_suffix("").parts): (clone / path).read_text("utf-8") for path in paths}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    modules = {name: text.count("\n") for name, text in texts.items() if not name.endswith(".__init__")}
    users: dict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for used in _imported(ast.walk(tree), modules):
            users[used].add(name)
    single = [name for name in modules if len(users[name] - {name}) == 1]
    names = Counter(name.rpartition(".")[2] for name in modules)
    classes = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {
        "modules": len(modules),
        "lines": sum(text.count("\n") for text in texts.values()),
        "lines of code": sum(_code(text, trees[name]) for name, text in texts.items()),
        "lines of features": sum(
            text.count("\n") for name, text in texts.items() if name.startswith("rss_pipeline.features.")
        ),
        "module length, median": median(modules.values()),
        "module length, 90th percentile": round(quantiles(modules.values(), n=10)[-1]),
        "module length, most": max(modules.values()),
        "modules below 60 lines": sum(lines < 60 for lines in modules.values()),
        "modules with one user": len(single),
        "modules below 60 lines with one user": sum(modules[name] < 60 for name in single),
        "import circles": "none" if (circle := _circle(trees, modules)) is None else " ".join(circle),
        "file names twice": sum(count > 1 for name, count in names.items() if name not in FIXED),
        "class names with two meanings": sum(count > 1 for count in classes.values()),
        **{f"folders of {name}": _folders(name, paths) for name in FEATURES},
    }


def _imported(nodes: Iterator[ast.AST], modules: Mapping[str, int]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        if isinstance(node, ast.ImportFrom) and node.module:
            if node.module in modules:
                yield node.module
            yield from (full for each in node.names if (full := f"{node.module}.{each.name}") in modules)


def _folders(feature: str, paths: list[Path]) -> int:
    """The number of folders with a module that has the feature's name in its own or in that of a folder."""
    named = re.compile(rf"(^|_){feature.removesuffix('s')}s?(_|$)")
    return len({path.parent for path in paths if any(map(named.search, path.with_suffix("").parts))})


def _circle(trees: Mapping[str, ast.Module], modules: Mapping[str, int]) -> list[str] | None:
    """A circle of imports made as modules are loaded; one in a function or for types alone makes none."""
    graph = {name: {*_imported(iter(tree.body), modules)} for name, tree in trees.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return None


def _code(text: str, tree: ast.Module) -> int:
    """Lines that are neither blank nor comments nor docstrings."""
    words = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        number not in words and bool(line.strip()) and not line.lstrip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
    )


def main() -> None:
    clones = [Path(each) for each in sys.argv[1:]] or [Path(__file__).parents[1]]
    columns = [measured(clone) for clone in clones]
    for name in columns[0]:
        print(f"{name:38}", *(f"{column[name]:>10}" for column in columns))


if __name__ == "__main__":
    main()
