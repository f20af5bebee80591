"""Every statement of the product has a name: errors, logs and tests go by it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import rss_pipeline

PACKAGE = Path(rss_pipeline.__file__).parent


def unnamed(tree: ast.AST) -> Iterator[ast.Call]:
    """Calls of `Statement` and of a database's `query` without a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and not any(keyword.arg == "name" for keyword in node.keywords):
            called = node.func
            is_query = isinstance(called, ast.Attribute) and called.attr == "query"
            if (is_query and ast.unparse(called).endswith("database.query")) or _is_statement(called):
                yield node


def _is_statement(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id == "Statement"


def test_every_statement_has_a_name() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{call.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        # SQLite's own commands (PRAGMA, BEGIN) are not statements of ours.
        if path.parent.name != "sqlite" and any(name in path.read_text() for name in ("Statement(", "query("))
        for call in unnamed(ast.parse(path.read_text()))
    ]
    assert found == []
